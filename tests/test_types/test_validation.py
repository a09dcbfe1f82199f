"""The interface: every container, one canonical form; every bad input, one clear line."""

import numpy as np
import pytest
import scipy.sparse as sp

from metarank.types.candidates import Candidates
from metarank.types.checks import check_features, check_labels
from metarank.types.given import check_candidates


def sparse_values(n=30, d=50, density=0.1):
    rng = np.random.default_rng(0)
    return sp.random(n, d, density, "csr", random_state=rng).toarray().round(3)


def same(a, b):
    assert type(a) is type(b)
    assert a.dtype == b.dtype == np.float32
    if sp.issparse(a):
        for part in ("indptr", "indices", "data"):
            x, y = getattr(a, part), getattr(b, part)
            assert x.dtype == y.dtype
            assert np.array_equal(x, y)
        assert a.shape == b.shape
        a.check_format()
        assert a.indices.dtype == np.int32
    else:
        assert np.array_equal(a, b)
        assert a.flags.c_contiguous


def containers(values):
    """The same matrix in every container."""
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    columns = [f"f{j}" for j in range(values.shape[1])]
    yield values
    yield np.asfortranarray(values)
    yield values.astype(object)
    yield values.tolist()
    forms = [sp.csr_matrix, sp.csc_matrix, sp.coo_matrix, sp.csr_array, sp.lil_matrix, sp.dok_matrix]
    for make in (*forms, sp.bsr_matrix, sp.coo_array):
        yield make(values)
    wide = sp.csr_matrix(values)
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    yield wide
    coo = sp.coo_matrix(values)
    halves = sp.coo_matrix(
        (
            np.concatenate([coo.data / 2, coo.data / 2, [0.0]]),
            (np.concatenate([coo.row, coo.row, [0]]), np.concatenate([coo.col, coo.col, [1]])),
        ),
        shape=values.shape,
    )
    yield halves  # duplicates and an explicit zero
    csr = sp.csr_matrix(values)
    for i in range(len(values)):  # unsorted
        row = slice(csr.indptr[i], csr.indptr[i + 1])
        csr.indices[row], csr.data[row] = csr.indices[row][::-1].copy(), csr.data[row][::-1].copy()
    csr.has_sorted_indices = False
    yield csr
    frame = pd.DataFrame(values, columns=columns)
    yield frame
    yield frame.astype(pd.SparseDtype(float, 0.0))
    yield frame.astype("Float64")
    yield pl.DataFrame(frame.to_dict("list"))
    yield pa.table(frame.to_dict("list"))
    yield pa.table(frame.to_dict("list")).to_batches()[0]


@pytest.mark.parametrize(("density", "kind"), [(0.1, sp.csr_matrix), (0.6, np.ndarray)])
def test_the_container_does_not_matter(density, kind):
    values = sparse_values(density=density)
    expected = check_features(values)
    assert isinstance(expected, kind)
    for X in containers(values):
        same(check_features(X), expected)
        for layout in ("dense", "sparse"):
            same(check_features(X, layout=layout), check_features(values, layout=layout))


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint8, np.uint64, np.int64, np.float16, np.float64, "longdouble"]
)
def test_every_real_dtype(dtype):
    values = (sparse_values() > 0).astype(dtype)
    same(check_features(values), check_features(values.astype(np.float32)))
    if dtype not in (np.float16, "longdouble"):  # scipy has no sparse float16
        same(check_features(sp.csr_matrix(values)), check_features(values))


def test_layout_rules():
    assert isinstance(check_features(np.zeros((3, 32))), np.ndarray)
    assert sp.issparse(check_features(np.zeros((3, 33))))
    at_quarter = np.zeros((1, 40))
    at_quarter[0, :10] = 1
    assert isinstance(check_features(at_quarter), np.ndarray)
    at_quarter[0, 9] = 0
    assert sp.issparse(check_features(at_quarter))
    explicit = sp.csr_matrix(np.ones((1, 40)))
    explicit.data[9:] = 0  # explicit zeros do not count
    assert sp.issparse(check_features(explicit))
    underflow = np.full((1, 40), 1e-60)  # zero as float32, in either container
    same(check_features(underflow), check_features(sp.csr_matrix(underflow)))


def test_the_input_is_left_alone():
    X = np.ones((3, 4), np.float32)
    assert check_features(X) is X
    messy = sp.csr_matrix(
        (np.array([1, 2, 0], np.float32), np.array([60, 3, 5]), np.array([0, 3])), shape=(1, 70)
    )
    before = (messy.data.copy(), messy.indices.copy())
    out = check_features(messy)
    assert out.indices.tolist() == [3, 60]
    assert np.array_equal(messy.data, before[0])
    assert np.array_equal(messy.indices, before[1])


def test_corrupt_sparse_indices():
    X = sp.csr_matrix(np.eye(3))
    X.indices[1] = 7
    with pytest.raises(ValueError, match=r"column index outside \[0, 3\)"):
        check_features(X)


