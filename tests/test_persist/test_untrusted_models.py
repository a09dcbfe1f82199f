"""Model folders are untrusted input: an attacker writes digests that fit. What fuzzing found stands here."""

from __future__ import annotations

import contextlib
import copy
import json
import shutil
from collections import ChainMap
from pathlib import Path

import makers
import numpy as np
import pytest
import scipy.sparse as sp

from metarank import MetaRanker, MultiObjectiveRanker, _core, load, persist
from metarank._util.npy import map_npy
from metarank.model.fitting.auto import named_shortlisters
from metarank.persist import MANIFEST, Limits, ModelError
from metarank.persist.fields import Csr, Declared, Known, check_csr
from metarank.persist.folder import Reader, digest_of, sha256_of
from metarank.persist.tensors import read_tensors
from metarank.persist.trust import declared_sizes_up_to
from metarank.scorers.classical.kernel_ridge import KernelRidge
from metarank.thresholds.cross_label import CrossLabel
from metarank.types.boosters import BoosterArrays
from metarank.types.candidates import Candidates
from metarank.types.checks import ScoresNotFiniteError
from metarank.types.texts import PackedStrings

ROWS = ["sea and bread", "a code test"]


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """Small saved models by name; not to be changed."""
    root = tmp_path_factory.mktemp("models")
    makers.fitted("texts").save(root / "texts")
    makers.fitted("dense").save(root / "dense")
    for name in ("parabel", "one-vs-all", "fastxml"):
        makers.fitted("many labels", **makers.QUICK, shortlister=name).save(root / name)
    return root


class Attack:
    """A copy of a saved model, changed and given digests that fit."""

    def __init__(self, source: Path, folder: Path) -> None:
        self.folder = Path(shutil.copytree(source, folder))
        self.manifest = json.loads((folder / MANIFEST).read_text())

    @property
    def state(self):
        """The state of the model; of a `MetaRanker` that of its fit comes first."""
        state = self.manifest["model"]["state"]
        return ChainMap(*[part["state"] for part in [state.get("fitted")] if part], state)

    def array(self, stem, change):
        """Change the array of a file; the manifest tells of what it is now."""
        name = stem + ".npy"
        changed = change(np.load(self.folder / name))
        np.save(self.folder / name, changed)

        def describe(value):
            if isinstance(value, dict):
                if value.get("__array__") == name:
                    value.update(dtype=changed.dtype.str, shape=list(changed.shape))
                value = list(value.values())
            for child in value if isinstance(value, list) else ():
                describe(child)

        describe(self.manifest["model"])
        return self

    def set(self, name, place, value):
        """Change values of the array whose file has a name that holds this."""
        path = min(self.folder.glob(f"*{name}*.npy"))
        array = np.load(path)
        array.reshape(-1)[place] = value
        return self.array(path.stem, lambda _: array)

    def seal(self):
        for name, entry in self.manifest["files"].items():
            entry["bytes"] = (self.folder / name).stat().st_size
            entry["sha256"] = sha256_of(self.folder / name)
        self.manifest["digest"] = digest_of(self.manifest)
        (self.folder / MANIFEST).write_text(json.dumps(self.manifest))
        return self

    def assert_refused(self, match):
        self.seal()
        for verify in (True, False):
            with pytest.raises(ModelError, match=match) as caught:
                load(self.folder, verify=verify)
            assert "\n" not in str(caught.value)


@pytest.fixture
def attack(saved, tmp_path):
    return lambda name: Attack(saved / name, tmp_path / name)


# --- arrays ------------------------------------------------------------------


