"""Dataset, ARFF, named sets, generators and stratified splits."""

import json
import os
import time
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.data import (
    Dataset,
    get,
    list_datasets,
    load,
    load_named,
    make_extreme,
    make_multilabel,
    write_xc,
)

BENCHMARKS = Path(os.environ.get("METARANK_DATA", Path(__file__).parents[2].parent / "shared" / "data"))
needs_benchmarks = pytest.mark.skipif(
    not (BENCHMARKS / "mlc").is_dir(), reason="benchmark sets are absent: set METARANK_DATA"
)


# Dataset


def test_dataset_takes_rows():
    ds = Dataset(
        np.eye(3), [["a"], ["b"], ["a", "b"]], titles=["x", "y", "z"], feature_names="fgh", name="toy"
    )
    part = ds.take([2, 0])
    assert part.X.tolist() == [[0, 0, 1], [1, 0, 0]]
    assert part.Y.toarray().tolist() == [[1, 1], [1, 0]]
    assert part.titles == ["z", "x"]
    assert (part.label_names, part.feature_names, part.name) == (["a", "b"], ["f", "g", "h"], "toy")
    assert ds.take(np.array([True, False, False])).n_rows == 1
    assert ds.take(slice(0, 0)).n_rows == 0
    assert ds.take([-1]).titles == ["z"]
    with pytest.raises(IndexError):
        ds.take([3])
    wide = Dataset(sp.random(50, 100, 0.2, "csr", random_state=0), np.ones((50, 1)))
    assert all(sp.issparse(wide.take([i]).X) for i in range(50)), "it keeps its layout"


def test_dataset_of_text_only():
    ds = Dataset(texts=["a", "b"], Y=[[0], [1]])
    assert (ds.n_rows, ds.n_features, ds.n_labels) == (2, 0, 2)
    assert Dataset(texts=["a", "b"]).Y.shape == (2, 0)
    assert repr(ds) == "Dataset('': 2 rows, no features, 2 labels, 1.00 labels per row, with text)"


def test_summary_is_plain():
    summary = Dataset(np.eye(3), sp.csr_matrix([[1, 0, 2], [0, 0, 0], [1, 0, 0]])).summary()
    assert json.loads(json.dumps(summary)) == summary
    assert summary["labels_per_row"] == 1
    assert summary["rows_without_label"] == 1
    assert summary["labels_without_row"] == 1
    assert summary["label_frequency_max"] == 2
    assert summary["graded"] is True


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({}, "at least one of X, Y and texts"),
        ({"X": np.eye(2), "Y": np.eye(3)}, "inconsistent numbers of samples"),
        ({"X": np.eye(2), "label_names": ["a"], "Y": np.eye(2)}, "one name per label .2., got 1"),
        ({"X": np.eye(2), "feature_names": ["a"]}, "feature_names must have 2 entries, got 1"),
        ({"Y": np.eye(2), "titles": ["a"]}, "titles must have 2 entries, got 1"),
        ({"Y": np.eye(2), "label_texts": ["a"]}, "label_texts must have 2 entries, got 1"),
        ({"X": [[np.nan]]}, "X contains NaN"),
    ],
)
def test_bad_dataset(arguments, message):
    with pytest.raises(ValueError, match=message):
        Dataset(**arguments)


# ARFF

MULAN = """% remark
@RELATION toy

@Attribute 'first one' numeric
@attribute colour {red, 'light blue'}
@attribute on {0,1}
@attribute "it\\'s" REAL
@attribute beach {0,1}
@attribute sea {0, 1}
@DATA
1.5, 'light blue', 1, -2e3, 1, 0
% remark
0,red,0,0,0,1
"""
XML = '<labels xmlns="http://m/labels"><label name="sea"><label name="beach"/></label></labels>'


def test_mulan(tmp_path):
    (tmp_path / "toy-train.arff").write_text(MULAN)
    (tmp_path / "toy.xml").write_text(XML)
    ds = load(tmp_path / "toy-train.arff")
    assert ds.label_names == ["beach", "sea"]
    assert ds.feature_names == ["first one", "colour=red", "colour=light blue", "on", "it's"]
    assert ds.X.tolist() == [[1.5, 0, 1, 1, -2000], [0, 1, 0, 0, 0]]
    assert ds.Y.toarray().tolist() == [[1, 0], [0, 1]]


def test_meka(tmp_path):
    head, _, rest = MULAN.partition("toy")
    (tmp_path / "a.arff").write_text(f"{head}'toy: -C -2'{rest}")
    assert load(tmp_path / "a.arff").label_names == ["beach", "sea"]
    (tmp_path / "a.arff").write_text(
        "@relation 'x: -C 1'\n@attribute l {0,1}\n@attribute f numeric\n@data\n{0 1,1 2.5}\n{}\n{1 3}\r\n"
    )
    ds = load(tmp_path / "a.arff")
    assert ds.X.tolist() == [[2.5], [0], [3]]
    assert ds.Y.toarray().tolist() == [[1], [0], [0]]


