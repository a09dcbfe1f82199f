"""Saved models: the same answers, to the byte; damage is found; nothing is half-written."""

from __future__ import annotations

import errno
import json
import mmap
import os
import shutil
from pathlib import Path

import makers
import numpy as np
import pytest
import scipy.sparse as sp
from makers import contents

from metarank import MetaRanker, load, persist
from metarank.model.fitting.auto import named_shortlisters
from metarank.persist import MANIFEST, ModelError, trust
from metarank.persist.card import README
from metarank.persist.folder import Reader, Writer, digest_of
from metarank.scorers.neighbors.voting import LabelNeighbors, NeighborShortlister

FULL = {"n_folds": 2, "n_jobs": 1}


def answers(model, ds):
    rows = ds.texts if ds.X is None else ds.X
    small = model.n_labels_ <= 1000
    proba = model.predict_proba(rows)
    out = {
        "rank": model.rank(rows, k=3).scores,
        "labels": model.rank(rows, k=3).labels,
        "proba": proba if small else proba.data,
    }
    if small:
        out["scores"] = model.decision_function(rows)
    for metric in ("micro-f1", "macro-f1", "example-f1", "hamming", "subset-accuracy"):
        cut = model.predict(rows, optimize=metric)
        out[metric], out[f"{metric}, rows"] = cut.indices, cut.indptr
    return {name: np.asarray(values).tobytes() for name, values in out.items()}


def digests(folder: Path) -> dict[str, str]:
    return {n: e["sha256"] for n, e in json.loads((folder / MANIFEST).read_text())["files"].items()}


@pytest.fixture(scope="module")
def saved(tmp_path_factory):
    """A small saved model; not to be changed."""
    path = tmp_path_factory.mktemp("saved") / "M"
    makers.fitted("texts").save(path)
    return path


@pytest.fixture
def copy(saved, tmp_path):
    """A copy of it, to be damaged."""
    return Path(shutil.copytree(saved, tmp_path / "M"))


def rewrite(folder: Path, change) -> None:
    """Change the manifest and give it a digest that fits again."""
    manifest = json.loads((folder / MANIFEST).read_text())
    change(manifest)
    manifest["digest"] = digest_of(manifest)
    (folder / MANIFEST).write_text(json.dumps(manifest))


# --- the same answers ----------------------------------------------------------


@pytest.mark.parametrize(
    ("maker", "params"),
    [("dense", makers.QUICK), ("sparse", FULL), ("texts", makers.QUICK), ("many labels", makers.QUICK)],
    ids=["dense", "sparse", "texts", "many labels"],
)
def test_loaded_models_answer_as_the_fitted_one(maker, params, tmp_path):
    ds, model = makers.MAKERS[maker](), makers.fitted(maker, **params)
    model.save(tmp_path / "M")
    for verify in (True, False):
        loaded = load(tmp_path / "M", verify=verify)
        assert answers(loaded, ds) == answers(model, ds)
        assert loaded.get_params() == model.get_params()
        assert loaded.feature_columns_ == model.feature_columns_
        assert loaded.label_names_ == model.label_names_
    row = ds.take([0])
    assert str(loaded.explain(row, 0)) == str(model.explain(row, 0))
    loaded.save(tmp_path / "again")
    assert contents(tmp_path / "again") == contents(tmp_path / "M")


@pytest.mark.parametrize("name", ["parabel", "xreg", "one-vs-all"])
def test_loaded_shortlisters_answer_as_the_fitted_ones(name, tmp_path):
    """By themselves, and as stages of a model, where proposals and columns share their files."""
    ds = makers.many_labels()
    model = MetaRanker(shortlister=[name, "neighbors"], **makers.QUICK).fit(ds)
    assert all(any(s is t for t in model.scorers_) for s in model.shortlisters_)
    model.save(tmp_path / "M")
    assert answers(load(tmp_path / "M"), ds) == answers(model, ds)
    hashes = list(digests(tmp_path / "M").values())
    assert len(set(hashes)) == len(hashes)
    alone = named_shortlisters()[name]().fit(ds.X, ds.Y)
    persist.save(alone, tmp_path / "S")
    expected, found = alone.shortlist(ds.X, 7), load(tmp_path / "S").shortlist(ds.X, 7)
    assert found.labels.tobytes() == expected.labels.tobytes()
    assert [v.tobytes() for v in found.scores.values()] == [v.tobytes() for v in expected.scores.values()]