@pytest.mark.check
@pytest.mark.parametrize("model", ["texts", "dense", "parabel", "one-vs-all", "fastxml"])
def test_every_array_has_its_dtype_and_shape(attack, saved, model, tmp_path):
    """Whatever array is of another dtype, shape or order: refused, and the part is named."""
    names = [p.stem for p in sorted((saved / model).glob("*.npy"))]
    assert len(names) > 15
    for i, name in enumerate(names):
        for j, change in enumerate(
            (
                lambda a: a.astype(np.float16),
                lambda a: a[None],
                lambda a: np.repeat(np.ravel(a), 2)[: a.size + 1],
                lambda a: a.reshape(-1)[: max(0, a.size - 1)],
            )
        ):
            tried = Attack(saved / model, tmp_path / f"{i}-{j}")
            before = np.load(tried.folder / f"{name}.npy")
            changed = change(before)
            if changed.shape == before.shape and changed.dtype == before.dtype:
                continue
            tried.array(name, change).seal()
            if j < 2:  # another dtype, or another number of dimensions
                with pytest.raises(ModelError, match="cannot be read: model"):
                    load(tried.folder)
                continue
            # Arrays of any length by themselves, as the data of trees, are compared with others in use.
            with contextlib.suppress(ValueError):
                loaded = load(tried.folder)
                found = loaded.rank(ROWS if model == "texts" else np.ones((1, loaded.n_features_in_))).labels
                assert -1 <= found.min() <= found.max() < loaded.n_labels_


@pytest.mark.parametrize(
    ("model", "name", "place", "value", "match"),
    [
        ("texts", "labels.rows", 0, 10**6, "rows of LabelRows must lie in"),
        ("texts", "labels.rows", 0, -1, "rows of LabelRows must lie in"),
        ("texts", "labels.indptr", 1, 2**40, "must not decrease"),
        ("texts", "X.indices", 0, 10**6, "indices of .* must lie in"),
        ("texts", "X.indices", 0, -5, "indices of .* must lie in"),
        ("texts", "X.indptr", -1, 10**9, "must not decrease"),
        ("texts", "X.data", 0, np.nan, "finite"),
        ("texts", "inv_propensity", 0, np.inf, "finite"),
        ("texts", "inv_propensity", 0, 0.0, r"lie in \(0"),
        ("texts", "row_names.utf8", 0, 0xFF, "row_names|utf-8"),
        ("texts", "missing.rows", 0, 10**6, "rows of MissingPairs"),
        ("dense", "missing.rows", 0, 2**40, "rows"),
        ("dense", "missing.rows", slice(None), 0, "distinct pairs"),
        ("dense", "missing.probabilities", 0, 1.5, "probabilities"),
        ("dense", "calibrator.mean", 1, 1e300, "mean"),
        ("dense", "calibrator.scale", 1, 1e-300, "scale"),
        ("dense", "shared", 0, 1e300, "shared"),
        ("dense", "ranker.weights", 0, np.nan, "finite"),
        ("dense", "transform.weights", 0, np.nan, "finite"),
        ("one-vs-all", "index.start", 1, 2**50, "must not decrease"),
        ("one-vs-all", "index.seen", 0, 10**6, "must lie in"),
        ("parabel", "hierarchy.child", 0, 10**6, "child"),
        ("parabel", "hierarchy.child", 0, 0, "child"),
        ("parabel", "hierarchy.child", -1, -(10**6), "labels must lie in"),
    ],
)
def test_values_that_lead_out_of_an_array(attack, model, name, place, value, match):
    attack(model).set(name, place, value).assert_refused(match)


@pytest.mark.parametrize(
    ("model", "name", "place", "value"),
    [
        ("parabel", "weights.bucket_offset", -1, 2**31),
        ("parabel", "weights.data_start", 1, 2**50),
        ("parabel", "weights.shift", 0, 40),
        ("parabel", "weights.data", 0, 255),
        ("fastxml", "forest.child", 0, 10**6),
        ("fastxml", "forest.feature", 0, 10**6),
        ("fastxml", "forest.leaf_label", 0, 10**6),
        ("fastxml", "forest.leaf_start", 1, 2**50),
        ("fastxml", "forest.weight_start", 1, -3),
    ],
)
def test_arrays_of_trees_are_checked_before_their_first_use(attack, model, name, place, value):
    path = attack(model).set(name, place, value).seal().folder
    with pytest.raises(ValueError, match=r"must|rows"):
        load(path).rank(sp.random(3, 200, 0.1, "csr", np.float32, random_state=0))