def test_sparse_arff_equals_dense(tmp_path):
    head = MULAN[: MULAN.lower().index("@data")] + "@data\n"
    (tmp_path / "toy.xml").write_text(XML)
    (tmp_path / "toy-train.arff").write_text(MULAN)
    (tmp_path / "toy-test.arff").write_text(head + "{0 1.5, 1 'light blue', 2 1,3 -2e3 , 4 1}\n{ 5 1 }\n")
    dense, sparse = (load(tmp_path / f"toy-{n}.arff") for n in ("train", "test"))
    assert dense.X.tolist() == sparse.X.tolist()  # what is left out is the first nominal value
    assert dense.Y.toarray().tolist() == sparse.Y.toarray().tolist()


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("numeric", "string", "line 4: an attribute must be a name and 'numeric' or {values}, got .* string"),
        ("{0, 1}", "{0, 1", "an attribute must be a name and 'numeric' or {values}, got 'sea {0, 1'"),
        ("1.5", "?", "line 11: attribute 'first one' has a missing value: fill it"),
        ("0,red", "0,green", "line 13: attribute 'colour' must be one of red, light blue, got 'green'"),
        ("0,red", "red", "line 13: expected 6 values, got 5"),
        ("0,red,0,0,0,1", "{9 1}", r"attribute number must lie in \[0, 6\), got '9'"),
        ("'light blue', 1,", "'light blue, 1,", "expected 6 values, got 2"),
        ("@DATA", "@stuff", "expected @relation, @attribute or @data"),
        (MULAN[MULAN.index("@DATA") :], "", "no @data section"),
        ("sea {0, 1}", "lake {0, 1}", "names the label 'sea', which is not an attribute"),
        ("sea {0, 1}\n@DATA\n1.5, 'light blue', 1, -2e3, 1, 0", "sea numeric\n@DATA\n1,red,0,1,1,2", "got 2"),
    ],
)
def test_bad_arff(tmp_path, old, new, message):
    assert old in MULAN
    (tmp_path / "toy.arff").write_text(MULAN.replace(old, new, 1))
    (tmp_path / "toy.xml").write_text(XML)
    with pytest.raises(ValueError, match=rf"toy\.arff: .*{message}"):
        load(tmp_path / "toy.arff")


def test_arff_needs_a_list_of_labels(tmp_path):
    (tmp_path / "toy.arff").write_text(MULAN)
    with pytest.raises(ValueError, match=r"the labels are not marked: put toy\.xml next to the file"):
        load(tmp_path / "toy.arff")
    (tmp_path / "toy.xml").write_text("<labels>")
    with pytest.raises(ValueError, match=r"toy\.xml is not XML"):
        load(tmp_path / "toy.arff")


# Named sets


def make_folder(folder):
    path = folder / "mlc" / "scene"
    path.mkdir(parents=True)
    write_xc(path / "train.svm.gz", make_multilabel(20, 5, 3))
    own = folder / "xmlc" / "own"
    own.mkdir(parents=True)
    write_xc(own / "train.txt", make_multilabel(10, 5, 3))
    return path


def test_named_sets(tmp_path, monkeypatch):
    path = make_folder(tmp_path)
    monkeypatch.delenv("METARANK_DATA", raising=False)
    assert list_datasets() == []
    with pytest.raises(FileNotFoundError, match="METARANK_DATA"):
        get("scene")
    monkeypatch.setenv("METARANK_DATA", str(tmp_path))
    assert [(r.name, r.task, r.path) for r in list_datasets()] == [
        ("scene", "mlc", path),
        ("own", "xmlc", tmp_path / "xmlc" / "own"),
    ]
    assert load_named("scene").n_rows == 20
    assert load_named("own", data_dir=tmp_path).name == "own"
    for name, split, message in (
        ("scene", "test", "no test file"),
        ("yeast", "train", "mlc/yeast"),
        ("scenes", "train", "'scenes' is not in .* Put its train and test files into mlc/scenes/"),
    ):
        with pytest.raises(FileNotFoundError, match=message):
            load_named(name, split)


@needs_benchmarks
@pytest.mark.parametrize(
    "name", ["birds", "emotions", "vowel", "yeast", "LastFM-ArtistTags", "EURLex-4K-partial"]
)
def test_benchmark_sets(name):
    record = next(r for r in list_datasets(BENCHMARKS) if r.name == name)
    sizes = json.loads((record.path / "META.json").read_bytes())
    for split in ("train", "test"):
        ds = load_named(name, split, data_dir=BENCHMARKS)
        expected = sizes[f"n_{split}"], sizes["n_features"], sizes["n_labels"]
        assert (ds.n_rows, ds.n_features, ds.n_labels) == expected
        assert ds.is_graded == (name == "LastFM-ArtistTags")


