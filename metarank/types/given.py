"""`Given`: what rows have besides X: scored candidates, features of pairs, words in their order."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._util.modules import outside
from metarank._util.printable import first_few
from metarank.types.candidates import Candidates, canonical_csr, stored_where
from metarank.types.checks import check_no_indicator, check_writable
from metarank.types.containers import as_list, is_row, plain_column
from metarank.types.label_table import LabelTable
from metarank.types.texts import WordRows

# The source of candidates that were given without a name, and the feature of pairs that was.
UNNAMED, UNNAMED_FEATURE = "given", "pair"
# Columns of a long table; without a source, its pairs are those of `UNNAMED`.
ROW, LABEL, SOURCE, SCORE = "row", "label", "source", "score"
_FORMS = (
    "a sparse matrix (n, L), Candidates, n lists of labels or of (label, score), or a table with the columns "
    "row, label and score"
)


@dataclass(frozen=True, eq=False)
class PairTable:
    """Pairs in any order, one an entry of each list, as in a file.

    Parameters
    ----------
    row : int array (m,)
        Positions of rows, from 0.
    label : sequence of m labels, ids or names
    score : float array (m,)
    source : list of m str, or None
        None if all pairs are of one source.
    written : bool
        Whether labels are texts of a file, in which an id is written in digits.
    """

    row: np.ndarray
    label: Sequence[Any]
    score: np.ndarray
    source: Sequence[str] | None = None
    written: bool = False


@dataclass(frozen=True, eq=False)
class Given:
    """Candidates and features of the pairs of n rows, by name.

    Parameters
    ----------
    n_rows, n_labels : int
    scores : dict of source name to canonical float32 CSR (n, L)
        The stored entries, zeros included, are the candidates of the source.
    features : dict of name to canonical float32 CSR (n, L)
        A pair that is not stored has no value.
    unscored : frozenset of (parameter, name)
        Sources, ("candidates", name), and features, ("pair_features", name), that were given as labels alone.
    words : WordRows or None
        The words of the rows' texts in their order, where a source looks at them.

    Examples
    --------
    >>> scores = sp.csr_matrix(np.float32([[0.5, 0, 0.2], [0, 0.1, 0]]))
    >>> given = Given(2, 3, {"bm25": scores})
    >>> given[1:].scores["bm25"].indices, given.candidates("bm25").labels
    (array([1], dtype=int32), array([0, 2, 1], dtype=int32))
    """

    n_rows: int
    n_labels: int
    scores: Mapping[str, sp.csr_matrix] = field(default_factory=dict)
    features: Mapping[str, sp.csr_matrix] = field(default_factory=dict)
    unscored: frozenset[tuple[str, str]] = frozenset()
    words: WordRows | None = None

    @property
    def shape(self) -> tuple[int, int]:
        """(n, L)"""
        return self.n_rows, self.n_labels

    def __getitem__(self, rows: Any) -> Given:
        """What is given of some rows: a slice, a mask or an array of positions."""
        at = np.arange(self.n_rows)[rows]
        return replace(
            self,
            n_rows=len(at),
            scores={name: of[at] for name, of in self.scores.items()},
            features={name: of[at] for name, of in self.features.items()},
            words=None if self.words is None else self.words[at],
        )

    @property
    def is_filled(self) -> np.ndarray:
        """bool (n,): rows of which anything is given."""
        out = np.zeros(self.n_rows, bool)
        for of in [*self.scores.values(), *self.features.values()]:
            out |= np.diff(of.indptr) > 0
        return out

    def as_arguments(self) -> dict[str, dict[str, sp.csr_matrix]]:
        """`candidates` and `pair_features` of the methods that answer, as far as there are any."""
        found = {"candidates": dict(self.scores), "pair_features": dict(self.features)}
        return {parameter: of for parameter, of in found.items() if of}

    def candidates(self, source: str) -> Candidates:
        """The pairs of a source, with its scores under its name."""
        of = self.scores[source]
        return Candidates.of_core(
            of.indptr.astype(np.int64), of.indices.astype(np.int32), self.n_labels, {source: of.data}
        )


def read_given(
    candidates: Any,
    pair_features: Any,
    n_rows: int | None,
    table: LabelTable,
    sources: Collection[str] = (),
    features: Collection[str] = (),
    *,
    lenient: bool = False,
) -> Given | None:
    """What a user gives of the pairs of n rows; None if nothing is given.

    Parameters
    ----------
    candidates : dict of source name to candidates, candidates of one source, or None
        Candidates of a source are a sparse matrix of scores (n, L), whose stored entries count, zeros
        included; `Candidates`, whose first score counts; a list with, for each row, (label, score) pairs, a
        dict of label to score, or labels, best first, which get the score 1 / place; or a table (pandas,
        polars, Arrow) with the columns row, label, score and, for several sources at once, source, which
        then come in the order of their names; those of a dict stay as they are.
    pair_features : dict of name to values of pairs, values of one feature, or None
        In the same forms. Labels without a value have the value 1.
    n_rows : int, or None to take it from what is given
    table : LabelTable
        Labels are ids or names.
    sources, features : collections of str
        Those of a fit: one that has no line in a table proposes nothing.
    lenient : bool
        Whether names that no label has are left out, with a warning of how many, as of a retriever that
        knows more labels than the model.

    Raises
    ------
    ValueError, TypeError
        An unknown label, a pair that occurs twice, a score that is not finite, scores in some rows only, a
        wrong number of rows or labels, an empty name of a source. The message names parameter and source.

    Examples
    --------
    >>> table = LabelTable(3, ["sea", "sun", "sand"])
    >>> given = read_given({"bm25": [[("sun", 2.5), ("sea", 0.5)], []]}, None, 2, table)
    >>> given.scores["bm25"].toarray()
    array([[0.5, 2.5, 0. ],
           [0. , 0. , 0. ]], dtype=float32)
    >>> read_given([["tea"], []], None, 2, table)
    Traceback (most recent call last):
    ValueError: candidates must name known labels, by ids in [0, 3) or names, got 'tea' at row 0
    """
    if candidates is None and pair_features is None:
        return None
    scores = _by_name(candidates, "candidates", UNNAMED, sources)
    values = _by_name(pair_features, "pair_features", UNNAMED_FEATURE, features)
    for name in values:
        if f"{name}: given" in values:
            raise ValueError(
                f"pair_features must have other names than columns of other features, got {name!r} and "
                f"{name + ': given'!r}, a flag of {name!r}"
            )
    if n_rows is None:
        n_rows = max((_rows_in(of) for of in [*scores.values(), *values.values()]), default=0)
    unscored = set()
    for parameter, items in (("candidates", scores), ("pair_features", values)):
        for name, of in items.items():
            ranked, what = parameter == "candidates", called(parameter, name)
            items[name], bare = _matrix_of(of, n_rows, table, what, ranked=ranked, lenient=lenient)
            if bare:
                unscored.add((parameter, name))
    return Given(n_rows, table.n_labels, scores, values, frozenset(unscored))


def called(parameter: str, name: str) -> str:
    """How messages call the candidates of a source, or a feature of pairs."""
    return parameter if name in (UNNAMED, UNNAMED_FEATURE) else f"{parameter}[{name!r}]"


def check_has_pairs(given: Given | None) -> None:
    """Raise ValueError if there are sources, none of which proposes anything."""
    if given is not None and given.scores and not any(of.nnz for of in given.scores.values()):
        raise ValueError(f"candidates must hold a pair at least, got none in {given.n_rows} rows")


def check_names_given(given: Given | None, sources: Collection[str], features: Collection[str]) -> None:
    """Raise ValueError unless exactly the sources and features of a fit are given."""
    for parameter, wanted, found in (
        ("candidates", sources, () if given is None else given.scores),
        ("pair_features", features, () if given is None else given.features),
    ):
        if set(wanted) != set(found):
            rule = f"must hold those of the fit, {', '.join(map(repr, wanted))}" if wanted else "must be None"
            raise ValueError(f"{parameter} {rule}: got {', '.join(map(repr, found)) or 'none'}")


def width_of(candidates: Any) -> int | None:
    """The number of labels that the matrices among given candidates have; None if there is no matrix."""
    items = _by_name(candidates, "candidates", UNNAMED).values()
    widths = [of.n_labels for of in items if isinstance(of, Candidates)]
    widths += [int(of.shape[1]) for of in items if sp.issparse(of)]
    return max(widths, default=None)


def check_candidates(
    candidates: Any, n_rows: int, labels: int | LabelTable, *, name: str = "candidates", lenient: bool = False
) -> Candidates:
    """A user's shortlist as `Candidates`.

    Parameters
    ----------
    candidates : Candidates, or what `read_given` takes of one source
        Labels are ids or, where `labels` knows names, names. A label that a row lists twice counts once.
    n_rows : int
    labels : int or LabelTable
        The number of labels L, or the labels.
    name : str
        How the caller calls the argument, for messages.
    lenient : bool
        As in `read_given`.

    Raises
    ------
    ValueError, TypeError
        A wrong number of rows or labels, unknown labels, scores that are not finite; a nested list of zeros
        and ones that is meant for an indicator matrix.

    Examples
    --------
    >>> check_candidates([[2, 0], []], 2, 3).labels
    array([0, 2], dtype=int32)
    """
    table = labels if isinstance(labels, LabelTable) else LabelTable(labels)
    if isinstance(candidates, Candidates) and (candidates.n_rows, candidates.n_labels) == (
        n_rows,
        table.n_labels,
    ):
        return candidates
    matrix, _ = _matrix_of(candidates, n_rows, table, name, once=False, lenient=lenient)
    out = Candidates(matrix.indptr, matrix.indices, table.n_labels)
    if sp.issparse(candidates):
        return replace(out, scores={"score": matrix.data})
    if (
        isinstance(candidates, list)
        and table.n_labels > 1
        and all(
            isinstance(row, list) and len(row) == table.n_labels and not isinstance(row[0], str)
            for row in candidates
        )
    ):
        check_no_indicator(out.labels, candidates, name)
    return out


def check_rejected(negatives: Any, Y: sp.csr_matrix, table: LabelTable) -> Candidates:
    """Rejected pairs of the rows of Y (n, L), as `check_candidates`: of a matrix all stored entries count.

    Raises
    ------
    ValueError, TypeError
        As `check_candidates`; if a pair is rejected and relevant.
    """
    rejected = check_candidates(plain_column(negatives, "negatives"), Y.shape[0], table, name="negatives")
    both = np.flatnonzero(rejected.values_of(Y) > 0)
    if len(both):
        row, label = int(rejected.row_of_pair[both[0]]), table.shown(int(rejected.labels[both[0]]))
        raise ValueError(f"negatives must not hold labels of Y, got {label!r} at row {row} in both")
    return rejected


# --- one source after another ------------------------------------------------------


def _by_name(values: Any, parameter: str, unnamed: str, known: Collection[str] = ()) -> dict[str, Any]:
    """Candidates or features by name, in the order given."""
    if values is None:
        return {}
    if _is_table(values):
        return _by_source(_pair_table(values, parameter), parameter, unnamed, known)
    if not isinstance(values, Mapping):
        return {unnamed: values}
    if not values:
        raise ValueError(f"{parameter} must hold a source at least, got an empty dict")
    _check_names(values, parameter)
    return dict(values)


def _by_source(
    pairs: PairTable, parameter: str, unnamed: str, known: Collection[str]
) -> dict[str, PairTable]:
    if pairs.source is None and (len(pairs.row) or not known):
        return {unnamed: pairs}
    source = np.asarray(pairs.source or (), object)
    if not len(source) and not known:
        raise ValueError(f"{parameter} must hold a pair at least, got an empty table")
    _check_names(source, parameter)
    out = {}
    for name in sorted({*source, *known}):  # the order of lines must not matter
        at = np.flatnonzero(source == name)
        label = [pairs.label[i] for i in at.tolist()]
        out[name] = PairTable(pairs.row[at], label, pairs.score[at], None, pairs.written)
    return out


def _check_names(names: Iterable[Any], parameter: str) -> None:
    for name in dict.fromkeys(names):
        if not isinstance(name, str) or not name.strip():
            raise ValueError(f"{parameter} must name its sources by texts, got {name!r:.80}")
        check_writable(name, parameter)


def _rows_in(of: Any) -> int:
    """The number of rows of what is given of one source."""
    if isinstance(of, Candidates):
        return of.n_rows
    if isinstance(of, PairTable):
        return int(of.row.max(initial=-1)) + 1
    return int(of.shape[0]) if sp.issparse(of) else len(of)


def _matrix_of(
    of: Any,
    n_rows: int,
    table: LabelTable,
    what: str,
    *,
    ranked: bool = False,
    once: bool = True,
    lenient: bool = False,
) -> tuple[sp.csr_matrix, bool]:
    """What is given of one source as canonical float32 CSR (n, L), and whether it is labels alone.

    `ranked`: labels without scores are the best first; `once`: a pair that occurs twice is an error;
    `lenient`: a name that no label has is none.
    """
    bare = isinstance(of, Candidates) and of.n_pairs > 0 and not of.scores
    if isinstance(of, Candidates):
        of = of.to_csr(of.final_score if of.scores else np.ones(of.n_pairs, np.float32))
    if sp.issparse(of):
        if of.dtype.kind not in "fiub":
            raise TypeError(f"{what} must hold numbers, got {of.dtype}")
        _check_shape(of.shape, n_rows, table, what)
        # A copy: what the user does to it later must not reach the model.
        with np.errstate(over="ignore"):  # what is no float32 is refused below
            out = sp.csr_matrix(of, dtype=np.float32, copy=True)
        stored = out.nnz
        out.sum_duplicates()
        if once and out.nnz < stored:
            raise ValueError(f"{what} must store a pair once, got some of them twice")
        out = canonical_csr(out.data, out.indices, out.indptr, out.shape)
    elif _is_table(of):
        pairs = _pair_table(of, what)
        own = list(dict.fromkeys(pairs.source or ()))
        if len(own) > 1:
            raise ValueError(f"{what} must hold pairs of one source, got {own[0]!r:.40} and {own[1]!r:.40}")
        out = _of_pairs(_known(pairs, table, what) if lenient else pairs, n_rows, table, what, once)
    else:
        pairs, bare = _pairs_of_lists(of, n_rows, table, what, ranked)
        out = _of_pairs(_known(pairs, table, what) if lenient else pairs, n_rows, table, what, once)
    wrong = np.flatnonzero(~np.isfinite(out.data))
    if len(wrong):
        row = int(np.searchsorted(out.indptr, wrong[0], side="right")) - 1
        label = table.called(int(out.indices[wrong[0]]))
        raise ValueError(f"{what} must hold finite scores, got {out.data[wrong[0]]} for {label} at row {row}")
    if len(table.removed):
        out = stored_where(out, ~np.isin(out.indices, np.asarray(table.removed)))
    return out, bare


def _check_shape(shape: tuple[int, int], n_rows: int, table: LabelTable, what: str) -> None:
    if shape != (n_rows, table.n_labels):
        raise ValueError(
            f"{what} must have {n_rows} rows and {table.n_labels} labels, got {shape[0]} and {shape[1]}"
        )


def _known(pairs: PairTable, table: LabelTable, what: str) -> PairTable:
    """The pairs of labels that are known, with a warning of the others."""
    known = [table.knows(label, written=pairs.written) for label in pairs.label]
    if all(known) or not any(known):  # names that are all unknown are refused by name
        return pairs
    unknown = list(dict.fromkeys(label for label, is_known in zip(pairs.label, known) if not is_known))
    warnings.warn(
        f"{what}: left out {known.count(False)} of {len(known)} pairs, of {len(unknown)} labels that the "
        f"model does not know: {first_few(unknown)}",
        stacklevel=outside(),
    )
    at = np.flatnonzero(known).tolist()
    source = None if pairs.source is None else [pairs.source[i] for i in at]
    label, score = [pairs.label[i] for i in at], np.asarray(pairs.score)[at]
    return replace(pairs, row=pairs.row[at], label=label, score=score, source=source)


def _of_pairs(pairs: PairTable, n_rows: int, table: LabelTable, what: str, once: bool) -> sp.csr_matrix:
    """The CSR matrix of pairs in any order; ValueError if one occurs twice that may not."""
    row = pairs.row
    if len(row) and not (row.min() >= 0 and row.max() < n_rows):
        wrong = int(row[(row < 0) | (row >= n_rows)][0])
        raise ValueError(f"{what} must hold rows in [0, {n_rows}), got {wrong}")
    label = table.ids_of(pairs.label, what, row, written=pairs.written)
    keys, first = np.unique(row * np.int64(table.n_labels) + label, return_index=True)
    if once and len(keys) < len(row):
        at = int(np.setdiff1d(np.arange(len(row)), first)[0])
        called = table.called(int(label[at]))
        raise ValueError(f"{what} must hold a pair once, got {called} twice at row {row[at]}")
    with np.errstate(over="ignore"):
        score = np.asarray(pairs.score).astype(np.float32)
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[first], minlength=n_rows))])
    return canonical_csr(score[first], label[first], indptr, (n_rows, table.n_labels))


def _pairs_of_lists(
    of: Any, n_rows: int, table: LabelTable, what: str, ranked: bool
) -> tuple[PairTable, bool]:
    """The pairs of n lists, each of labels, of (label, score), or a dict of label to score; and whether they
    are labels alone."""
    if (
        isinstance(of, np.ndarray)
        and of.ndim == 2
        and (of.dtype.kind == "f" or of.shape[1] == table.n_labels)
    ):
        raise TypeError(f"{what} must be {_FORMS}, got a dense array: pass scipy.sparse.csr_matrix(scores)")
    rows = as_list(of)
    if isinstance(rows, (str, bytes)) or not isinstance(rows, Sequence):
        raise TypeError(f"{what} must be {_FORMS}, got {type(of).__name__}")
    _check_shape((len(rows), table.n_labels), n_rows, table, what)
    for i, row in enumerate(rows):
        if not isinstance(row, Mapping) and not is_row(row):
            raise TypeError(
                f"{what} must hold a list of labels or of (label, score) a row, got {row!r:.80} at row {i}"
            )
    lists = [list(row.items()) if isinstance(row, Mapping) else list(row) for row in rows]
    row_of = np.repeat(np.arange(n_rows), np.array([len(row) for row in lists], np.int64))
    labels: Sequence[Any] = list(chain.from_iterable(lists))
    scored = [isinstance(item, (tuple, list)) and len(item) == 2 for item in labels]
    if not any(scored):
        scores = [1.0 / place if ranked else 1.0 for row in lists for place in range(1, len(row) + 1)]
        return PairTable(row_of, labels, np.array(scores, np.float64)), len(labels) > 0
    if not all(scored):
        at = scored.index(False)
        raise TypeError(
            f"{what} must hold a score of every label or of none, got {labels[at]!r:.80} at row {row_of[at]}"
        )
    labels, values = zip(*labels)
    return PairTable(row_of, labels, _numbers(values, row_of, what)), False


def _numbers(values: Iterable[Any], row: np.ndarray, what: str) -> np.ndarray:
    values = list(values)
    for value, at in zip(values, row):
        if isinstance(value, (str, bytes)) or not np.isscalar(value):
            raise TypeError(f"{what} must hold scores that are numbers, got {value!r:.80} at row {at}")
    return np.array(values, np.float64)


# --- tables ------------------------------------------------------------------------


def _is_table(values: Any) -> bool:
    return isinstance(values, PairTable) or (hasattr(values, "columns") and not sp.issparse(values))


def _pair_table(table: Any, what: str) -> PairTable:
    """The columns row, label, score and source of a table of pandas, polars or Arrow."""
    if isinstance(table, PairTable):
        return table
    names = [str(name) for name in getattr(table, "column_names", table.columns)]
    missing = [name for name in (ROW, LABEL, SCORE) if name not in names]
    if missing:
        shown = ", ".join(names[:10])
        raise ValueError(
            f"{what} must be a table with the columns row, label and score, got {shown}: no {missing[0]}"
        )
    column = {name: as_list(table[name]) for name in (ROW, LABEL, SCORE, SOURCE) if name in names}
    row = np.asarray(column[ROW])
    if row.size and row.dtype.kind not in "iu":
        raise TypeError(f"{what} must hold positions of rows in its column row, got {column[ROW][0]!r:.80}")
    row = row.astype(np.int64)
    return PairTable(row, column[LABEL], _numbers(column[SCORE], row, what), column.get(SOURCE))