def test_arrays_are_mapped_and_no_pickle_is_used(saved, monkeypatch):
    import pickle

    def refuse(*args, **kwargs):
        raise AssertionError("pickle was used")

    for name in ("load", "loads", "dump", "dumps", "Unpickler", "Pickler"):
        monkeypatch.setattr(pickle, name, refuse)
    monkeypatch.setattr("metarank._util.npy._READ_WHOLE", 0)
    model = load(saved)
    arrays = [model.scorers_[2].means_.known, model.scorers_[3].log_prior_]
    assert all(is_mapped(a) for a in [model.inv_propensity_, *arrays])
    assert not model.inv_propensity_.flags.writeable
    for name in digests(saved):
        assert Path(name).suffix in (".npy", ".json")
    for path in saved.glob("*.npy"):
        np.load(path, allow_pickle=False)


def test_equal_contents_are_stored_once(tmp_path):
    makers.fitted("dense", **FULL).save(tmp_path / "M")
    hashes = list(digests(tmp_path / "M").values())
    assert len(set(hashes)) == len(hashes)
    state = {"a": np.arange(5), "b": [np.arange(5), np.arange(5, dtype=np.int32)]}
    state |= dict.fromkeys("cd", "x" * 3000)
    writer = Writer(tmp_path)
    encoded = writer.encode(state, "s")
    assert encoded["a"]["__array__"] == encoded["b"][0]["__array__"] == "s.a.npy"
    assert encoded["c"] == encoded["d"]
    assert sorted(writer.files) == ["s.a.npy", "s.b.1.npy", "s.c.json"]


def test_plain_values_come_back_as_they_were(tmp_path):
    state = {"none": None, "yes": True, "int": -3, "float": 0.1, "inf": float("-inf"), "tuple": (1, 2)}
    state |= {"text": "ä\n", "long": "ö" * 3000, "strings": [f"s{i}\n" for i in range(60)]}
    state |= {"nested": {"list": [1, [2.5, "x"], {"a": None}]}, "np": np.float32(0.5)}
    state |= {"empty": np.empty((0, 3), np.float32), "scalar": np.array(7), "bools": np.array([True])}
    writer = Writer(tmp_path)
    root = json.loads(json.dumps(writer.encode(state, "s")))
    back = Reader(tmp_path, {n: e["bytes"] for n, e in writer.files.items()}).decode(root)
    for name in ("empty", "scalar", "bools"):
        assert back[name].dtype == state[name].dtype
        assert back[name].shape == state[name].shape
        assert back[name].tolist() == state[name].tolist()
    expected = {**state, "tuple": [1, 2], "np": 0.5}
    for name in set(state) - {"empty", "scalar", "bools"}:
        assert back[name] == expected[name]


@pytest.mark.parametrize("value", [{1, 2}, object(), {1: 2}, {"__array__": 1}, np.array([None]), b"x", 1j])
def test_what_cannot_be_saved_is_a_type_error(value, tmp_path):
    with pytest.raises(TypeError, match=r"s\.a"):
        Writer(tmp_path).encode({"a": value}, "s.a" if isinstance(value, dict) else "s")


# --- a user's scorer -----------------------------------------------------------


def test_a_users_scorer_goes_round(tmp_path, monkeypatch):
    ds = makers.dense()
    model = MetaRanker(features=["prior", makers.MeanFeature(feature=2)], **makers.QUICK).fit(ds)
    model.save(tmp_path / "M")
    assert answers(load(tmp_path / "M"), ds) == answers(model, ds)
    monkeypatch.delitem(trust._REGISTERED, "MeanFeature")
    with pytest.raises(ValueError, match=r"'MeanFeature'.*metarank\.persist\.register"):
        load(tmp_path / "M")


def test_a_scorer_that_is_not_registered_cannot_be_saved(tmp_path):
    class Forgotten(makers.MeanFeature):
        pass

    model = MetaRanker(features=[Forgotten()], **makers.QUICK).fit(makers.dense())
    with pytest.raises(ValueError, match=r"'Forgotten'.*metarank\.persist\.register"):
        model.save(tmp_path / "M")
    assert list(tmp_path.iterdir()) == []


# --- damage ----------------------------------------------------------------------


def assert_damaged(folder: Path, match: str, verified: tuple[bool, ...] = (True,)) -> None:
    for verify in verified:
        with pytest.raises(ModelError, match=match) as caught:
            load(folder, verify=verify)
        assert "\n" not in str(caught.value)


