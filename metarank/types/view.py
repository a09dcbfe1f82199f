"""`TrainingView`: the training rows a scorer may see.

Every part reaches labels through a TrainingView only. A training row is described by a
TrainingView that does not contain it, a new row by the TrainingView of all rows, so that no
label can leak into the description of its own row.
"""

from __future__ import annotations

import copy
import heapq
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import KW_ONLY, dataclass, field
from functools import cached_property, partial
from itertools import pairwise
from typing import Any, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray
from scipy.sparse.csgraph import connected_components

from metarank import _core
from metarank.types.block_columns import BlockColumns
from metarank.types.candidates import stored_where
from metarank.types.given import Given
from metarank.types.label_names import LabelVectors, OtherNames
from metarank.types.texts import NameForms

T = TypeVar("T")
# Rows of features (n, d), float32; sparse ones are canonical.
Features: TypeAlias = np.ndarray | sp.csr_matrix

# Pairs described at once: more are no faster.
CHUNK_PAIRS = 200_000
# Labels that a fold is described without, where names are known. On held-out rows of fashion_styles 5 %
# cost .3 in nDCG@5 and .7 in F1 of rare labels, 2 % nothing.
HIDDEN_SHARE = 0.02
LEAST_TO_HIDE = 20


def fold_of_rows(
    n: int, n_folds: int, seed: int, X: Features | None = None, groups: np.ndarray | None = None
) -> NDArray[np.int32]:
    """The fold map: hash(seed, row number) mod K, int32 (n,). Labels are ignored in it.

    Rows that belong together share a fold, see `first_of_unit`: rows of X that say the same, since a copy of
    a held-out row tells its labels, and rows of a group. Without groups it is the fold of the first of them.
    Of a few rows all may share a fold; then the i-th of different content is in fold i mod K, so that no view
    is empty. With groups, units go one after another, the largest first, to the fold of fewest rows; fewer
    units than folds make as many folds as there are units.

    Examples
    --------
    >>> fold_of_rows(6, 3, seed=0).shape
    (6,)
    >>> fold_of_rows(4, 2, 0, np.float32([[1], [2], [1], [3]]))
    array([1, 0, 1, 1], dtype=int32)
    >>> fold_of_rows(5, 2, 0, groups=np.array([7, 4, 7, 4, 4]))
    array([1, 0, 1, 0, 0], dtype=int32)
    """
    first = first_of_unit(n, X, groups)
    if groups is not None:
        return _evenly_filled(first, n_folds, seed)
    fold = _core.fold_of_rows(n, n_folds, seed)[first]
    if np.any(fold != fold[:1]):
        return fold
    number = np.unique(first, return_inverse=True)[1]
    return (number if number.any() else np.arange(n)).astype(np.int32) % np.int32(n_folds)