def test_arrays_in_fortran_order_of_objects_and_of_other_booleans_are_no_part(tmp_path):
    np.save(tmp_path / "f.npy", np.asfortranarray(np.ones((3, 2))))
    np.save(tmp_path / "o.npy", np.array([None]), allow_pickle=True)
    np.save(tmp_path / "c.npy", np.array([1j]))
    (tmp_path / "huge.npy").write_bytes(
        b"\x93NUMPY\x01\x00\x40\x00"
        + b"{'descr': '<f8', 'fortran_order': False, 'shape': (99999999,), }\n".ljust(64)
    )
    for descr in ("<f6", "<U0", ">i4", "|O", "<f16"):
        header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': (0,), }}".encode().ljust(63) + b"\n"
        (tmp_path / f"{descr[1:]}.npy").write_bytes(b"\x93NUMPY\x01\x00\x40\x00" + header)
    np.save(tmp_path / "7.npy", np.array([True, False]))
    (tmp_path / "7.npy").write_bytes((tmp_path / "7.npy").read_bytes()[:-1] + b"\7")
    for path in tmp_path.iterdir():
        with pytest.raises(ValueError, match="booleans" if path.stem == "7" else r"npy|part of a model"):
            map_npy(path)


# --- sizes that are declared --------------------------------------------------


@pytest.mark.parametrize("value", [2**31 - 1, 2**40, -1, 1.5, "8", None, True])
def test_declared_sizes_are_bounded(attack, value):
    tried = attack("texts")
    tried.state["encoder"]["state"]["n_features"] = value
    tried.assert_refused("n_features")
    tried = attack("dense")
    tried.state["n_labels"] = value
    tried.assert_refused("n_labels|label_names|inv_propensity")


def test_the_shape_of_a_sparse_matrix_is_that_of_its_arrays(attack):
    """SciPy would allocate a row pointer of the declared length first."""
    tried = attack("texts")
    found = []

    def search(value):
        if isinstance(value, dict):
            found.extend([value] if "__csr__" in value else [])
            value = list(value.values())
        for child in value if isinstance(value, list) else ():
            search(child)

    search(tried.manifest["model"])
    for shape in ([2**31 - 1, 3], [2**40, 3], [3], "ab", [2.0, 2]):
        changed = copy.deepcopy(found[0]["shape"])
        found[0]["shape"] = shape
        tried.assert_refused("sparse matrix|unpack|shape")
        found[0]["shape"] = changed
    with declared_sizes_up_to(100), pytest.raises(ValueError, match=r"columns of X .* must be at most 100"):
        Csr("X").read(sp.csr_matrix((2, 101), dtype=np.float32), Known("a part", {}))


def test_limits_can_be_raised_by_who_trusts_a_folder(saved):
    for limits, match in (
        (Limits(manifest_bytes=100), "more than 100"),
        (Limits(depth=3), "nested deeper"),
        (Limits(files=2), "more than 2 files"),
    ):
        with pytest.raises(ModelError, match=match):
            load(saved / "texts", limits=limits)
    load(saved / "texts", limits=Limits(declared=1 << 30))
    for depth in (0, True, 1.5):
        with pytest.raises(ValueError, match="positive"):
            Limits(depth=depth)
    with pytest.raises(TypeError, match="Limits"):
        load(saved / "texts", limits=3)


def inflated(value, width, by):
    """Every size of `width` features in a manifest becomes `by`."""
    if isinstance(value, list):
        return [inflated(v, width, by) for v in value]
    if not isinstance(value, dict):
        return value
    out = {key: inflated(v, width, by) for key, v in value.items()}
    if "__csr__" in out and out["shape"][1] == width:
        out["shape"] = [out["shape"][0], by]
    return out | ({"n_features": by} if out.get("n_features") == width else {})


