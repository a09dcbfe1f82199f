"""The interface: any container becomes canonical X or Y, once.

Which path X takes (dense rows or CSR) is a matter of its values, not of its
container: dense where at least a quarter of the entries are non-zero or there
are at most 32 columns, sparse otherwise. Explicit zeros do not count. A fitted
model fixes the path with `layout`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import chain
from math import isfinite
from typing import Any, Literal, NoReturn

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank.persist.trust import MOST_DECLARED
from metarank.types.candidates import canonical_csr
from metarank.types.containers import as_array, check_columns, is_row, plain_column
from metarank.types.label_table import LabelTable

DENSE_SHARE = 0.25
DENSE_COLUMNS = 32
# Ids that nothing bounds must be below: each label costs memory, whether or not it has a row.
MOST_IMPLIED_LABELS = 1 << 22

Layout = Literal["dense", "sparse"]
LabelKind = Literal["indicator", "lists", "ids", "graded"]
IdRule = Literal["auto", "names", "positions"]
_KINDS = {1: "vector", 2: "matrix (n, K) with K >= 1"}


class ScoresNotFiniteError(ValueError):
    """Values of X so large, or a model such, that scores leave the range of numbers."""


def finite_scores(scores: np.ndarray, most: float = np.inf) -> np.ndarray:
    """The scores; `ScoresNotFiniteError` where one is NaN, infinite or beyond `most`, so that none is shown.

    Examples
    --------
    >>> finite_scores(np.array([0.5, 2.0]))
    array([0.5, 2. ])
    """
    low, high = scores.min(initial=0.0), scores.max(initial=0.0)  # NaN where there is one
    within = isfinite(low) and isfinite(high) and max(-low, high) <= most
    if not within:
        raise ScoresNotFiniteError("scores must be finite: X holds extreme values, or the model does")
    return scores


def check_features(
    X: Any,
    *,
    n_features: int | None = None,
    layout: Layout | None = None,
    min_rows: int = 1,
    name: str = "X",
    estimator: str = "MetaRanker",
    allow_nan: bool = False,
    nan_hint: str = "",
) -> np.ndarray | sp.csr_matrix:
    """Features as float32: a C-contiguous ndarray (n, d), or a canonical CSR matrix.

    Parameters
    ----------
    X : array-like, scipy sparse matrix or array, pandas, polars or Arrow table, of shape (n, d)
        Any real dtype; missing values of a table are NaN. The input is never changed; a float32
        C-contiguous array or canonical CSR matrix is passed through without a copy.
    n_features : int or None
        The width a fitted model expects.
    layout : "dense", "sparse" or None
        The path a fitted model was trained with; None chooses by density.
    min_rows : int
        Fewest rows allowed.
    name, estimator : str
        How messages call the input, and who expects `n_features`.
    allow_nan : bool
        Whether NaN stands for a missing value.
    nan_hint : str
        What may be done where it is not, at the end of the message.

    Raises
    ------
    ValueError
        Not two-dimensional, too few rows, no column, wrong width, complex numbers, text, or a value
        that is NaN or infinite (also: too large for 32 bits), named by row and column.
    TypeError
        Entries that are not numbers at all.

    Examples
    --------
    >>> check_features([[1, 0], [0, 2]])
    array([[1., 0.],
           [0., 2.]], dtype=float32)
    >>> import scipy.sparse as sp
    >>> check_features(sp.eye(100, format="coo")).format
    'csr'
    """
    out = _sparse_features(X, name) if sp.issparse(X) else _dense_features(X, name)
    values = out.data if sp.issparse(out) else out
    bad = np.isinf(values) if allow_nan else ~np.isfinite(values)
    if bad.any():
        _raise_not_finite(*_first(out, bad), name, nan_hint)
    n, d = out.shape
    if n < min_rows:
        raise ValueError(
            f"Found array with {n} sample(s) (shape={out.shape}) while a minimum of {min_rows} is required: "
            f"{name}"
        )
    if n_features is not None and d != n_features:
        raise ValueError(
            f"{name} has {d} features, but {estimator} is expecting {n_features} features as input"
        )
    if d == 0 and n > 0:
        raise ValueError(
            f"Found array with 0 feature(s) (shape={out.shape}) while a minimum of 1 is required: {name}"
        )
    if layout is None:
        n_nonzero = np.count_nonzero(out.data if sp.issparse(out) else out)
        layout = "dense" if d <= DENSE_COLUMNS or n_nonzero >= DENSE_SHARE * n * d else "sparse"
    if layout_of(out) == layout:
        return out
    return sp.csr_matrix(out) if layout == "sparse" else np.asarray(sp.csr_matrix(out).toarray())


def check_savable_width(X: np.ndarray | sp.csr_matrix, *, keeps_rows: bool = False) -> None:
    """Refuse more features than a saved model may have.

    A model that keeps its training rows has files whose size bears the number out, see `persist.Limits`.
    """
    kept = X.nbytes if isinstance(X, np.ndarray) else X.data.nbytes + X.indices.nbytes
    most = max(MOST_DECLARED, kept) if keeps_rows else MOST_DECLARED
    if X.shape[1] > most:
        raise ValueError(
            f"X must have at most {most} features, since no model of more could be loaded, got {X.shape[1]}"
        )


def layout_of(X: np.ndarray | sp.csr_matrix) -> Layout:
    """The path checked features are on: "dense" or "sparse"."""
    return "sparse" if sp.issparse(X) else "dense"


def _dense_features(X: Any, name: str) -> np.ndarray:
    check_columns(X, name, "numbers", "")
    if isinstance(X, (list, tuple)) and len(X) and isinstance(X[0], Mapping):
        raise TypeError(f"{name} must hold rows of numbers or texts, got a dict at row 0: pass a data frame")
    values = as_array(X)
    holds_text = values.dtype.kind == "O" and any(isinstance(v, (str, bytes)) for v in values.flat)
    if values.dtype.kind in "US" or holds_text:
        raise ValueError(f"{name} must hold numbers, got text")
    if values.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name}")
    if values.dtype.kind not in "biufO":
        raise ValueError(f"{name} must hold numbers, got dtype {values.dtype}")
    if values.ndim != 2:
        raise ValueError(
            f"Expected 2D array, got {values.ndim}D array instead: {name} must have shape (n, d), got "
            f"{values.shape}. Reshape your data: {name}.reshape(1, -1) for one row, "
            f"{name}.reshape(-1, 1) for one feature"
        )
    with np.errstate(over="ignore", under="ignore"):
        return np.ascontiguousarray(values, dtype=np.float32)


def _sparse_features(X: Any, name: str) -> sp.csr_matrix:
    if X.ndim != 2:
        raise ValueError(f"{name} must have shape (n, d), got {X.shape}. Reshape your data")
    if X.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name}")
    if isinstance(X, sp.csr_matrix) and is_ready(X):
        return X
    with np.errstate(over="ignore", under="ignore"):
        return _canonical_csr(X)


def _first(matrix: np.ndarray | sp.csr_matrix, wanted: np.ndarray) -> tuple[float, int, int]:
    """Value, row and column of the first entry, of those stored, among those wanted."""
    if isinstance(matrix, np.ndarray):
        row, column = np.argwhere(wanted)[0].tolist()
        return matrix[row, column], row, column
    at = int(np.argmax(wanted))
    row = int(np.searchsorted(matrix.indptr, at, side="right")) - 1
    return matrix.data[at], row, int(matrix.indices[at])


def is_ready(X: Any) -> bool:
    """Whether X is a float32 CSR matrix, sorted, without duplicates, zeros, NaN and infinity, in one look.

    SciPy remembers what it says of order: later questions cost nothing.
    """
    if not isinstance(X, (sp.csr_matrix, sp.csr_array)) or X.ndim != 2 or X.data.dtype != np.float32:
        return False
    if X.indices.dtype != np.int32 or X.indptr.dtype != np.int32:
        return False
    if not (X.data.flags.c_contiguous and X.indices.flags.c_contiguous and X.indptr.flags.c_contiguous):
        return False
    if not _core.is_canonical(X.indptr, X.indices, X.data, X.shape[1]):
        return False
    X.has_sorted_indices = X.has_canonical_format = True
    return True


def _canonical_csr(matrix: Any) -> sp.csr_matrix:
    """Float32 CSR: sorted, duplicates summed, no explicit zeros, int32 indices where they fit."""
    ready = isinstance(matrix, sp.csr_matrix) and matrix.dtype == np.float32
    out = matrix if ready else sp.csr_matrix(matrix, dtype=np.float32)
    if out.nnz and not (out.indices.min() >= 0 and out.indices.max() < out.shape[1]):
        raise ValueError(f"the sparse matrix holds a column index outside [0, {out.shape[1]})")
    if np.any(out.data == 0) or not out.has_canonical_format:
        out = out.copy()  # scipy shares the index arrays even where it converts the data
        out.sum_duplicates()
        out.eliminate_zeros()
    return canonical_csr(out.data, out.indices, out.indptr, out.shape)


def _raise_not_finite(value: float, row: int, column: int, name: str, hint: str = "") -> NoReturn:
    what = "NaN" if np.isnan(value) else "infinity or a value too large for float32 (inf)"
    end = f": {hint}" if hint and np.isnan(value) else ""
    raise ValueError(f"{name} contains {what} at row {row}, column {column}{end}")


def check_labels(
    Y: Any,
    *,
    n_rows: int | None = None,
    n_labels: int | None = None,
    label_names: Sequence[str] | None = None,
    ids: IdRule = "auto",
    allow_no_labels: bool = False,
    name: str = "Y",
) -> tuple[sp.csr_matrix, list[str] | None, LabelKind]:
    """Relevances as a canonical float32 CSR matrix of values > 0, the label names, and the kind of input.

    Parameters
    ----------
    Y : one of
        * an indicator or graded matrix (n, L): ndarray, scipy sparse, or a table, whose column names
          become label names;
        * a list of label lists: names, or integer ids, see `ids`; a label repeated within a row counts once;
        * a vector (n,) of classes, one label per row: text or integers.
    n_rows : int or None
        Rows of X; must agree.
    n_labels : int or None
        Number of labels L; otherwise the width of a matrix, or the number of distinct names or ids.
    label_names : sequence of str or None
        Name of each label; otherwise the distinct names in lists, sorted.
    ids : "auto", "names" or "positions"
        What an integer in lists or in a vector is: a name, by value ("2" before "10"), looked up in
        `label_names` where these are given; or the place of a label in [0, L), the largest + 1 where L is not
        known. "auto": a name, unless `n_labels` or `label_names` tell the places.
    allow_no_labels : bool
        Whether L = 0 is fine.
    name : str
        How messages call the input.

    Returns
    -------
    Y : csr_matrix (n, L)
    label_names : list of str or None
    kind : "indicator", "graded", "lists" or "ids"
        "graded" if a matrix holds a value other than 0 and 1; "ids" if integers became names.

    Raises
    ------
    ValueError, TypeError
        Negative, NaN or infinite values, ids out of range or names unknown (the row is named), mixed
        ids and names, a wrong number of rows or labels; names that define the labels and are empty, occur
        twice (columns of a table) or differ by blanks around them alone.

    Examples
    --------
    >>> Y, names, kind = check_labels([["sea", "sun"], [], ["sun"]])
    >>> Y.toarray().tolist(), names, kind
    ([[1.0, 1.0], [0.0, 0.0], [0.0, 1.0]], ['sea', 'sun'], 'lists')
    >>> check_labels([[10], [2]])[1:]
    (['2', '10'], 'ids')
    """
    if Y is None:
        raise ValueError("this method requires y to be passed, but the target y is None")
    names = None if label_names is None else [str(label) for label in label_names]
    if names is not None and n_labels is not None and len(names) != n_labels:
        raise ValueError(f"label_names must have {n_labels} entries, got {len(names)}")
    if n_labels is None and names is not None:
        n_labels = len(names)

    for label in names or ():
        check_writable(label, "label_names")
    Y = plain_column(Y, name)
    kind: LabelKind
    by_name = ids == "names" or (ids == "auto" and n_labels is None)
    given, least_id = Y, 0
    if not (sp.issparse(Y) or _is_list_of_rows(Y)):
        check_columns(Y, name, "relevances, a column per label", f": pass one column, {name}[{{0!r}}]")
        Y = as_array(Y)
        if Y.ndim not in (1, 2):
            raise ValueError(f"{name} must have one or two dimensions, got shape {Y.shape}")
        if Y.ndim == 1 and not (Y.dtype == object and len(Y) and _is_list_of_rows(Y)):
            Y, least_id = _classes(Y, by_name, name), -(2**63)
    if sp.issparse(Y) or getattr(Y, "ndim", 1) == 2:
        out, kind = _label_matrix(Y, name)
        if names is None and hasattr(given, "columns"):
            names = [str(c) for c in getattr(given, "column_names", given.columns)]
            check_names_as_ids(names, f"the columns of {name}")
    else:
        out, names, kind = _listed(list(Y), n_labels, names, by_name, name, low=least_id)

    if n_rows is not None and out.shape[0] != n_rows:
        raise ValueError(
            f"Found input variables with inconsistent numbers of samples: X has {n_rows} rows, "
            f"{name} has {out.shape[0]}"
        )
    if n_labels is not None and out.shape[1] != n_labels:
        if label_names is not None:
            raise ValueError(f"label_names must hold one name per label ({out.shape[1]}), got {n_labels}")
        raise ValueError(f"{name} must have {n_labels} labels, got {out.shape[1]}")
    if out.shape[1] == 0 and not allow_no_labels:
        raise ValueError(f"{name} has no labels (shape={out.shape})")
    return out, names, kind


def _label_matrix(Y: Any, name: str) -> tuple[sp.csr_matrix, LabelKind]:
    if sp.issparse(Y) and Y.ndim != 2:
        raise ValueError(f"{name} must have two dimensions, got shape {Y.shape}")
    if Y.dtype.kind == "c":
        raise ValueError(f"Complex data not supported: {name}")
    if Y.dtype.kind not in "biufO":
        raise ValueError(f"{name} must hold numbers, got dtype {Y.dtype}")
    with np.errstate(over="ignore", under="ignore"):
        # The cast is made before the scan for zeros: int64 and float64 have values float32 has not.
        out = _canonical_csr(Y if sp.issparse(Y) else np.asarray(Y, np.float32))
    bad = ~(np.isfinite(out.data) & (out.data > 0))
    if bad.any():
        value, row, column = _first(out, bad)
        if not np.isfinite(value):
            _raise_not_finite(value, row, column, name)
        raise ValueError(f"{name} must hold values >= 0, got {value:g} at row {row}, column {column}")
    return out, "graded" if np.any(out.data != 1) else "indicator"


def _is_list_of_rows(Y: Any) -> bool:
    """Whether Y is a sequence whose entries are label lists or None, not numbers or text."""
    if isinstance(Y, np.ndarray):
        return Y.ndim == 1 and all(is_row(row) for row in Y)
    return isinstance(Y, (list, tuple)) and (len(Y) == 0 or any(is_row(row) for row in Y))


def _classes(values: np.ndarray, by_name: bool, name: str) -> list[list[Any]]:
    """A vector of classes as one-label rows."""
    if values.dtype.kind == "f":
        for row in np.flatnonzero(~np.isfinite(values))[:1]:
            _raise_not_finite(values[row], row, 0, name)
        for row in np.flatnonzero(values != np.floor(values))[:1]:
            raise ValueError(f"Unknown label type: {name} must hold classes, got {values[row]} at row {row}")
    if by_name and values.dtype.kind in "biuf" and {*np.unique(values).tolist()} in ({0, 1}, {-1, 1}):
        raise ValueError(
            f"{name} must hold all labels as a matrix (n, L), got one column of {values.min():g} and 1: use "
            f"{name}.reshape(-1, 1) for one label, names for two classes, and no OneVsRestClassifier"
        )
    if values.dtype.kind == "b":
        values = values.astype(np.int8)
    if values.dtype.kind in "if" and len(values) and values.min() < 0 and not by_name:
        values = values.astype(np.int64).astype(str)  # no place of a label is negative
    return [[v] for v in values.tolist()]


def check_same_order(**tables: Any) -> None:
    """Refuse data frames and columns whose rows have the same index in another order: they go by place.

    A mapping stands for what it holds. Indexes of other values tell nothing.

    Raises
    ------
    ValueError
        The message names both and what brings them into one order.
    """
    first: tuple[str, Any] | None = None
    for name, table in tables.items():
        parts = table.items() if isinstance(table, Mapping) else [(None, table)]
        for key, part in parts:
            index: Any = getattr(part, "index", None)
            called = name if key is None else f"{name}[{key!r}]"
            if not hasattr(index, "equals"):
                continue
            if first is None:
                first = called, index
            elif not index.equals(first[1]) and index.sort_values().equals(first[1].sort_values()):
                raise ValueError(
                    f"{called} must have its rows in the order of {first[0]}, got the same index in another "
                    f"order: give {called}.loc[{first[0]}.index]"
                )


def integer_names(names: Sequence[str] | None) -> bool:
    """Whether an integer in label lists is a name among these: most of them are integers.

    Examples
    --------
    >>> integer_names(["2", "10"]), integer_names(["sea", "10", "sun"]), integer_names(None)
    (True, False, False)
    """
    numbers = sum(name.removeprefix("-").isdecimal() for name in names or ())
    return numbers > 0 and 2 * numbers >= len(names or ())


def _listed(
    rows: list[Any], n_labels: int | None, names: list[str] | None, by_name: bool, name: str, *, low: int = 0
) -> tuple[sp.csr_matrix, list[str] | None, LabelKind]:
    """Label lists as an indicator matrix, the names, and whether these are integer ids, `low` or more.

    Integers are names or, unless `by_name`, the places of labels.
    """
    for i, row in enumerate(rows):
        if not is_row(row):
            raise TypeError(f"{name} must hold a list of labels per row, got {row!r} at row {i}")
    rows = [row.tolist() if isinstance(row, np.ndarray) else list(row) for row in rows]
    labels = list(chain.from_iterable(rows))
    counts = np.array([len(row) for row in rows], dtype=np.int64)
    row_of = np.repeat(np.arange(len(rows)), counts)
    if any(isinstance(label, str) for label in labels):
        ids, found = _ids_of_names(labels, row_of, names, name)
        if by_name and names is None:
            check_names_as_ids(found, name)
        return indicator(row_of, ids, (len(rows), len(found))), found, "lists"
    if by_name and labels:
        values = _ids_of_numbers(labels, row_of, name, low, 2**63 - 1)
        check_no_indicator(values, rows, name)
        distinct, first, column = np.unique(values, return_index=True, return_inverse=True)
        spelled = [str(value) for value in distinct.tolist()]
        ids, names = _ids_of_names(spelled, row_of[first], spelled if names is None else names, name)
        return indicator(row_of, ids[column], (len(rows), len(names))), names, "ids"
    ids = _ids_of_numbers(labels, row_of, name)
    if n_labels is None and ids.max(initial=-1) >= MOST_IMPLIED_LABELS:
        raise ValueError(
            f"{name} must hold label ids below {MOST_IMPLIED_LABELS} without a number of labels, got "
            f"{ids.max()} at row {row_of[ids.argmax()]}: pass a matrix"
        )
    width = n_labels if n_labels is not None else int(ids.max(initial=-1)) + 1
    check_no_indicator(ids, rows, name)
    if ids.max(initial=-1) >= width:
        at = int(np.argmax(ids >= width))
        raise ValueError(f"{name} must hold label ids in [0, {width}), got {ids[at]} at row {row_of[at]}")
    return indicator(row_of, ids, (len(rows), width)), names, "lists"


def indicator(rows: Any, ids: Any, shape: tuple[int, int]) -> sp.csr_matrix:
    """Canonical float32 CSR with a 1 at each of some places, which may repeat.

    Examples
    --------
    >>> indicator([0, 1, 0], [2, 0, 2], (2, 3)).toarray()
    array([[0., 0., 1.],
           [1., 0., 0.]], dtype=float32)
    """
    out = _canonical_csr(sp.coo_matrix((np.ones(len(ids), np.float32), (rows, ids)), shape=shape))
    out.data[:] = 1
    return out


def _ids_of_names(
    labels: list[Any], row_of: np.ndarray, names: list[str] | None, name: str
) -> tuple[np.ndarray, list[str]]:
    for label, row in zip(labels, row_of):
        if not isinstance(label, str):
            raise TypeError(f"{name} must hold label names or ids, not both: got {label!r} at row {row}")
    if names is not None:
        return LabelTable(len(names), names).ids_of(labels, name, row_of), names
    names = sorted(set(labels))
    id_of = {label: i for i, label in enumerate(names)}
    return np.fromiter(map(id_of.__getitem__, labels), np.int64, len(labels)), names


def check_writable(name: str, what: str) -> None:
    """Refuse a name that no file can hold, rather than when the model is saved."""
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(f"{what} must be names that UTF-8 can write, got {name!r}") from None


def check_names_as_ids(names: list[str], what: str) -> None:
    """Names that define the labels: not empty, and distinct without the blanks around them."""
    found: dict[str, str] = {}
    for label in names:
        bare = label.strip()
        if not bare:
            raise ValueError(f"{what} must be names, got the empty {label!r}")
        check_writable(label, what)
        if bare in found:
            how = "twice" if found[bare] == label else f"and {label!r}, which differ only in blanks"
            raise ValueError(f"{what} must be names of one label each, got {found[bare]!r} {how}")
        found[bare] = label


def _ids_of_numbers(
    labels: list[Any], row_of: np.ndarray, name: str, low: int = 0, high: int = 2**31 - 1
) -> np.ndarray:
    for label, row in zip(labels, row_of):
        if isinstance(label, (bool, np.bool_)) or not isinstance(label, (int, float, np.number)):
            raise TypeError(f"{name} must hold label ids or names, got {label!r} at row {row}")
        if not (float(label).is_integer() and low <= int(label) <= high):
            rule = f"in [{low}, 2^{high.bit_length()})"
            raise ValueError(f"{name} must hold integer label ids {rule}, got {label!r} at row {row}")
    return np.fromiter(map(int, labels), np.int64, len(labels))


def check_no_indicator(ids: np.ndarray, rows: Sequence[Any], name: str) -> None:
    """A nested list of zeros and ones can be read two ways; nearly always an indicator matrix is meant."""
    widths = {len(row) for row in rows}
    if len(widths) == 1 and max(widths) >= 2 and ids.max() <= 1:
        raise ValueError(
            f"{name} is a nested list of zeros and ones, which may be label ids or an indicator matrix; "
            f"pass scipy.sparse.csr_matrix({name}) for the indicator"
        )


def check_sample_weight(weight: Any, n: int) -> np.ndarray | None:
    """float64 (n,): finite, non-negative, not all zero; a number stands for all rows, None stays None."""
    if weight is None:
        return None
    w = np.asarray(weight)
    if w.dtype.kind not in "biuf":
        raise TypeError(f"sample_weight must hold numbers, got {weight!r:.40}")
    w = np.full(n, w, np.float64) if w.ndim == 0 else w.astype(np.float64)
    if w.shape != (n,):
        raise ValueError(f"sample_weight must have shape {(n,)}, got {w.shape}")
    wrong = w[~(np.isfinite(w) & (w >= 0))]
    if len(wrong) or not w.any():
        got = wrong[0] if len(wrong) else 0
        raise ValueError(f"sample_weight must be finite, non-negative and not all zero, got {got}")
    return w


def check_numbers(values: Any, name: str, n_rows: int | None = None, *, n_dims: int = 1) -> np.ndarray:
    """Finite float64 numbers, C-contiguous: a vector (n,), or with two dimensions a matrix (n, K), K >= 1.

    Examples
    --------
    >>> check_numbers([1, 2], "scores")
    array([1., 2.])
    """
    try:
        out = np.asarray(values, np.float64)
    except (ValueError, TypeError, OverflowError):
        raise ValueError(f"{name} must be numbers, got {_shown(values)}") from None
    if out.ndim != n_dims or (n_dims == 2 and out.shape[1] == 0):
        raise ValueError(f"{name} must be a {_KINDS[n_dims]}, got shape {out.shape}")
    if n_rows is not None and len(out) != n_rows:
        raise ValueError(f"{name} must have {n_rows} entries, got {len(out)}")
    bad = np.argwhere(~np.isfinite(out))
    if len(bad):
        raise ValueError(f"{name} must be finite, got {out[tuple(bad[0])]} at position {bad[0].tolist()}")
    return np.ascontiguousarray(out)


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."