def first_of_unit(n: int, X: Features | None, groups: np.ndarray | None) -> NDArray[np.int64]:
    """For each row the number of the first row that must be on its side of every division, int64 (n,).

    These are the rows of the same content (`same_content`) and those of the same group, and in turn the rows
    that belong with them. If copies would join groups to more than half of the rows, and to more than any
    group has, they are values that X takes often: then groups alone count. A single group cannot be divided,
    and does not count.

    Examples
    --------
    >>> X = np.float32([[1], [2], [1], [3], [4], [5], [6], [7]])
    >>> first_of_unit(8, X, np.array([0, 0, 1, 2, 3, 4, 5, 6]))
    array([0, 0, 0, 3, 4, 5, 6, 7])
    """
    content = np.arange(n) if X is None else same_content(X)
    if groups is None:
        return content
    _, first, group = np.unique(groups, return_index=True, return_inverse=True)
    if len(first) < 2:
        return content
    alike = (np.tile(np.arange(n), 2), np.concatenate([content, first[group]]))
    _, joined = connected_components(sp.csr_matrix((np.ones(2 * n, np.int8), alike), (n, n)), directed=False)
    if np.bincount(joined).max() > max(np.bincount(group).max(), n // 2):
        joined = group
    _, first, unit = np.unique(joined, return_index=True, return_inverse=True)
    return first[unit]


def _evenly_filled(first: np.ndarray, n_folds: int, seed: int) -> np.ndarray:
    """The units of rows, the largest first and equal ones in the order of a hash, each to the fold of fewest
    rows, int32 (n,)."""
    _, start, unit, size = np.unique(first, return_index=True, return_inverse=True, return_counts=True)
    order = np.lexsort((_core.fold_of_rows(len(first), 2**31 - 1, seed)[start], -size))
    filled = [(0, fold) for fold in range(n_folds)]
    out = np.empty(len(start), np.int32)
    for i, more in zip(order.tolist(), size[order].tolist()):
        rows, fold = filled[0]
        out[i] = fold
        heapq.heapreplace(filled, (rows + more, fold))
    return out[unit]


def same_content(X: Features) -> NDArray[np.int64]:
    """For each row the number of the first row of the same content, int64 (n,).

    What more than a tenth of the rows have in common, and more than two, is not a copy but a value that X
    takes often, as where features are few and coarse: such rows are each their own.

    Parameters
    ----------
    X : float32 ndarray (n, d) or canonical CSR

    Examples
    --------
    >>> same_content(np.float32([[1, 2], [3, 4], [1, 2], [0, 0]]))
    array([0, 1, 0, 3])
    """
    n = X.shape[0]
    digest = np.fromiter(_contents(X), np.int64, n)
    _, first, group, size = np.unique(digest, return_index=True, return_inverse=True, return_counts=True)
    return np.where(size[group] > max(2, n // 10), np.arange(n), first[group])


def _contents(X: Features) -> Iterator[int]:
    """A hash of each row; -0.0 is 0.0."""
    if isinstance(X, np.ndarray):
        yield from (hash((row + np.float32(0)).tobytes()) for row in X)
        return
    values = X.data + np.float32(0)
    for start, stop in pairwise(X.indptr.tolist()):
        yield hash((X.indices[start:stop].tobytes(), values[start:stop].tobytes()))


def hidden_labels(n_labels: int, n_folds: int, seed: int) -> NDArray[np.int32]:
    """For each label the fold that its rows are hidden from, or -1, int32 (L,).

    Each fold hides 2 % of the labels, one at least, or none of fewer than 20.

    So a ranker meets labels as they are when just added, known by their names alone, and learns what
    their other evidence is then worth.

    Examples
    --------
    >>> np.bincount(hidden_labels(100, 3, seed=0) + 1)
    array([94,  2,  2,  2])
    """
    n_hidden = max(1, round(HIDDEN_SHARE * n_labels)) if n_labels >= LEAST_TO_HIDE else 0
    out = np.full(n_labels, -1, np.int32)
    order = np.random.default_rng([seed, n_labels]).permutation(n_labels)
    for fold in range(n_folds):
        out[order[fold * n_hidden : (fold + 1) * n_hidden]] = fold
    return out


@dataclass(eq=False, repr=False)
class TrainingSet:
    """What all views of one fit share: X, Y, the fold map, and label-free state built once.

    Parameters
    ----------
    X : float32 ndarray (n, d), C-contiguous, or canonical float32 CSR
    Y : canonical float32 CSR (n, L), values > 0
    fold : int32 array (n,)
        Fold of each row.
    seed : int
    label_names : list of str or None
    label_text : float32 CSR (L, d) or None
        The labels' names in the feature space of X (one row per label), where names are known.
    label_spelling : float32 CSR (L, d) or None
        The same by the words spelled like those of the names, see `metarank.data.spelling`.
    other_names : dict of str to OtherNames
        Alternative names of the labels, "label_text" by their words and "label_spelling" by their spelling,
        where there are any.
    label_vectors : LabelVectors or None
        Vectors of the labels in the space of X, where a user gave any.
    words : list of str or None
        The words that the columns of X stand for, where they do.
    feature_scale : float32 array (d,) or None
        Factors that were applied to the columns of dense X; X divided by them is as the user gave it.
    targets : dict of str to CSR (n, L)
        The labels of each objective where there are several; Y then tells what is relevant for any.
    hidden_in : int32 array (L,), optional
        A fold for each label, or -1: the view without that fold shows no row of the label, so that the fold's
        rows are described as if the label were new. See `hidden_labels`.
    groups : int array (n,), optional
        Rows of the same group stay together wherever a scorer divides rows.
    given : Given, optional
        What others say of the pairs of the rows; sources that declare `reads_given` read it in place of X.
    blocks : sequence of BlockColumns
        The blocks of X, where it has several.
    name_forms : NameForms, optional
        The ways in which the labels are written, for sources that look for them in texts.
    """

    X: Features
    Y: sp.csr_matrix
    fold: np.ndarray
    _: KW_ONLY
    seed: int = 0
    label_names: list[str] | None = None
    label_text: sp.csr_matrix | None = None
    label_spelling: sp.csr_matrix | None = None
    other_names: dict[str, OtherNames] = field(default_factory=dict)
    label_vectors: LabelVectors | None = None
    words: list[str] | None = None
    feature_scale: np.ndarray | None = None
    targets: dict[str, sp.csr_matrix] = field(default_factory=dict)
    hidden_in: np.ndarray | None = None
    groups: np.ndarray | None = None
    given: Given | None = None
    blocks: Sequence[BlockColumns] = ()
    name_forms: NameForms | None = None
    # The block that X is, of several; what is shared goes by its name.
    _block: str = field(default="", init=False)
    # Pairs described at once, which bound memory and change no result.
    chunk_pairs: int = field(default=CHUNK_PAIRS, init=False)

    def __post_init__(self) -> None:
        self.fold = np.ascontiguousarray(self.fold, np.int32)
        self.n_folds: int = int(self.fold.max()) + 1 if len(self.fold) else 1
        self._shared: dict[str, Any] = {}
        self._locks: dict[str, threading.RLock] = {}
        self._lock = threading.Lock()

    def __getstate__(self) -> dict[str, Any]:
        """Without what can be built again."""
        return {k: v for k, v in self.__dict__.items() if k not in ("_shared", "_locks", "_lock")}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _shared={}, _locks={}, _lock=threading.Lock())

    def shows(self, rows: np.ndarray, labels: np.ndarray) -> NDArray[np.bool_]:
        """Bool (m,): of pairs, whether the view without the row's fold shows the label; see `hidden_in`."""
        if self.hidden_in is None:
            return np.ones(len(rows), bool)
        return self.hidden_in[labels] != self.fold[rows]

    def shared(self, key: str, build: Callable[[Features], T]) -> T:
        """State built once from the features of all rows, under a name. `build` is given X, never Y."""
        key += self._block
        with self._lock:
            own = self._locks.setdefault(key, threading.RLock())
        with own:  # folds that need different things do not wait for each other
            if key not in self._shared:
                self._shared[key] = build(self.X)
            return self._shared[key]  # type: ignore[no-any-return]

    def read_by(self, scorer: Any) -> Any:
        """What a source reads of all rows: X, or what is given of their pairs."""
        return self.given if scorer.reads_given else self.X

    def release(self, prefix: str) -> None:
        """Forget the shared state whose names begin with `prefix`; asked for again, it is built again."""
        with self._lock:
            for key in [key for key in self._shared if key.startswith(prefix)]:
                del self._shared[key]

    def part(self, rows: np.ndarray, fold: np.ndarray) -> TrainingSet:
        """A training set of some of the rows (ascending), with a fold map (len(rows),) of its own."""
        out = copy.copy(self)
        out.__setstate__(self.__getstate__())
        out.X, out.Y, out.fold = self.X[rows], self.Y[rows], np.ascontiguousarray(fold, np.int32)
        out.given = None if self.given is None else self.given[rows]
        out.targets = {name: Y[rows] for name, Y in self.targets.items()}
        out.groups = None if self.groups is None else self.groups[rows]
        out.n_folds = int(out.fold.max()) + 1 if len(rows) else 1
        return out

    def of_objective(self, name: str) -> TrainingSet:
        """The same rows with the labels of one objective; label-free state stays shared."""
        out = copy.copy(self)
        out.Y = self.targets[name]
        return out

    def block(self, name: str) -> BlockColumns:
        """The columns of a block."""
        return next(block for block in self.blocks if block.name == name)

    def of_block(self, name: str) -> TrainingSet:
        """The same rows with one block of X, and the texts of the labels by its words."""
        block, out = self.block(name), copy.copy(self)
        out.X = self.shared(f"block {block.name}", block.of)
        out._block = f" of {block.name}"
        out.label_text = self._text_of(block, "label_text")
        out.label_spelling = self._text_of(block, "label_spelling")
        out.other_names = {}
        for source, names in self.other_names.items() if block.words is not None else ():
            key = f"other names by {source} in {block.name}"
            out.other_names[source] = self.shared(key, partial(_names_within, names, block))
        out.words, out.feature_scale, out.blocks = block.words, None, ()
        return out

    def _text_of(self, block: BlockColumns, name: str) -> sp.csr_matrix | None:
        text: sp.csr_matrix | None = getattr(self, name)
        if text is None or block.words is None:
            return None
        return sp.csr_matrix(self.shared(f"{name} {block.name}", lambda X: block.of(text)))

    def view(self) -> TrainingView:
        """The TrainingView of all rows."""
        return TrainingView(self, np.ones(len(self.fold), bool))

    def without_fold(self, fold: int) -> TrainingView:
        """The TrainingView of the rows outside one fold."""
        hidden = None if self.hidden_in is None else self.hidden_in == fold
        return TrainingView(self, self.fold != fold, hidden)


class TrainingView:
    """A row set over a `TrainingSet`; the only way to labels.

    Attributes
    ----------
    mask : bool array (n,)
        Which rows of the training set are in the TrainingView.
    rows : int64 array
        Their numbers, ascending.
    all_X : features of *all* rows of the training set (label-free, so held-out rows do no harm)
    X : features of the rows in the TrainingView
    Y : float32 CSR (len(rows), L), labels of the rows in the TrainingView
    n_rows, n_labels, n_features : int
    seed, label_names, label_text, label_spelling, other_names, label_vectors, words
        As of `TrainingSet`, as are feature_scale and name_forms.
    """

    def __init__(self, data: TrainingSet, mask: np.ndarray, hidden: np.ndarray | None = None) -> None:
        self._data = data
        self.mask: NDArray[np.bool_] = mask
        self._hidden = hidden
        self.rows: NDArray[np.int64] = np.flatnonzero(mask)
        self.n_rows: int = len(self.rows)
        self.all_X: Features = data.X
        self.n_features: int = int(data.X.shape[1])
        self.n_labels: int = int(data.Y.shape[1])
        self.seed: int = data.seed
        self.label_names: list[str] | None = data.label_names
        self.label_text: sp.csr_matrix | None = data.label_text
        self.label_spelling: sp.csr_matrix | None = data.label_spelling
        self.other_names: dict[str, OtherNames] = data.other_names
        self.label_vectors: LabelVectors | None = data.label_vectors
        self.words: list[str] | None = data.words
        self.feature_scale: NDArray[np.float32] | None = data.feature_scale
        self.name_forms: NameForms | None = data.name_forms

    def of_objective(self, name: str) -> TrainingView:
        """The same rows with the labels of one objective."""
        return TrainingView(self._data.of_objective(name), self.mask, self._hidden)

    def block(self, name: str) -> BlockColumns:
        """The columns of a block of X."""
        return self._data.block(name)

    def of_block(self, name: str) -> TrainingView:
        """The same rows with one block of X."""
        return TrainingView(self._data.of_block(name), self.mask, self._hidden)

    def part(self, positions: np.ndarray) -> TrainingView:
        """The TrainingView of some of its rows, by their positions in it."""
        mask = np.zeros(len(self.mask), bool)
        mask[self.rows[positions]] = True
        return TrainingView(self._data, mask, self._hidden)

    @property
    def X(self) -> Features:
        return self._data.X if self.mask.all() else self._data.X[self.rows]

    def X_as_new_to(self, others: TrainingView) -> Features:
        """X as new rows bring it: 0 in the features that neither a row of `others` nor a label's name has.

        A word of a single training row is unknown of every new row. Of a held-out row it would take a part of
        the length, and so make the row less like all others than new rows are.
        """
        X, known = self.X, _features_with_values(others.X)
        if self.label_text is not None:
            known |= _features_with_values(self.label_text)
        if isinstance(X, np.ndarray):
            return X if known.all() else np.where(known, X, np.float32(0))
        kept = known[X.indices]
        return X if kept.all() else stored_where(X, kept)

    @cached_property
    def Y(self) -> sp.csr_matrix:
        Y = self._data.Y if self.mask.all() else self._data.Y[self.rows]
        return Y if self._hidden is None else stored_where(Y, ~self._hidden[Y.indices])

    @property
    def fold(self) -> np.ndarray:
        """Fold of each row *in the TrainingView*: the map a scorer's own inner cross-validation uses."""
        return self._data.fold[self.rows]

    @property
    def groups(self) -> np.ndarray | None:
        """Group of each row in the TrainingView, if the rows come in groups."""
        return None if self._data.groups is None else self._data.groups[self.rows]

    @property
    def given(self) -> Given:
        """What others say of the pairs of the rows in the TrainingView; of no pair if nothing is given."""
        all_given = self.all_given
        return all_given if self.mask.all() else all_given[self.rows]

    @property
    def all_given(self) -> Given:
        """What others say of the pairs of all rows of the training set, which is label-free."""
        given = self._data.given
        return Given(len(self.mask), self.n_labels) if given is None else given

    def shared(self, key: str, build: Callable[[Features], T]) -> T:
        """Label-free state shared by all views of the fit; see `TrainingSet.shared`."""
        return self._data.shared(key, build)

    def release(self, prefix: str) -> None:
        """Forget shared state that is not needed any more; see `TrainingSet.release`."""
        self._data.release(prefix)

    @property
    def label_counts(self) -> NDArray[np.int64]:
        """int64 (L,): number of relevant rows of each label in the TrainingView."""
        return np.bincount(self.Y.indices, minlength=self.n_labels)

    @cached_property
    def rows_by_label(self) -> tuple[np.ndarray, np.ndarray]:
        """(indptr int64 (L + 1), rows int32): each label's rows, as numbers of the training set."""
        csc = self.Y.tocsc()
        csc.sort_indices()
        return csc.indptr.astype(np.int64), self.rows[csc.indices].astype(np.int32)


def _names_within(names: OtherNames, block: BlockColumns, X: Features) -> OtherNames:
    return names.within(block.of)


def _features_with_values(X: Features) -> NDArray[np.bool_]:
    """Which features some row has, bool (d,)."""
    if isinstance(X, np.ndarray):
        return np.any(X != 0, axis=0)
    known = np.zeros(X.shape[1], bool)
    known[X.indices] = True
    return known