def test_every_flipped_byte_and_every_cut_is_found(saved, copy):
    rng = np.random.default_rng(0)
    for path in sorted(copy.iterdir()):
        if path.name == README:
            continue
        whole = path.read_bytes()
        at = int(rng.integers(len(whole)))
        for damaged in (
            whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :],
            whole[:-1],
            whole[: len(whole) // 2],
            b"",
            whole + b"\0",
        ):
            path.write_bytes(damaged)
            assert_damaged(copy, "damaged|not a metarank model|incomplete")
        path.write_bytes(whole)
    load(copy)


def test_missing_extra_and_replaced_files(copy, tmp_path):
    name = sorted(digests(copy))[0]
    whole, both = (copy / name).read_bytes(), (True, False)
    (copy / name).write_bytes(whole + b"\0")
    assert_damaged(copy, "the manifest says", both)
    (copy / name).unlink()
    assert_damaged(copy, "missing", both)
    (copy / name).mkdir()
    assert_damaged(copy, "not a regular file", both)
    (copy / name).rmdir()
    (tmp_path / "elsewhere").write_bytes(whole)
    (copy / name).symlink_to(tmp_path / "elsewhere")
    assert_damaged(copy, "not a regular file", both)
    (copy / name).unlink()
    (copy / name).write_bytes(whole)
    (copy / "notes.txt").write_text("mine")
    assert_damaged(copy, "not part of the model")
    (copy / "notes.txt").unlink()
    load(copy)
    (copy / MANIFEST).unlink()
    assert_damaged(copy, "not a metarank model")


def _entry(manifest):
    return next(iter(manifest["files"].values()))


def _first_array(value):
    if isinstance(value, dict):
        if "__array__" in value:
            return value
        value = list(value.values())
    if isinstance(value, list):
        return next((a for a in map(_first_array, value) if a is not None), None)
    return None


@pytest.mark.parametrize(
    ("change", "match"),
    [
        (lambda m: m.update(format="other"), "format is 'other'"),
        (lambda m: m.update(format_version=99), "format version 99"),
        (lambda m: m.update(format_version=0), "format version 0; .* reads 1: fit and save the model again"),
        (lambda m: m.update(format_version="1"), "format version '1'"),
        (lambda m: m.pop("format"), "damaged"),
        (lambda m: m.pop("files"), "damaged"),
        (lambda m: m.pop("model"), "damaged"),
        (lambda m: m.update(files=[]), "damaged"),
        (lambda m: m["files"].update(x={}), "damaged"),
        (lambda m: _entry(m).update(sha256="0"), "checksum"),
        (lambda m: _entry(m).update(bytes=1), "the manifest says 1"),
        (lambda m: m["files"].update({"../x": {"bytes": 0, "sha256": ""}}), "not a name of a file"),
        (
            lambda m: m.update(model={"__array__": "../manifest.json", "dtype": "|u1", "shape": []}),
            "does not list",
        ),
        (lambda m: m.update(model={"__json__": "/etc/hostname"}), "does not list"),
        (lambda m: m.update(model={"__json__": "manifest.json"}), "does not list"),
        (lambda m: m.update(model={"__object__": "Popen", "state": {}}), "'Popen', which is not known"),
        (lambda m: m.update(model={"__object__": "MetaRanker", "state": {}}), "cannot be read"),
        (
            lambda m: m.update(model={"__object__": "MetaRanker", "state": {"params": {"no": 1}}}),
            "cannot be read",
        ),
        (lambda m: m.update(model={"__object__": "MetaRanker"}), "cannot be read"),
        (lambda m: _first_array(m["model"]).update(dtype="<f2"), "the manifest says"),
        (lambda m: _first_array(m["model"]).update(shape=[1, 2, 3]), "the manifest says"),
    ],
)
def test_changed_manifests(copy, change, match):
    rewrite(copy, change)
    assert_damaged(copy, match)
    whole = json.loads((copy / MANIFEST).read_text())
    (copy / MANIFEST).write_text(json.dumps({**whole, "digest": "0"}))
    assert_damaged(copy, "is damaged|not a metarank model|format version")


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "3", "null", "{}", "\x00\xff", "[" * 100_000, '{"format": "metarank-model"}']
)
def test_manifests_that_are_none(copy, text):
    (copy / MANIFEST).write_text(text, encoding="latin-1")
    assert_damaged(copy, "damaged")