def test_declared_sizes_are_bounded_together(attack):
    """A model of 20 million features that no array bears out."""
    tried = attack("parabel")
    tried.manifest["model"] = inflated(tried.manifest["model"], 200, 20_000_000)
    tried.seal()
    with pytest.raises(ModelError, match="n_features"):
        load(tried.folder)
    load(tried.folder, limits=Limits(declared=20_000_000))
    with declared_sizes_up_to(100, 150):
        Declared("n").read(100, Known("a part", {}))
        for field, value in ((Declared("n"), 100), (Csr("X"), sp.csr_matrix((2, 60), dtype=np.float32))):
            with pytest.raises(ValueError, match="more than the 50 left"):
                field.read(value, Known("a part", {}))


@pytest.mark.parametrize(
    "name", ["..", "../secret", ".", "", "a/b", "a\\b", "c:x", "/etc/hostname", "a\0", "manifest.json"]
)
def test_names_of_files_are_plain(attack, name):
    tried = attack("texts")
    tried.manifest["files"][name] = {"bytes": 4096, "sha256": ""}
    tried.manifest["digest"] = digest_of(tried.manifest)
    (tried.folder / MANIFEST).write_text(json.dumps(tried.manifest))
    for verify in (True, False):
        with pytest.raises(ModelError, match="not a name of a file"):
            load(tried.folder, verify=verify)


def test_the_manifest_is_no_link(attack, tmp_path):
    tried = attack("texts").seal()
    (tried.folder / MANIFEST).rename(tmp_path / "elsewhere.json")
    (tried.folder / MANIFEST).symlink_to(tmp_path / "elsewhere.json")
    for verify in (True, False):
        with pytest.raises(ModelError, match=r"manifest\.json' is damaged: it is not a regular file"):
            load(tried.folder, verify=verify)
    with pytest.raises(ModelError, match="not a regular file"):
        persist.read_manifest(tried.folder)
    linked = tmp_path / "latest"
    (tried.folder / MANIFEST).unlink()
    (tmp_path / "elsewhere.json").rename(tried.folder / MANIFEST)
    linked.symlink_to(tried.folder)
    load(linked)  # of the folder itself: who loads it names it


def test_deep_and_odd_manifests(attack):
    odd = {"__array__": "x", "__json__": "y"}
    for value in ({"__list__": 1}, odd, {"__float__": "1e5"}, {"__object__": 3}, {"__csr__": 1}):
        tried = attack("texts")
        tried.manifest["model"] = value
        tried.assert_refused("cannot be read")
        shutil.rmtree(tried.folder)
    tried = attack("texts")
    deep: list = []
    for _ in range(200):
        deep = [deep]
    tried.state["choices"] = deep
    tried.assert_refused("nested deeper")


# --- attributes, classes, parameters -------------------------------------------


def test_no_attribute_is_set_by_name():
    """Names of fitted values were once taken from the file."""
    state = {
        "params": KernelRidge().get_params(),
        "kernel": None,
        "alpha": 1.0,
        "bias": np.zeros(2, np.float32),
        "weights": np.zeros((3, 2), np.float32),
    }
    state["score"] = state["__class__"] = 3
    scorer = KernelRidge.from_state(state)
    assert callable(scorer.score)
    assert type(scorer) is KernelRidge


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda s: s["params"].update(n_jobs=10**9), "n_jobs"),
        (lambda s: s["params"].update(shortlist_size=0), "shortlist_size"),
        (lambda s: s["params"].update(__class__=3), "__class__|kind"),
        (lambda s: s["params"].update(features=["nonsense"]), "features"),
        (lambda s: s.update(encoder=s["sources"][0]["state"]["scorer"]), "encoder .*InputEncoder"),
        (lambda s: s["sources"][0]["state"].update(scorer=s["encoder"]), "scorer .*LabelScorer"),
        (lambda s: s.update(feature_columns=["x"]), "feature_importances|columns"),
        (lambda s: s["ranker"].update(__object__="Popen"), "Popen"),
        (lambda s: s["ranker"]["state"]["params"].update(l2={"a": 1}, no=1), "params"),
        (lambda s: s["ranker"]["state"].update(intercept="x"), "intercept"),
        (lambda s: s["thresholds"]["state"]["by_metric"].update(hamming=s["ranker"]), "class Threshold"),
        (lambda s: s["thresholds"]["state"]["by_metric"].pop("hamming"), "hamming"),
        (lambda s: s["thresholds"]["state"]["calibrator"]["state"].update(members=[]), "members"),
        (lambda s: s["thresholds"]["state"]["calibrator"]["state"]["platt"]["state"].pop("offset"), "offset"),
        (
            lambda s: s["thresholds"]["state"]["calibrator"]["state"]["platt"]["state"].update(offset=1e300),
            "offset",
        ),
        (lambda s: s.update(n_rows=7), "rows|row_names"),
        (lambda s: s.update(row_names=None, n_rows=7), r"(60 rows|must have shape \(7,)"),
        (lambda s: s.update(label_names=["a"]), "label_names"),
        (lambda s: s.update(label_names=["a", 3, None]), "label_names"),
        (lambda s: s.update(propensity_weight={"__float__": "nan"}), "propensity_weight"),
        (lambda s: s.update(label_separator=3), "label_separator"),
        (lambda s: s.update(label_separator=""), "label_separator"),
    ],
)
def test_parts_that_do_not_fit(attack, change, match):
    tried = attack("texts")
    change(tried.state)
    tried.assert_refused(match)


