"""Neighbours as evidence: distances to a label's nearest points, and votes of the nearest points.

The first is eq. 1 of Yang & Gopal (2012), "Multilabel classification with
meta-level features in a learning-to-rank framework".
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property, lru_cache
from typing import Any, ClassVar, Self, TypeAlias

import numpy as np
import scipy.sparse as sp
from numpy.typing import NDArray

from metarank import _core
from metarank._util.parameters import check_choice, check_integer, with_parameters
from metarank._util.printable import ordinal
from metarank._util.threads import resolve_n_jobs
from metarank.persist.fields import Array, Csr, Field, Group, Ids, Known, Object, Params, Rows
from metarank.persist.spec import Spec
from metarank.scorers.base import LabelScorer, Planned
from metarank.scorers.label_weights import propensity_curve, relevance_weights
from metarank.scorers.neighbors.training_rows import (
    METRICS,
    Asked,
    DenseRows,
    LabelRows,
    TrainingRows,
    as_canonical,
    check_lists,
    columns_in_core,
    restored_rows,
    shared_rows,
    view_labels,
)
from metarank.types.arrays import csr_parts
from metarank.types.candidates import Candidates
from metarank.types.dense_index import INDEXES, SAVED, check_graph, resolved_index
from metarank.types.view import Features, TrainingView

# The order statistics and running means of `columns="summary"`, as far as k reaches.
SUMMARY_ORDERS = (1, 2, 3, 5, 10, 20, 50, 100)
SUMMARY_MEANS = (3, 5, 10, 20, 50, 100)

# Rows and weights, see `NeighborShortlister.nearest`.
Neighbors: TypeAlias = tuple[np.ndarray, np.ndarray]

# Neighbours that a scorer, a saved one too, may ask for.
_MOST_NEIGHBORS = 1 << 16

# The sources of the columns of `LabelNeighbors` and `NeighborShortlister`.
NEAREST, NEIGHBORS = "label's nearest rows", "neighbors"
_BY_NAME = f"{NEIGHBORS}: vote of similar names"
# A vote decides; the label's frequency, this much smaller, breaks ties and orders the labels without a vote.
_TIE = 1e-6


# The training rows and their labels, as both scorers save them.
_ROWS: tuple[Field, ...] = (
    Rows("rows_", dims=("rows", "d"), key="X", of=lambda scorer: scorer.rows_.X, into=restored_rows),
    Object("labels_", LabelRows, ("rows", "L")),
)


class NeighborScorer(LabelScorer):
    """Keeps the training rows and which of them carry which label."""

    rows_: TrainingRows
    labels_: LabelRows

    by_block = True
    is_quick = True

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> Self:
        """Store the TrainingView's rows and their labels. Returns self."""
        self._check_params()
        self.rows_, self.labels_ = shared_rows(view), view_labels(view)
        return self

    def training_labels(self) -> tuple[TrainingRows, sp.csr_matrix]:
        return self.rows_, self.labels_.matrix()