def test_loading_reads_no_array(copy, monkeypatch):
    """Arrays are mapped, and indexes over them wait for the first question."""
    for name in ("InvertedIndex", "LabelTrees", "LabelMeanIndex", "LabelText"):
        monkeypatch.setattr(f"metarank._core.{name}", None)
    monkeypatch.setattr("metarank._util.npy._READ_WHOLE", 0)
    for verify in (True, False):
        model = load(copy, verify=verify)
        arrays = [a for scorer in model.scorers_ for a in _arrays(scorer.get_state())]
        assert arrays
        assert all(is_mapped(a) for a in arrays)


@pytest.mark.skipif(os.name != "posix", reason="limits of a process")
def test_where_no_more_files_may_be_open_the_folder_is_not_blamed(saved, monkeypatch):
    """Small arrays hold no descriptor, so that many models fit in; mapped ones do, and the error says so."""
    import resource

    before = resource.getrlimit(resource.RLIMIT_NOFILE)
    least = max(int(name) for name in os.listdir("/dev/fd")) + 4
    resource.setrlimit(resource.RLIMIT_NOFILE, (least, before[1]))
    models = []
    try:
        models += [load(saved) for _ in range(20)]
        monkeypatch.setattr("metarank._util.npy._READ_WHOLE", 0)
        for verify in (True, False):
            with pytest.raises(OSError, match="open files") as caught:
                models += [load(saved, verify=verify) for _ in range(20)]
            assert caught.value.errno == errno.EMFILE
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, before)


def is_mapped(array) -> bool:
    """Whether the values of an array lie in a mapped file."""
    while isinstance(array, np.ndarray) and array.base is not None:
        array = array.base
    return isinstance(array, (np.memmap, mmap.mmap))


def _arrays(value):
    if sp.issparse(value):
        return [value.data, value.indices, value.indptr]
    if isinstance(value, np.ndarray):
        return [value]
    children = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return [array for child in children for array in _arrays(child)]


def test_a_scorer_that_proposes_and_describes_is_one_object(tmp_path):
    model = makers.fitted("many labels", **makers.QUICK, shortlister="parabel")
    model.save(tmp_path / "M")
    loaded = load(tmp_path / "M")
    assert loaded.shortlisters_[0] is next(s for s in loaded.scorers_ if type(s).__name__ == "Parabel")
    assert loaded.choices_ == model.choices_ != []


def test_unverified_loads_still_fail_in_one_line(copy):
    """Without the checksums, what does not even parse is found where it is read."""
    for path in sorted(copy.glob("*.npy")):
        whole = path.read_bytes()
        for damaged in (b"", b"\x93NUMPY", whole[:40], b"PK\x03\x04" + whole, whole[:100] + b"\0" * 28):
            path.write_bytes(damaged)
            with pytest.raises(ModelError) as caught:
                load(copy, verify=False)
            assert "\n" not in str(caught.value)
        path.write_bytes(whole)


@pytest.mark.parametrize("kind", ["absent", "file", "empty folder", "other folder"])
def test_what_is_no_model(tmp_path, kind):
    path = tmp_path / "P"
    if kind == "file":
        path.write_text("x")
    elif kind != "absent":
        path.mkdir()
        if kind == "other folder":
            (path / "x.txt").write_text("x")
    assert_damaged(path, "not a metarank model")


# --- writing ---------------------------------------------------------------------


def test_saving_replaces_an_earlier_model_and_a_mapped_one_survives(tmp_path):
    first, second = makers.fitted("texts"), makers.fitted("dense")
    first.save(tmp_path / "M")
    mapped = load(tmp_path / "M")
    second.save(tmp_path / "M")
    assert answers(mapped, makers.texts()) == answers(first, makers.texts())
    assert answers(load(tmp_path / "M"), makers.dense()) == answers(second, makers.dense())
    (tmp_path / "E").mkdir()
    second.save(tmp_path / "E")
    second.save(str(tmp_path / "deep" / "er" / "M"))
    assert contents(tmp_path / "M") == contents(tmp_path / "E") == contents(tmp_path / "deep" / "er" / "M")
    (tmp_path / "link").symlink_to(tmp_path / "M")
    first.save(tmp_path / "link")
    assert (tmp_path / "link").is_symlink()
    assert contents(tmp_path / "M") == contents(tmp_path / "link") != contents(tmp_path / "E")
    assert sorted(os.listdir(tmp_path)) == ["E", "M", "deep", "link"]