@needs_benchmarks
def test_parser_agrees_with_scikit_learn_and_is_faster():
    import gzip
    import io

    from sklearn.datasets import load_svmlight_file

    from metarank.data import parse_xc

    text = gzip.decompress((BENCHMARKS / "mlc" / "scene" / "train.svm.gz").read_bytes())
    body = text[text.index(b"\n") + 1 :]

    def best(run, times):
        seconds = []
        for _ in range(times):
            start = time.process_time()
            result = run()
            seconds.append(time.process_time() - start)
        return min(seconds), result

    theirs, (X, labels) = best(
        lambda: load_svmlight_file(io.BytesIO(body), multilabel=True, zero_based=True), 1
    )
    ours, (X_ours, Y) = best(lambda: parse_xc(text, n_jobs=1), 5)
    np.testing.assert_array_equal(X.astype(np.float32).toarray(), X_ours.toarray())
    assert [tuple(map(int, y)) for y in labels] == [tuple(np.flatnonzero(y)) for y in Y.toarray()]
    assert theirs > 5 * ours  # about 10 on an idle core


# Generators


def fingerprint(ds):
    X = ds.X.toarray() if sp.issparse(ds.X) else ds.X
    return X.tobytes() + ds.Y.toarray().tobytes()


@pytest.mark.parametrize("make", [make_multilabel, lambda **k: make_extreme(300, 200, 50, **k)])
def test_generators_are_seeded(make):
    assert fingerprint(make(seed=3)) == fingerprint(make(seed=3))
    assert fingerprint(make(seed=3)) != fingerprint(make(seed=4))


def test_make_multilabel_can_be_learned():
    from sklearn.linear_model import LogisticRegression

    ds = make_multilabel(600, 10, 5, noise=0.1)
    assert ds.Y.nnz == pytest.approx(2 * 600, abs=5)
    for label in range(5):
        y = ds.Y.toarray()[:, label]
        model = LogisticRegression(C=100).fit(ds.X[:300], y[:300])
        assert model.score(ds.X[300:], y[300:]) > 0.9
    sparse = make_multilabel(50, 400, 5, sparse=True)
    assert sp.issparse(sparse.X)
    np.testing.assert_allclose(np.sqrt(sparse.X.multiply(sparse.X).sum(axis=1)), 1, rtol=1e-5)


def test_make_extreme_matches_its_statistics():
    start = time.process_time()
    sizes = {"n_rows": 20_000, "n_labels": 3_000, "labels_per_row": 4, "nnz_per_row": 30}
    ds, complete = make_extreme(**sizes, missing=(0.55, 1.5)), make_extreme(**sizes).Y
    assert time.process_time() - start < 20
    assert complete.nnz / 20_000 == pytest.approx(4, rel=0.03)
    assert ds.X.nnz / 20_000 == pytest.approx(30, rel=0.05)
    assert np.all(complete.data == 1)
    assert (complete - complete.multiply(ds.Y)).nnz == complete.nnz - ds.Y.nnz  # seen pairs are true pairs
    np.testing.assert_allclose(np.sqrt(ds.X.multiply(ds.X).sum(axis=1)), 1, rtol=1e-5)
    frequency = np.sort(np.bincount(complete.indices, minlength=3_000))[::-1]
    assert frequency[0] > 50 * np.median(frequency)
    # Rare labels lose more than frequent ones.
    counts, kept = (np.bincount(Y.indices, minlength=3_000) for Y in (complete, ds.Y))
    frequent = counts > 200
    assert (
        kept[frequent].sum() / counts[frequent].sum() > 1.3 * kept[~frequent].sum() / counts[~frequent].sum()
    )


def test_missing_pairs_follow_the_propensities():
    from metarank.metrics.propensity import inv_propensity

    ds = make_extreme(30_000, 500, 20, nnz_per_row=2, missing=(0.55, 1.5))
    complete = make_extreme(30_000, 500, 20, nnz_per_row=2).Y
    counts, kept = (np.bincount(Y.indices, minlength=20) for Y in (complete, ds.Y))
    p = 1 / inv_propensity(complete, 0.55, 1.5)
    assert np.all(np.abs(kept - counts * p) < 5 * np.sqrt(counts * p * (1 - p)) + 1)


@pytest.mark.parametrize(
    ("make", "arguments", "message"),
    [
        (make_multilabel, {"labels_per_row": 6}, r"labels_per_row must lie in \(0, 5.4\), got 6"),
        (make_extreme, {"labels_per_row": 0.5}, "labels_per_row must lie in"),
        (make_extreme, {"nnz_per_row": 9999}, "nnz_per_row must lie in"),
    ],
)
def test_bad_generator_arguments(make, arguments, message):
    with pytest.raises(ValueError, match=message):
        make(**arguments)