@with_parameters
class LabelNeighbors(NeighborScorer):
    """Distances from a row to the k nearest training points of a label (Yang & Gopal 2012, eq. 1).

    Parameters
    ----------
    k : int, default 10
        Number of points of each label. If a label has fewer, its last distance is repeated.
    metrics : sequence of {"l2", "l1", "cosine"}
        Cosine distance is 1 - cos; 1 where either vector is zero.
    columns : {"summary", "raw"}
        "raw": the k distances of each metric, ascending: ``label's nearest rows: 1st L2 distance`` and so on;
        with the two columns of `Centroids` the paper's 3k + 2. "summary": the order statistics 1, 2, 3, 5,
        10, 20, 50, 100 below k and k itself, and the means of the first 3, 5, 10, 20, 50, 100 below k and k
        (``label's nearest rows: mean of 5 L2 distances``).

    Notes
    -----
    A label without training points has the distances of a row that shares no feature with x and is as long as
    the longest training row: sqrt(|x|^2 + max |y|^2), |x|_1 + max |y|_1, 1. Distances are limited to the
    largest float32, so every value is finite.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> X = np.array([[0.0, 3.0], [4.0, 0.0], [1.0, 0.0]], np.float32)
    >>> Y = sp.csr_matrix(np.array([[1, 0], [1, 0], [0, 1]], np.float32))
    >>> view = TrainingSet(X, Y, np.zeros(3, np.int32)).view()
    >>> near = LabelNeighbors(k=2, metrics=("l2",), columns="raw").fit(view)
    >>> near.score(np.zeros((1, 2), np.float32), Candidates.all_labels(1, 2))
    {"label's nearest rows: 1st L2 distance": array([3., 1.], dtype=float32),
     "label's nearest rows: 2nd L2 distance": array([4., 1.], dtype=float32)}
    """

    k: int = 10
    metrics: Sequence[str] = ("l2", "l1", "cosine")
    columns: str = "summary"

    saved: ClassVar[Spec] = Spec(
        Params(tuples=("metrics",), check=lambda scorer: scorer._check_params()), *_ROWS
    )

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int = 1) -> dict[str, np.ndarray]:
        """float32 columns (m,) by name, metric by metric, distances before means."""
        check_lists(candidates, X.shape[0], self.labels_.n_labels)
        n_threads = resolve_n_jobs(n_jobs)
        values = self.rows_.label_neighbors(X, candidates, self.labels_, self._asked, n_threads)
        return dict(zip(self.names, values))

    def planned(self) -> Planned | None:
        core = self.rows_.planned_neighbors(self.labels_, columns_in_core(*self._asked))
        return Planned(core, list(self.names))

    def neighbors_of(self, X: Features, label: int, k: int | None = None) -> tuple[np.ndarray, np.ndarray]:
        """The training points of a label nearest to one row, by the first of `metrics`.

        Parameters
        ----------
        X : one row, (1, d)
        label : int
        k : int, optional
            At most this many; `k` of the scorer by default.

        Returns
        -------
        rows : int32 array (at most k,)
            Rows of the training set, nearest first, ties by row number; empty if the label has no point.
        distances : float32 array of the same length
        """
        k = self.k if k is None else k
        check_integer("k", k, 1)
        if X.shape[0] != 1:
            raise ValueError(f"X must be one row, got {X.shape[0]}")
        if not 0 <= label < self.labels_.n_labels:
            raise ValueError(f"label must lie in [0, {self.labels_.n_labels}), got {label}")
        ids, distances = self.rows_.nearest(X, self.labels_.of(label), k, next(iter(self.metrics)), 1)
        return ids[0][ids[0] >= 0], distances[0][ids[0] >= 0]

    def _check_params(self) -> None:
        check_integer("k", self.k, 1, _MOST_NEIGHBORS)
        metrics = tuple(self.metrics)
        if not metrics or len(set(metrics)) < len(metrics) or not set(metrics) <= set(METRICS):
            raise ValueError(f"metrics must be distinct and among {sorted(METRICS)}, got {self.metrics!r}")
        check_choice("columns", self.columns, ("summary", "raw"))

    @property
    def names(self) -> tuple[str, ...]:
        """The names of its columns, in their order."""
        return _named(*self._asked)

    @property
    def _asked(self) -> Asked:
        return (tuple(self.metrics), *_statistics(self.k, self.columns))