def with_value(value, sparse, dtype=np.float64):
    X = np.zeros((5, 40), dtype)
    X[3, 7] = value
    return sp.csc_matrix(X) if sparse else X


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize(
    ("value", "word"), [(np.nan, "NaN"), (np.inf, "inf"), (-np.inf, "inf"), (1e39, "float32")]
)
def test_not_finite(sparse, value, word):
    with pytest.raises(ValueError, match=rf"data contains .*{word}.* at row 3, column 7"):
        check_features(with_value(value, sparse), name="data")


@pytest.mark.parametrize(
    ("X", "message"),
    [
        ([1.0, 2.0], "Reshape your data"),
        (3.0, "Reshape your data"),
        (np.zeros((2, 2, 2)), "Expected 2D array"),
        (sp.coo_array(np.ones(3)), "Reshape your data"),
        (np.empty((0, 4)), r"Found array with 0 sample\(s\)"),
        (sp.csr_matrix((0, 4)), r"Found array with 0 sample\(s\)"),
        (np.empty((4, 0)), r"0 feature\(s\) \(shape=\(4, 0\)\) while a minimum of 1 is required."),
        (np.ones((2, 2), complex), "Complex data not supported"),
        (sp.csr_matrix(np.ones((2, 2), complex)), "Complex data not supported"),
        ([["a", "b"]], "must hold numbers, got text"),
        (np.array([["1", 2]], object), "must hold numbers, got text"),
        (np.array([["2020-01-01"]], "datetime64[D]"), "must hold numbers"),
        ([[1, 2], [3]], "inhomogeneous|rectangular"),
    ],
)
def test_bad_features(X, message):
    with pytest.raises(ValueError, match=message):
        check_features(X)


def test_missing_values_of_tables_are_named():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    for frame in (
        pd.DataFrame({"a": [1.0, None]}),
        pd.DataFrame({"a": pd.array([1, None], "Int64")}),
        pl.DataFrame({"a": [1, None]}),
        pa.table({"a": [1, None]}),
    ):
        with pytest.raises(ValueError, match="NaN at row 1, column 0"):
            check_features(frame)


def test_objects_that_are_no_numbers():
    with pytest.raises(TypeError, match=r"argument must be .* string.* number"):
        check_features(np.array([[{"foo": "bar"}, 1.0]], object))


def test_width_and_layout_of_a_fitted_model():
    with pytest.raises(ValueError, match="X has 3 features, but MetaRanker is expecting 4 features as input"):
        check_features(np.ones((1, 3)), n_features=4)


# Labels


@pytest.mark.parametrize(
    "Y",
    [
        np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]]),
        np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], bool),
        np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], np.uint8),
        np.array([[1, 0, 1], [0, 0, 0], [0, 1, 0]], object),
        sp.csr_matrix([[1, 0, 1], [0, 0, 0], [0, 1, 0]]),
        sp.csc_array([[True, False, True], [False] * 3, [False, True, False]]),
        [[2, 0], [], [1]],
        [(0, 2, 2), (), [1.0]],
        [{0, 2}, set(), {1}],
        [np.array([0, 2], np.uint64), np.array([], int), np.array([1.0])],
        np.array([[0, 2], [], [1]], dtype=object),
    ],
)
def test_every_form_of_labels(Y):
    out, names, kind = check_labels(Y, n_rows=3, n_labels=3)
    assert out.toarray().tolist() == [[1, 0, 1], [0, 0, 0], [0, 1, 0]]
    assert out.dtype == np.float32
    assert out.indices.dtype == np.int32
    assert out.has_canonical_format
    assert names is None
    assert kind == ("lists" if not hasattr(Y, "ndim") or Y.ndim == 1 else "indicator")


def test_names_define_ids():
    out, names, kind = check_labels([["b", "a"], [], ["c", "b", "b"]])
    assert names == ["a", "b", "c"]
    assert out.toarray().tolist() == [[1, 1, 0], [0, 0, 0], [0, 1, 1]]
    assert kind == "lists"
    out, names, _ = check_labels([["b"]], label_names=["c", "b"])
    assert names == ["c", "b"]
    assert out.toarray().tolist() == [[0, 1]]
    with pytest.raises(ValueError, match="got 'x' at row 1"):
        check_labels([["b"], ["x"]], label_names=["c", "b"])


def test_classes():
    assert check_labels(np.array([2, 0]), ids="positions")[0].toarray().tolist() == [[0, 0, 1], [1, 0, 0]]
    assert check_labels(np.array([2.0, 0.0]), n_labels=4)[0].shape == (2, 4)
    out, names, _ = check_labels(np.array([-2, 1, -2]))
    assert names == ["-2", "1"]
    assert out.toarray().tolist() == [[1, 0], [0, 1], [1, 0]]
    out, names, _ = check_labels(["pop", "jazz", "pop"])
    assert names == ["jazz", "pop"]
    assert out.toarray().tolist() == [[0, 1], [1, 0], [0, 1]]
    assert check_labels(np.array(["x", "y"], object))[1] == ["x", "y"]