def test_saving_refuses_what_is_no_model(tmp_path):
    model = makers.fitted("dense")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("x")
    (tmp_path / "file").write_text("x")
    others = ['{"name": "my extension"}', '{"files": ["a.js"]}', '{"files": {}, "fo', "[" * 100_000, "[]"]
    for i, manifest in enumerate(others):  # of other programs, or damaged: nobody knows whose files these are
        (tmp_path / f"other{i}").mkdir()
        (tmp_path / f"other{i}" / "manifest.json").write_text(manifest)
    for path in (tmp_path / "mine", tmp_path / "file", *tmp_path.glob("other*")):
        with pytest.raises(ValueError, match="a model needs a new folder"):
            model.save(path)
    for i, manifest in enumerate(others):
        assert (tmp_path / f"other{i}" / "manifest.json").read_text() == manifest
        shutil.rmtree(tmp_path / f"other{i}")
    with pytest.raises(NotADirectoryError):
        model.save(tmp_path / "file" / "M")
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "x"
    assert sorted(os.listdir(tmp_path)) == ["file", "mine"]


@pytest.mark.parametrize(
    "error", [OSError(errno.ENOSPC, "No space left on device"), KeyboardInterrupt()], ids=str
)
@pytest.mark.parametrize(
    ("call", "times"),
    [("fsync", (1, 2, 9, "last")), ("save", (1, 5)), ("rename", (1,))],
    ids=["fsync", "np.save", "rename"],
)
@pytest.mark.parametrize("earlier", [True, False], ids=["replacing", "new"])
def test_a_failure_leaves_what_was_there(tmp_path, monkeypatch, call, times, error, earlier):
    if earlier:
        makers.fitted("dense").save(tmp_path / "M")
        before = contents(tmp_path / "M")
    module = np if call == "save" else os
    real = getattr(module, call)
    for n in times:
        stop = 1 + len(digests_of_texts()) if n == "last" else n
        calls = 0

        def failing(*args, **kwargs):
            nonlocal calls
            calls += 1
            if calls == stop:  # noqa: B023
                raise error
            return real(*args, **kwargs)

        monkeypatch.setattr(module, call, failing)
        with pytest.raises(type(error)):
            makers.fitted("texts").save(tmp_path / "M")
        monkeypatch.undo()
        assert os.listdir(tmp_path) == (["M"] if earlier else [])
        if earlier:
            assert contents(tmp_path / "M") == before
            load(tmp_path / "M")


def digests_of_texts() -> list[str]:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        makers.fitted("texts").save(Path(folder) / "M")
        return sorted(digests(Path(folder) / "M"))


def test_saved_files_get_the_usual_permissions(tmp_path):
    makers.fitted("dense").save(tmp_path / "M")
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "M").stat().st_mode & 0o777 == 0o777 & ~mask
    assert {p.stat().st_mode & 0o777 for p in (tmp_path / "M").iterdir()} == {0o666 & ~mask}


def test_parts_of_a_loaded_model_share_the_index_of_the_training_rows(tmp_path):
    ds = makers.sparse()
    parts = [LabelNeighbors(k=3), NeighborShortlister(ks=(3,))]
    MetaRanker(features=parts, ranker="logistic", **FULL).fit(ds).save(tmp_path / "M")
    model, other = load(tmp_path / "M"), load(tmp_path / "M")
    near, votes = model.scorers_
    assert near.rows_ is votes.rows_
    assert near.rows_ is not other.scorers_[0].rows_
    assert answers(other, ds) == answers(model, ds)


@pytest.mark.parametrize("code", [errno.ENOSPC, errno.EROFS], ids=errno.errorcode.get)
def test_errors_of_writing_name_the_model(code, tmp_path, monkeypatch):
    """Not the hidden folder beside it."""

    def refuse(place, *_):
        raise OSError(code, os.strerror(code), str(place))

    monkeypatch.setattr("metarank._util.files.os.mkdir", refuse)
    path = tmp_path / "model"
    for act in (persist.check_target, lambda path: persist.save({}, path)):
        with pytest.raises(OSError, match=os.strerror(code)) as error:
            act(path)
        assert (error.value.errno, error.value.filename) == (code, str(path))