def test_constants_that_json_does_not_have_and_half_of_a_character(attack, tmp_path):
    """JSON can write the latter, UTF-8 cannot."""
    path = attack("texts").seal().folder / MANIFEST
    text = path.read_text()
    for old, new, match in (
        ('"n_labels": 3', '"n_labels": NaN', "NaN is not a number"),
        ('"metarank_version": "', '"metarank_version": "\\ud800', "is damaged: 'utf-8' codec"),
    ):
        path.write_text(text.replace(old, new))
        for verify in (True, False):
            with pytest.raises(ModelError, match=match):
                load(path.parent, verify=verify)
    (tmp_path / "names.json").write_text('["\\ud800"]')
    reader = Reader(tmp_path, {"names.json": 10})
    with pytest.raises(ModelError, match="'utf-8' codec"):
        reader.decode({"__json__": "names.json"})


def test_a_scorer_of_other_labels_or_features_is_refused(saved, attack, tmp_path):
    other = Attack(saved / "dense", tmp_path / "other")
    tried = attack("texts")
    own, foreign = (
        next(
            scorer["state"]["log_prior"]["__array__"]
            for scorer in (source["state"]["scorer"] for source in model.state["sources"])
            if scorer["__object__"] == "LabelPrior"
        )
        for model in (tried, other)
    )
    shutil.copy(other.folder / foreign, tried.folder / own)
    tried.array(own.removesuffix(".npy"), lambda a: a).assert_refused(
        r"must have shape \(3\), got float32 \(4,\)"
    )


@pytest.mark.parametrize("value", [1e308, 1e60])
def test_scores_that_overflow_are_an_error(attack, value):
    """In double precision, and as the float32 that a ranking holds."""
    path = attack("dense").set("ranker.weights", slice(None), value).seal().folder
    with pytest.raises(ValueError, match="scores must be finite"):
        load(path).rank(np.full((1, 6), 100.0))


def test_sparse_indices_are_checked_row_by_row():
    check_csr(np.array([0, 2, 2, 4]), np.array([1, 3, 0, 3]), 4, "X")
    for indptr, indices in (
        ([0, 2, 2, 4], [3, 1, 0, 3]),
        ([0, 2, 2, 4], [1, 1, 0, 3]),
        ([0, 3, 3, 4], [1, 3, 0, 3]),
        ([0, 2, 2, 4], [1, 4, 0, 3]),
        ([1, 2, 2, 4], [1, 3, 0, 3]),
        ([0, 5, 2, 4], [1, 3, 0, 3]),
    ):
        with pytest.raises(ValueError, match="must"):
            check_csr(np.array(indptr), np.array(indices), 4, "X")


# --- boosted trees ----------------------------------------------------------------