@lru_cache(maxsize=64)
def _statistics(k: int, columns: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Which of the k distances are columns, and of how many of the nearest the means."""
    if columns == "raw":
        return tuple(range(1, k + 1)), ()
    orders = (*(j for j in SUMMARY_ORDERS if j < k), k)
    return orders, (*(j for j in SUMMARY_MEANS if j < k), *([k] if k > 1 else []))


@lru_cache(maxsize=64)
def _named(metrics: tuple[str, ...], orders: tuple[int, ...], means: tuple[int, ...]) -> tuple[str, ...]:
    """The names of the columns."""
    names: list[str] = []
    for metric in metrics:
        shown = metric if metric == "cosine" else metric.upper()
        names += [f"{NEAREST}: {ordinal(j)} {shown} distance" for j in orders]
        names += [f"{NEAREST}: mean of {j} {shown} distances" for j in means]
    return tuple(names)


def _has_index(of: Any) -> bool:
    """Of a shortlister, or of what is known of it: whether it has the approximate index."""
    X = of.rows_.X
    return isinstance(X, np.ndarray) and resolved_index(of.index, len(X), len(of.voters_)) == "hnsw"


def _check_index(known: Known) -> None:
    """ValueError unless saved arrays of a graph are of one over the rows."""
    arrays = known.values.get("_index_arrays")
    if arrays is not None:
        check_graph(arrays)


@with_parameters
class NeighborShortlister(NeighborScorer):
    """Votes of the nearest training points.

    Parameters
    ----------
    ks : sequence of int, default (10, 30)
        Numbers of neighbours that vote; the largest determines the shortlist.
    relevance : {"binary", "inverse-propensity"}
        Weight of a vote for label l: 1, or 1 / p_l (Jain et al. 2016, eq. 1), which favours rare labels. p_l
        comes from the counts in its training data, without the row itself; with fewer than 3 rows the weight
        is 1.
    propensity : "default", "wikipedia", "amazon" or (a, b)
        Curve of `metarank.metrics.propensity.inv_propensity`.
    index : {"auto", "flat", "hnsw"}
        Index that finds the neighbours in dense X. "flat" compares every row. "hnsw", a graph of
        FAISS, is approximate: it proposes rows, and the core selects the nearest. "auto" is "hnsw" from
        50,000 rows on, otherwise "flat". With fewer than 10,000 rows every row is compared.
        In sparse X the neighbours are always exact.

    names : bool, default False
        Whether to compare the name of a label with the names of the neighbours' labels, in the column
        ``neighbors: vote of similar names``. It has no effect if names are not known
        (`TrainingView.label_text`).

    Notes
    -----
    Sparse X: neighbours by cosine similarity, which is also their weight. A row that shares no feature with x
    is not a neighbour. Dense X: neighbours by L2 distance, with weight 1 / distance; a distance counts as at
    least a thousandth of the farthest neighbour's. Ties are in order of row number.

    With N(x) the neighbours and s_i their weights, the score of a label is

        vote(x, l) = sum of s_i over i in N(x) with y_il > 0  /  sum of s_i over i in N(x)  *  (1 or 1 / p_l).

    Columns for each k: ``neighbors: vote of <k>``, the share of the neighbours with the label, and
    ``neighbors: weighted vote of <k>``, the vote above; 0 for a row without neighbours. With `names` also
    ``neighbors: vote of similar names``: the sum of v(x, l') t_l'.t_l over the other labels l', where t_l is
    the label's name as a row of unit length and v the vote without the factor 1 / p_l. So a rare label gets
    votes from similar names, such as "gene_expression_data" from "gene_expression".

    An approximate index misses a few per cent of the neighbours (experiments/tried.md). Its results do not
    depend on the number of threads or the split of the batch, and contain only training rows.

    Examples
    --------
    >>> import numpy as np, scipy.sparse as sp
    >>> from metarank.types.view import TrainingSet
    >>> X = sp.csr_matrix(np.eye(3, dtype=np.float32))
    >>> Y = sp.csr_matrix(np.array([[0, 1, 0], [0, 0, 1], [0, 0, 1]], np.float32))
    >>> near = NeighborShortlister(ks=(1,)).fit(TrainingSet(X, Y, np.zeros(3, np.int32)).view())
    >>> near.shortlist(X[:1], 2).labels  # the neighbour's label, and the most frequent one
    array([1, 2], dtype=int32)
    """

    ks: Sequence[int] = (10, 30)
    relevance: str = "binary"
    propensity: Any = "default"
    index: str = "auto"
    names: bool = False

    title = "nearest neighbours"
    saved: ClassVar[Spec] = Spec(
        Params(tuples=("ks", "propensity"), check=lambda scorer: scorer._check_params()),
        *_ROWS,
        Csr("label_text_", dims=("L", "words"), optional=True),
        Array("worth_", np.float64, ("L",), least=0, most=1e30, optional=True),
        Ids("voters_", np.int32, below="rows", ascending=True),
        Group("_index_arrays", SAVED, key="index_arrays", when=_has_index),
        check=_check_index,
    )

    def fit(self, view: TrainingView, *, n_jobs: int = 1) -> NeighborShortlister:
        """Store the TrainingView's rows and their labels. Returns self."""
        super().fit(view)
        self.voters_: NDArray[np.int32] = view.rows.astype(np.int32)
        self.worth_: np.ndarray | None = relevance_weights(view, self.relevance, self.propensity)
        text = view.label_text if self.names else None
        self.label_text_: sp.csr_matrix | None = None if text is None else as_canonical(text)
        self.__dict__.pop("_votes", None)
        return self

    def nearest(self, X: Features, *, n_jobs: int = 1) -> Neighbors:
        """The neighbours of each row, for `shortlist` and `score`.

        Returns
        -------
        rows : int32 array (n, max(ks))
            Rows of the training set, nearest first, padded with -1.
        weights : float32 array (n, max(ks))
            0 without a neighbour.
        """
        k, n_jobs, is_dense = max(self.ks), resolve_n_jobs(n_jobs), isinstance(self.rows_, DenseRows)
        if isinstance(self.rows_, DenseRows) and _has_index(self):
            rows, distances = self.rows_.nearest_proposed(X, self.voters_, k, n_jobs)
        else:
            metric = "l2" if is_dense else "cosine"
            rows, distances = self.rows_.nearest(X, self.voters_, k, metric, n_jobs)
        if is_dense:
            floor = np.maximum(distances.max(axis=1, keepdims=True) / 1000, np.finfo(np.float32).tiny)
            weights = floor / np.maximum(distances, floor)
        else:
            weights = np.maximum(1 - distances, 0)
        return rows, np.where(rows >= 0, weights, 0).astype(np.float32, copy=False)

    def search(self, X: Features, *, n_jobs: int = 1) -> dict[str, Any]:
        """`nearest`, as an argument of both `shortlist` and `score`."""
        return {"neighbors": self.nearest(X, n_jobs=n_jobs)}

    def score(
        self, X: Features, candidates: Candidates, *, n_jobs: int = 1, neighbors: Neighbors | None = None
    ) -> dict[str, np.ndarray]:
        """The columns, float32 (m,): two for each k, and with `names` one more.

        `neighbors` is the result of `nearest` for X, if known.
        """
        check_lists(candidates, X.shape[0], self.labels_.n_labels)
        n_jobs = resolve_n_jobs(n_jobs)
        nearest, pairs = self._neighbors(X, neighbors, n_jobs), (candidates.indptr, candidates.labels)
        values = self._votes.columns(*nearest, *pairs, [int(k) for k in self.ks], n_jobs)
        columns = dict(zip(self._columns(), values))
        if self.label_text_ is not None:
            columns[_BY_NAME] = self._votes.kin_by_name(*nearest, *pairs, n_jobs)
        return columns

    def shortlist(
        self, X: Features, k: int, *, n_jobs: int = 1, neighbors: Neighbors | None = None
    ) -> Candidates:
        """The min(k, L) labels of each row with the largest vote, which is their share of the neighbours'
        weight, times 1 / p_l if `relevance` asks for it.

        Equal votes are in order of frequency in the training data, then of label id. A row with fewer than k
        voted labels, or without neighbours, is completed with the most frequent labels. The score
        ``neighbor_vote`` is the vote plus 1e-6 times the label's share of the TrainingView's rows.
        `neighbors` is the result of `nearest` for X, if known.
        """
        check_integer("k", k, 1)
        n_jobs = resolve_n_jobs(n_jobs)
        n_labels = self.labels_.n_labels
        nearest = self._neighbors(X, neighbors, n_jobs)
        labels, scores = self._votes.shortlist(*nearest, _TIE, min(k, n_labels), n_jobs)
        indptr = np.arange(labels.shape[0] + 1, dtype=np.int64) * labels.shape[1]
        return Candidates.of_core(indptr, labels.ravel(), n_labels, {"neighbor_vote": scores.ravel()})

    def planned(self) -> Planned | None:
        if _has_index(self):
            return None
        ks, named = [int(k) for k in self.ks], self.label_text_ is not None
        core = self.rows_.planned_votes(self.voters_, self._votes, ks, named, _TIE)
        return Planned(core, self._columns() + [_BY_NAME] * named)

    def _columns(self) -> list[str]:
        return [f"{NEIGHBORS}: {vote} of {k}" for k in self.ks for vote in ("vote", "weighted vote")]

    def label_texts(self) -> dict[str, sp.csr_matrix]:
        return {} if self.label_text_ is None else {"label_text": self.label_text_}

    def _check_params(self) -> None:
        if len(tuple(self.ks)) == 0:
            raise ValueError("ks must not be empty")
        for k in self.ks:
            check_integer("ks", k, 1, _MOST_NEIGHBORS)
        check_choice("relevance", self.relevance, ("binary", "inverse-propensity"))
        propensity_curve(self.propensity)
        check_choice("index", self.index, list(INDEXES))

    @property
    def _index_arrays(self) -> Any:
        """The approximate index as arrays, which a saved model holds."""
        assert isinstance(self.rows_, DenseRows)
        return self.rows_.index().arrays()

    @_index_arrays.setter
    def _index_arrays(self, arrays: dict[str, Any] | None) -> None:
        if arrays is not None:
            assert isinstance(self.rows_, DenseRows)
            self.rows_.restore_index(arrays)

    def _neighbors(self, X: Features, known: Neighbors | None, n_jobs: int) -> Neighbors:
        if known is None:
            return self.nearest(X, n_jobs=n_jobs)
        if len(known[0]) != X.shape[0]:
            raise ValueError(
                f"neighbors must be those of the {X.shape[0]} rows of X, got {len(known[0])} rows"
            )
        return known

    @cached_property
    def _votes(self) -> _core.Votes:
        """The training rows' labels as votes, put in order when first asked for."""
        frequency = np.diff(self.labels_.indptr) / max(1, len(self.voters_))
        popular = np.argsort(-frequency, kind="stable").astype(np.int32)
        text = self.label_text_
        named = None if text is None else (*csr_parts(text), text.shape[1])
        return _core.Votes(*self.labels_.by_row, popular, frequency, self.worth_, named)