def test_tables_name_the_labels():
    import pandas as pd
    import polars as pl
    import pyarrow as pa

    content = {"sea": [1, 0], "sun": [0, 1]}
    for table in (pd.DataFrame(content), pl.DataFrame(content), pa.table(content)):
        out, names, kind = check_labels(table)
        assert (names, kind, out.toarray().tolist()) == (["sea", "sun"], "indicator", [[1, 0], [0, 1]])
    assert check_labels(pd.Series([["a"], ["b", "a"]]))[0].toarray().tolist() == [[1, 0], [1, 1]]


def test_graded():
    out, _, kind = check_labels(np.array([[0.5, 0], [3, 1]]))
    assert kind == "graded"
    assert out.data.tolist() == [0.5, 3, 1]


@pytest.mark.parametrize(
    ("Y", "error", "message"),
    [
        (None, ValueError, "requires y to be passed, but the target y is None"),
        (np.array([[1, -1.0]]), ValueError, "Y must hold values >= 0, got -1 at row 0, column 1"),
        (sp.csr_matrix([[0, 0], [0, -2]]), ValueError, "got -2 at row 1, column 1"),
        (np.array([[0, np.nan]]), ValueError, "Y contains NaN at row 0, column 1"),
        (np.array([[0, np.inf]]), ValueError, "Y contains infinity"),
        (np.array([0.0, np.nan]), ValueError, "Y contains NaN at row 1"),
        (np.array([0.0, 0.5]), ValueError, "Unknown label type.*0.5 at row 1"),
        (np.ones((2, 2), complex), ValueError, "Complex"),
        (np.array([["a", "b"]]), ValueError, "must hold numbers"),
        (np.zeros((2, 2, 2)), ValueError, "one or two dimensions"),
        (np.zeros((2, 0)), ValueError, "Y has no labels"),
        ([[], []], ValueError, "Y has no labels"),
        ([[0], [-1]], ValueError, "got -1 at row 1"),
        ([[0], [2**63]], ValueError, "got 9223372036854775808 at row 1"),
        ([[0], [1.5]], ValueError, "integer label ids.* got 1.5 at row 1"),
        ([[0], [float("nan")]], ValueError, "integer label ids.* got nan at row 1"),
        ([[0], [True]], TypeError, "got True at row 1"),
        ([[0], [None]], TypeError, "got None at row 1"),
        ([[0], 1], TypeError, "a list of labels per row, got 1 at row 1"),
        ([["a"], [1]], TypeError, "not both: got 1 at row 1"),
        ([[0, 1, 1], [1, 0, 0]], ValueError, "may be label ids or an indicator matrix"),
    ],
)
def test_bad_labels(Y, error, message):
    with pytest.raises(error, match=message):
        check_labels(Y)


def test_labels_must_agree_with_the_rest():
    with pytest.raises(ValueError, match="inconsistent numbers of samples: X has 3 rows, Y has 2"):
        check_labels([[0], [1]], n_rows=3)
    with pytest.raises(ValueError, match=r"ids in \[0, 2\), got 2 at row 1"):
        check_labels([[0], [2]], n_labels=2)
    with pytest.raises(ValueError, match="Y must have 3 labels, got 2"):
        check_labels(np.eye(2), n_labels=3)
    with pytest.raises(ValueError, match="label_names must have 3 entries, got 2"):
        check_labels(np.eye(3), n_labels=3, label_names=["a", "b"])
    assert check_labels(np.zeros((2, 0)), allow_no_labels=True)[0].shape == (2, 0)
    assert check_labels([], n_labels=3)[0].shape == (0, 3)


# Candidates


def test_candidates():
    lists = check_candidates([[2, 0, 2], []], 2, 3)
    assert lists.labels.tolist() == [0, 2]
    assert lists.indptr.tolist() == [0, 2, 2]
    scores = sp.coo_matrix(([0.5, 0.0], ([0, 0], [2, 1])), shape=(2, 3))
    from_matrix = check_candidates(scores, 2, 3)
    assert from_matrix.labels.tolist() == [1, 2]  # the explicit zero is a candidate
    assert from_matrix.scores["score"].tolist() == [0, 0.5]
    everything = Candidates.all_labels(2, 3)
    assert check_candidates(everything, 2, 3) is everything


@pytest.mark.parametrize(
    ("candidates", "error", "message"),
    [
        ([[0]], ValueError, "2 rows and 3 labels, got 1 and 3"),
        ([[0], [3]], ValueError, r"candidates must name known labels, by ids in \[0, 3\), got 3 at row 1"),
        (sp.csr_matrix((2, 4)), ValueError, "2 rows and 3 labels, got 2 and 4"),
        (sp.csr_matrix([[np.nan, 0, 0], [0, 0, 0]]), ValueError, "finite"),
        (np.zeros((2, 3)), TypeError, "got a dense array"),
        ("all", TypeError, "got str"),
        ([["a"], []], ValueError, "since its labels have no names"),
    ],
)
def test_bad_candidates(candidates, error, message):
    with pytest.raises(error, match=message):
        check_candidates(candidates, 2, 3)