def test_a_chain_of_trees_nodes_does_not_overflow_the_stack():
    """A tree all of whose left children are nodes is as deep as it has nodes."""
    n = 200_000
    arrays = BoosterArrays(
        feature=np.zeros(n, np.int32),
        threshold=np.zeros(n),
        children=np.stack([np.r_[1:n, ~0], np.full(n, ~0)], axis=1).astype(np.int32),
        missing=np.zeros(n, np.uint8),
        gain=np.zeros(n),
        node_count=np.ones(n, np.int32),
        root=np.zeros(1, np.int32),
        leaf_value=np.ones(1),
        leaf_count=np.ones(1, np.int32),
        output=np.zeros(1, np.int32),
        n_features=1,
        n_outputs=1,
    )
    assert arrays.predict(np.zeros((1, 1), np.float32)).tolist() == [1.0]
    with pytest.raises(ValueError, match="1024 deep"):
        arrays.contributions(np.zeros((1, 1), np.float32))


@pytest.mark.parametrize(
    "header",
    [
        b"[]",
        b'{"a": 3}',
        b'{"a": {"dtype": "F32", "shape": [2]}}',
        b'{"a": {"dtype": "F31", "shape": [0], "data_offsets": [0, 0]}}',
        b'{"a": {"dtype": "F32", "shape": [-1], "data_offsets": [4, 0]}}',
        b'{"a": {"dtype": "F32", "shape": [4611686018427387904, 4], "data_offsets": [0, 0]}}',
        b'{"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]}}',
        b"[" * 5000,
    ],
)
def test_tensor_files_that_are_none(tmp_path, header):
    (tmp_path / "t").write_bytes(len(header).to_bytes(8, "little") + header)
    with pytest.raises(ValueError, match=r"safetensors|tensor|damaged|Expecting"):
        read_tensors(tmp_path / "t")


def test_subwords_are_byte_pairs_and_nothing_else():
    pytest.importorskip("tokenizers")
    from metarank.text.subwords import Subwords

    state = Subwords.trained(["red wine", "red tea", "green tea"], 60).get_state()
    assert Subwords.from_state(copy.deepcopy(state)).encode(["red"], 8).any()
    for change in (
        lambda s: s["words"].append("e"),
        lambda s: s["words"].reverse(),
        lambda s: s["words"].remove("▁"),
        lambda s: s["words"].append(3),
        lambda s: s["merges"].append("x y"),
        lambda s: s["merges"].append("r"),
        lambda s: s["merges"].append(["r", "e"]),
        lambda s: s.pop("merges"),
    ):
        changed = copy.deepcopy(state)
        change(changed)
        with pytest.raises(ValueError, match=r"words|merges"):
            Subwords.from_state(changed)


def test_multi_objective_parts(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    Y = np.column_stack([X[:, 0] > 0, X[:, 1] > 0]).astype(float)
    MultiObjectiveRanker("label", "linear", n_jobs=1).fit(X, Y).save(tmp_path / "M")
    for i, (change, match) in enumerate(
        (
            (lambda s: s.update(linear_models=[]), "linear_models"),
            (lambda s: s.update(tree_models=s["linear_models"]), "tree_models"),
            (lambda s: s.update(n_features=4), "shape"),
            (lambda s: s.update(weights={"__float__": "inf"}), "weights"),
            (lambda s: s["params"].update(aggregation="x"), "aggregation"),
        )
    ):
        tried = Attack(tmp_path / "M", tmp_path / str(i))
        change(tried.state)
        tried.assert_refused(match)
    assert isinstance(load(tmp_path / "M"), MultiObjectiveRanker)


# --- what the compiled core is given ---------------------------------------------


def test_votes_can_be_ordered_and_completed():
    arrays = {
        "row_indptr": np.array([0, 1, 2], np.int64),
        "row_labels": np.array([0, 1], np.int32),
        "popular": np.array([0, 1], np.int32),
        "frequency": np.array([0.5, 0.5]),
    }
    for changes, match in (
        ({"popular": np.array([0, 0], np.int32)}, "every label"),  # lists were completed from beyond its end
        ({"frequency": np.array([0.5, np.nan])}, "finite"),
        ({"worth": np.array([1.0, np.inf])}, "finite"),
    ):
        with pytest.raises(ValueError, match=match):
            _core.Votes(**(arrays | changes))
    votes = _core.Votes(**arrays)
    # 2^31 - 1 plus one was below the number of rows.
    for row, weight in ((2**31 - 1, 1.0), (2, 1.0), (0, np.inf), (0, np.nan)):
        with pytest.raises(ValueError, match=r"row numbers|finite"):
            votes.shortlist(np.array([[row]], np.int32), np.array([[weight]], np.float32), 1e-6, 2, 1)


def test_scores_that_cancel_to_nan_are_put_last():
    """Sums of leaves and distances to means may both overflow."""
    none = {"child": np.empty(0, np.int32), "bias": np.empty(0, np.float32)}
    none |= {"feature": np.empty(0, np.int32), "weight": np.empty(0, np.float32)}
    trees = _core.InstanceTrees(
        1,
        2,
        **none,
        roots=np.array([~0, ~0], np.int32),
        weight_start=np.zeros(1, np.int64),
        leaf_start=np.array([0, 2], np.int64),
        leaf_label=np.array([0, 1], np.int32),
        leaf_value=np.array([3e38, 0.5], np.float32),
    )
    means = _core.LabelMeanIndex(
        (np.array([0, 1, 1], np.int64), np.zeros(1, np.int32), np.array([-3e38], np.float32), 1),
        np.ones(2),
        np.ones(2, np.uint8),
        1.0,
    )
    X = np.array([0, 1], np.int64), np.zeros(1, np.int32), np.array([3e38], np.float32)
    _, labels, scores = trees.top_reranked(X, 2, means, 30.0, True, 0.5, 1)
    assert labels.tolist() == [0, 1]
    assert scores[0] == 0.0
    assert scores[1] > 0.0


# --- scores and roots --------------------------------------------------------------


def test_embedded_labels_whose_scores_overflow():
    pytest.importorskip("torch")
    from metarank.text import LabelEmbedder
    from metarank.text.scores import ScoredLabels

    sizes = {"subword_dim": 4, "hidden_dim": 4, "embedding_dim": 4, "vocabulary_size": 80}
    texts, labels = ["red wine", "green tea", "red tea"] * 4, [[0], [1], [1]] * 4
    model = LabelEmbedder("id", "bow", n_jobs=1, n_epochs=1, **sizes).fit(texts, labels)
    model.label_vectors_ = np.full_like(model.label_vectors_, 3e38)
    model.label_bias_ = np.full_like(model.label_bias_, 3e38)
    with pytest.raises(ValueError, match="scores must be finite"):
        model.rank(texts)
    labels = ScoredLabels(model.label_vectors_, model.label_bias_)
    with pytest.raises(ValueError, match="scores must be finite"):
        labels.scores_of_pairs(np.full((1, 4), 10, np.float32), Candidates.all_labels(1, 2), 1)


def test_values_that_overflow_are_the_clients_fault(saved):
    pytest.importorskip("fastapi")
    from fastapi import HTTPException

    from metarank.apps.serve.answers import Answerer

    answerer = Answerer(load(saved / "dense"))
    body = json.dumps({"instance": [3e38] * 6}).encode()
    for answer in (answerer.rank, answerer.explain):
        with pytest.raises(HTTPException, match="422: scores must be finite"):
            answer(body)


@pytest.mark.parametrize(
    "root", [{"a": 1}, [1, 2], "text", None, 2.5, np.zeros((2, 3)), sp.csr_matrix((2, 3))]
)
def test_a_folder_without_a_model(tmp_path, root):
    persist.save(root, tmp_path / "M")
    with pytest.raises(ModelError, match=f"holds a {type(root).__name__}, and no model"):
        load(tmp_path / "M")


def alone(name):
    """A fitted shortlister by itself, and how many features and labels it is of."""
    data = makers.many_labels(30)
    return named_shortlisters()[name]().fit(data.X, data.Y), data.X.shape[1]


TREES = ["parabel", "xreg", "fastxml", "pfastxml", "pfastrexml"]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["one-vs-all", *TREES])
def test_extreme_rows_have_finite_scores_or_none(name):
    """Sums of them leave float32; the order of what is left, infinity and NaN, would be chance."""
    shortlister, d = alone(name)
    signs = np.where(np.arange(d) % 2, 1, -1)
    for row in (np.full(d, 3e38), np.full(d, -3e38), 3e38 * signs):
        X = sp.csr_matrix(row[None].astype(np.float32))
        for ask in (
            lambda X: shortlister.shortlist(X, 5).scores,
            lambda X: shortlister.score(X, Candidates.all_labels(1, 1200)),
        ):
            if name == "one-vs-all":
                with pytest.raises(ScoresNotFiniteError, match="X holds extreme values"):
                    ask(X)
            else:
                assert all(np.isfinite(values).all() for values in ask(X).values())


@pytest.mark.parametrize("value", [3e38, -3e38])
def test_scales_of_one_vs_all_that_overflow(tmp_path, value):
    shortlister, d = alone("one-vs-all")
    shortlister.save(tmp_path / "S")
    model = load(Attack(tmp_path / "S", tmp_path / "T").set("scale", slice(None), value).seal().folder)
    X = sp.csr_matrix(np.ones((1, d), np.float32))
    for ask in (lambda: model.shortlist(X, 5), lambda: model.score(X, Candidates.all_labels(1, 1200))):
        with pytest.raises(ScoresNotFiniteError, match="or the model does"):
            ask()


@pytest.mark.parametrize(("name", "value"), [("mean", 1e4), ("scale", 1e-30), ("weights", 1e30)])
def test_terms_between_labels_stay_within_single_precision(name, value):
    state = {"ridge": 30.0, "mean": np.zeros(2), "scale": 1.0, "weights": np.zeros((2, 3))}
    CrossLabel.from_state(state)
    state[name] = value if name == "scale" else np.full_like(state[name], value)
    with pytest.raises(ValueError, match=f"{name} of CrossLabel"):
        CrossLabel.from_state(state)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_probabilities_and_cuts_of_a_calibration_that_overflows(saved):
    """Whatever sizes a state may have, what comes of it is a number."""
    model = load(saved / "dense")
    model.thresholds_.calibrator_.mean_ = np.full(9, 1e300)
    model.thresholds_.calibrator_.scale_ = np.full(9, 1e-300)
    X = np.ones((1, 6), np.float32)
    for ask in (model.predict_proba, model.predict):
        with pytest.raises(ScoresNotFiniteError):
            ask(X)


@pytest.mark.parametrize(
    ("utf8", "ends"), [(b"\xff", [1]), (b"a\xc3", [2]), ("é".encode(), [1, 2]), ("aéb".encode(), [2, 4])]
)
def test_names_of_rows_are_texts(utf8, ends):
    with pytest.raises(ValueError, match=r"utf-8|within a character"):
        PackedStrings.from_state({"utf8": np.frombuffer(utf8, np.uint8), "ends": np.array(ends)})
    names = PackedStrings.of(["é", "", "\ud800", "a"])  # what texts of training rows may hold
    assert PackedStrings.from_state(names.get_state()) == names


@pytest.mark.parametrize("cut", [1, 7])
def test_values_that_begin_anywhere_are_aligned_for_the_core(tmp_path, cut):
    """The header tells where they begin; the core reads numbers of 4 and 8 bytes at their places."""
    np.save(tmp_path / "a.npy", np.arange(50_000.0))
    content = (tmp_path / "a.npy").read_bytes()
    (length,) = np.frombuffer(content[8:10], "<u2")
    header = content[10 : 10 + int(length)].rstrip() + b" " * cut + b"\n"
    shifted = content[:8] + len(header).to_bytes(2, "little") + header + content[10 + int(length) :]
    (tmp_path / "a.npy").write_bytes(shifted)
    array = map_npy(tmp_path / "a.npy")
    assert array.flags.aligned
    assert array.tolist() == list(range(50_000))


def test_a_folder_that_is_whole_loads(saved):
    for path in saved.iterdir():
        assert isinstance(load(path), MetaRanker)
