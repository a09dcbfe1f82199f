"""`OneVsAll`: a sparse linear classifier for every label."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank import _core
from metarank._util.parameters import check_choice, check_integer, check_real, with_parameters
from metarank._util.progress import is_heard, report
from metarank._util.threads import resolve_n_jobs, single_threaded_blas
from metarank.metrics.propensity import inv_propensity
from metarank.persist.fields import Number, Object, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import HeldOutProposals, Planned
from metarank.scorers.crossfit import scatter_folds, stack_folds
from metarank.scorers.label_weights import propensity_curve
from metarank.scorers.linear.shared_ridge import SharedRidge, leave_one_out_ndcg, ridge_by_gradients
from metarank.scorers.linear.weight_index import WeightIndex
from metarank.scorers.neighbors.training_rows import as_canonical
from metarank.scorers.shortlister import StandaloneShortlister
from metarank.scorers.trees.hierarchy import learn_hierarchy
from metarank.types.arrays import Parts, csr_parts, pruning_factors, require_rows, sample_rows
from metarank.types.candidates import Candidates
from metarank.types.given import check_candidates
from metarank.types.view import Features, TrainingSet, TrainingView

LOSSES = ("squared_hinge", "ridge")
RELEVANCES = ("auto", "binary", "inverse-propensity", "graded")

# Bounds of what is multiplied into float32 sums.
_LEAST, _MOST = 1e-12, 1e6
_C_GRID = (1 / 20, 1 / 6, 1 / 2, 3 / 2)
_CHOICE_ROWS = 3000
_LEAST_CHOICE_ROWS = 10
_QUERY_ROWS = 256
# Similar labels that are trained together.
_GROUP = 16
# Groups that tell how small a weight is too small.
_SAMPLE_GROUPS = 16


@with_parameters
class OneVsAll(HeldOutProposals, StandaloneShortlister):
    """Linear scores ``w . x + b`` for every label, with small weights pruned.

    Parameters
    ----------
    loss : "squared_hinge" or "ridge"
        "squared_hinge": for y_i = 1 on relevant rows and -1 elsewhere, each label minimises
        ``1/2 (||w||^2 + b^2) + C sum_i c_i max(0, 1 - y_i (w . x_i + b))^2``.
        "ridge": ``1/2 (||w||^2 + v^2) + C sum_i (w . x_i + b - t_i)^2``, ``b = intercept_scaling v``, with
        targets t_i. All labels share one factorisation, and held-out scores of training rows are exact at
        little more cost (`score_held_out`).
    relevance : "auto", "binary", "inverse-propensity" or "graded"
        Weight of a relevant pair: the target of the ridge, or the cost c_i of the squared hinge (1 on
        irrelevant rows). It is 1; the label's inverse propensity (Jain et al. 2016, eq. 1), which favours
        rare labels; or, for the ridge only, the value in Y. "auto": "inverse-propensity" for the ridge,
        "binary" for the squared hinge.
    propensity : "default", "wikipedia", "amazon" or (a, b)
        Curve of `metarank.metrics.propensity.inv_propensity`, applied to the counts in its training data.
        With fewer than 3 rows all labels have weight 1.
    C : float in [1e-12, 1e6] or "auto"
        Weight of the loss; the usual penalty of ridge regression is 1 / (2 C). "auto": 1 for the squared
        hinge; for the ridge, of 1/20, 1/6, 1/2 and 3/2 the value with the largest nDCG@5 of exact
        leave-one-out scores, the gain of a pair being its relevance, on at most 3,000 training rows.
    weights_per_label : int or None
        Average number of weights that are kept per label: the largest over all labels, by absolute value
        times the square root of the root mean square of their feature. None keeps all.
    tolerance : float
        Squared hinge: training stops when no optimality condition is violated by more than this.
    max_epochs : int
        Squared hinge: largest number of passes over a working set of rows before it may grow again.
    intercept_scaling : float
        Ridge: value of the constant feature whose weight gives b; 0 for b = 0.
    max_size : int
        Ridge: largest factorisation, in the smaller of rows and features: memory grows with its
        square, time with its cube. Larger problems are solved by conjugate gradients.

    Attributes
    ----------
    C_ : float
    index_ : WeightIndex
    n_features_in_, n_labels_ : int

    Notes
    -----
    Rows of X are used as given, whereas `Parabel` and `XReg` scale them to unit length. A longer row has more
    influence in training and larger scores, and X times s needs C / s^2. If length has no meaning, as in
    TF-IDF of texts, normalise rows first (`sklearn.preprocessing.normalize`). All rows have the same weight:
    `fit` takes no `sample_weight`.

    Column: ``one-vs-all <loss>: score``. A label without a relevant row is never proposed; its
    score is 0 (ridge) or -1 (squared hinge). Held-out scores in closed form are those of all weights, before
    pruning.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[2, 0], [1, 0], [0, 1], [0, 2]], np.float32)
    >>> model = OneVsAll().fit(X, [[0], [0], [1], [1]])
    >>> model.shortlist(np.array([[1, 0]], np.float32), k=1).labels
    array([0], dtype=int32)
    """

    loss: str = "squared_hinge"
    relevance: str = "auto"
    propensity: Any = "default"
    C: float | str = "auto"
    weights_per_label: int | None = 150
    tolerance: float = 0.1
    max_epochs: int = 6
    intercept_scaling: float = 0.1
    max_size: int = 20_000

    is_classifier = True
    saved: ClassVar[Spec] = Spec(
        Params(tuples=("propensity",), check=lambda scorer: scorer._check_params()),
        Number("C_", 0),
        Object("index_", WeightIndex, ("d", "L")),
    )

    @property
    def column(self) -> str:
        """Name of the score."""
        return f"one-vs-all {self.loss.replace('_', ' ')}: score"

    def _learn(self, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        if sample_weight is not None:
            raise ValueError("OneVsAll does not take sample_weight: it must be None")
        require_rows(view)
        C = self._tuned_C(view, n_jobs)
        if self.loss == "ridge":
            W, bias = self._fit_ridge(view, C, n_jobs)
        else:
            W, bias = squared_hinge_weights(
                as_canonical(view.X),
                view.Y,
                positive_cost=self._label_weight(view.label_counts, view.n_rows),
                C=C,
                tolerance=float(self.tolerance),
                max_epochs=int(self.max_epochs),
                weights_per_label=None if self.weights_per_label is None else int(self.weights_per_label),
                seed=view.seed,
                n_jobs=n_jobs,
            )
        self.C_: float = C
        self.index_: WeightIndex = WeightIndex.quantised(W, bias, np.flatnonzero(view.label_counts))

    def _fit_ridge(self, view: TrainingView, C: float, n_jobs: int) -> tuple[sp.csr_matrix, np.ndarray]:
        extended = self._extended(view.X)
        weight = self._label_weight(view.label_counts, view.n_rows)
        targets = self._targets(view.Y).copy()
        targets.data = (targets.data * weight[targets.indices]).astype(np.float32)
        kept = extended.shape[1] if self.weights_per_label is None else int(self.weights_per_label)
        density = kept * np.count_nonzero(view.label_counts) / max(1, extended.shape[1] * view.n_labels)
        penalty = 1 / (2 * C)
        with single_threaded_blas():
            if min(extended.shape) > self.max_size:
                W = ridge_by_gradients(extended, targets, penalty, density, view.seed, n_jobs)
            elif view.mask.all():  # what the held-out scores were made from
                W = self._shared_ridge(view, penalty, n_jobs).weights(targets, density, view.seed, n_jobs)
                view.release(self._ridge_key(penalty))  # the largest matrix of a fit, now of no more use
            else:
                ridge = SharedRidge(extended, penalty, n_jobs=n_jobs)
                W = ridge.weights(targets, density, view.seed, n_jobs)
        return W[:-1], W[-1].toarray()[0] * np.float32(self.intercept_scaling)

    def tuned(self, view: TrainingView, *, n_jobs: int = 1) -> OneVsAll:
        """An unfitted copy whose `C` is tuned on this TrainingView."""
        require_rows(view)
        out: OneVsAll = clone(self)
        return out.set_params(C=self._tuned_C(view, n_jobs))

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int | None = 1) -> dict[str, np.ndarray]:
        """float32 column (m,): ``w . x + b`` of each pair, with the weights that were kept.

        Ridge: an estimate of the target, which is 0 for irrelevant labels. Squared hinge: a margin, positive
        for labels that are predicted to be relevant. `shortlist` uses the same scores.

        Raises
        ------
        ValueError, TypeError
            If the estimator is not fitted, X is malformed, holds NaN or infinity or has another width than in
            training, or `candidates` are not lists of the labels learned, one for each row of X.
        """
        rows = self._row_parts(X)
        candidates = check_candidates(candidates, len(rows[0]) - 1, self.n_labels_)
        return {self.column: self.index_.scores(rows, candidates, resolve_n_jobs(n_jobs))}

    def planned(self) -> Planned:
        return Planned(self.index_.planned(), [self.column])

    def planned_dense(self) -> Planned:
        return Planned(self.index_.planned_dense(), [self.column])

    def shortlist(self, X: Any, k: int = 100, *, n_jobs: int | None = 1) -> Candidates:
        """The k labels of largest score for each row, or all labels of the TrainingView if there are fewer.

        Parameters
        ----------
        X : features (n, d), or a Dataset
        k : int
        n_jobs : int or None
            Threads; None uses all cores.

        Returns
        -------
        Candidates
            Labels ascend within a row; see `score` for their scores. Ties at the end go to the smaller label
            id.
        """
        check_integer("k", k, 1)
        rows = self._row_parts(X)
        return self.index_.shortlist(rows, int(k), self.column, resolve_n_jobs(n_jobs))

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray, n_jobs: int = 1
    ) -> dict[str, np.ndarray] | None:
        """Columns of the pairs of training rows, equal to those of fits without the row's fold, before
        pruning; None except for the ridge up to `max_size`, which has a closed form.

        Propensities and targets are those of the view without
        the fold.
        """
        held_out = self._held_out_ridge(data, n_jobs)
        if held_out is None:
            return None

        def one_fold(fold: int, threads: int) -> dict[str, np.ndarray]:
            inside = np.flatnonzero(data.fold[rows] == fold)
            parts = [
                index.scores(query, candidates.rows(inside[at : at + _QUERY_ROWS]), threads)
                for at, index, query in held_out(fold, rows[inside])
            ]
            return {self.column: np.concatenate(parts)}

        with single_threaded_blas():
            return scatter_folds(one_fold, data.fold[rows], candidates, n_jobs)

    def shortlist_held_out(
        self, data: TrainingSet, k: int, *, rows: np.ndarray, n_jobs: int = 1
    ) -> Candidates | None:
        """The k proposals for each of some training rows; see `score_held_out`."""
        held_out = self._held_out_ridge(data, n_jobs)
        if held_out is None:
            return None

        def one_fold(fold: int, threads: int) -> Candidates:
            blocks = held_out(fold, rows[data.fold[rows] == fold])
            return Candidates.stack([index.shortlist(q, k, self.column, threads) for _, index, q in blocks])

        with single_threaded_blas():
            return stack_folds(one_fold, data.fold[rows], n_jobs)

    def _held_out_ridge(
        self, data: TrainingSet, n_jobs: int
    ) -> Callable[[int, np.ndarray], Iterator[tuple[int, WeightIndex, Parts]]] | None:
        """What scores some rows of a fold, a few at a time: the place of the first, the others' targets as
        weights, and the rows of H as features, with every entry, few of which are 0."""
        view = data.view()
        self._check_params()
        extended = self._extended(data.X)
        if self.loss != "ridge" or min(extended.shape) > self.max_size:
            return None
        penalty = 1 / (2 * self._tuned_C(view, n_jobs))
        ridge = self._shared_ridge(view, penalty, n_jobs)

        def of_fold(fold: int, rows: np.ndarray) -> Iterator[tuple[int, WeightIndex, Parts]]:
            others = data.without_fold(fold)
            # Always of the whole fold, so that a row's scores do not depend on the rows asked for; proposing
            # and describing both ask.
            inside = np.flatnonzero(data.fold == fold)
            key = f"held-out ridge {penalty} {self.intercept_scaling} fold {fold}"
            H = data.shared(key, lambda X: ridge.held_out(inside, others.rows))
            weight = self._label_weight(others.label_counts, others.n_rows)
            seen = np.flatnonzero(others.label_counts)
            index = WeightIndex.exact(self._targets(others.Y), weight, np.zeros(view.n_labels), seen)
            places, width = np.searchsorted(inside, rows), H.shape[1]
            for at in range(0, len(rows), _QUERY_ROWS):
                block = H[places[at : at + _QUERY_ROWS]].astype(np.float32)
                indptr = np.arange(len(block) + 1, dtype=np.int64) * width
                features = np.tile(np.arange(width, dtype=np.int32), len(block))
                yield at, index, (indptr, features, block.ravel())

        return of_fold

    def _shared_ridge(self, view: TrainingView, penalty: float, n_jobs: int) -> SharedRidge:
        """The ridge of all rows, one for all views of a fit: it knows no labels."""
        key = self._ridge_key(penalty)
        return view.shared(key, lambda X: SharedRidge(self._extended(X), penalty, n_jobs=n_jobs))

    def _ridge_key(self, penalty: float) -> str:
        return f"ridge {penalty} {self.intercept_scaling}"

    def _check_params(self) -> None:
        check_choice("loss", self.loss, LOSSES)
        check_choice("relevance", self.relevance, RELEVANCES)
        if self.loss == "squared_hinge" and self.relevance == "graded":
            raise ValueError(
                "relevance must be 'auto', 'binary' or 'inverse-propensity' where loss is 'squared_hinge', "
                "got 'graded'"
            )
        propensity_curve(self.propensity)
        if not self._chooses_C:
            check_real("C", self.C, _LEAST, _MOST, "'auto' or a positive number, at most 1e6")
        if self.weights_per_label is not None:
            check_integer("weights_per_label", self.weights_per_label, 1)
        check_real("tolerance", self.tolerance, _LEAST, _MOST, "a positive number, at most 1e6")
        check_integer("max_epochs", self.max_epochs, 1, 1_000_000)
        check_real("intercept_scaling", self.intercept_scaling, 0, _MOST, "a number in [0, 1e6]")
        check_integer("max_size", self.max_size, 1)

    @property
    def _chooses_C(self) -> bool:
        return isinstance(self.C, str) and self.C == "auto"

    def _tuned_C(self, view: TrainingView, n_jobs: int) -> float:
        return self._choose_C(view, n_jobs) if self._chooses_C else float(self.C)

    def _extended(self, X: Features) -> sp.csr_matrix:
        """X with the constant feature as its last column."""
        constant = np.full((X.shape[0], 1), self.intercept_scaling, np.float32)
        return as_canonical(sp.hstack([sp.csr_matrix(X), constant], "csr"))

    def _targets(self, Y: sp.csr_matrix) -> sp.csr_matrix:
        """Targets before the labels' weights."""
        return Y if self.relevance == "graded" else (Y > 0).astype(np.float32)

    def _label_weight(self, counts: np.ndarray, n_rows: int) -> np.ndarray:
        """What the targets of each label are multiplied by, float64 (L,)."""
        by_propensity = self.relevance == "inverse-propensity" or (
            self.relevance == "auto" and self.loss == "ridge"
        )
        if not by_propensity or n_rows < 3:  # fewer say nothing of propensities
            return np.ones(len(counts))
        return inv_propensity(counts, *propensity_curve(self.propensity), n_points=n_rows)

    def _choose_C(self, view: TrainingView, n_jobs: int) -> float:
        """1; for the ridge the C of `_C_GRID` with the largest nDCG@5 of leave-one-out scores."""
        if self.loss == "squared_hinge":
            return 1.0
        rows = sample_rows(view, _CHOICE_ROWS)
        if len(rows) < _LEAST_CHOICE_ROWS:
            return _C_GRID[1]
        X, Y = self._extended(view.X)[rows], self._targets(view.Y[rows])
        counts, n = np.bincount(Y.indices, minlength=Y.shape[1]), len(rows)
        # A row's own labels have one relevant row less where the row is left out.
        weights = [
            self._label_weight(c, n - 1) for c in (np.minimum(counts, n - 1), np.maximum(counts - 1, 0))
        ]
        with single_threaded_blas():
            gram = SharedRidge.gram(X, n_jobs=n_jobs)
            quality = []
            for number, C in enumerate(_C_GRID):
                report(f"C={C:g}", number / len(_C_GRID))
                ridge = SharedRidge(X, 1 / (2 * C), gram)
                quality.append(leave_one_out_ndcg(ridge, Y, *weights, n_jobs=n_jobs))
        return _C_GRID[int(np.argmax(quality))]

    def _restored(self) -> None:
        self.n_features_in_: int = self.index_.n_features
        self.n_labels_: int = self.index_.n_labels


def squared_hinge_weights(
    X: sp.csr_matrix,
    Y: sp.csr_matrix,
    *,
    positive_cost: np.ndarray,
    C: float,
    tolerance: float,
    max_epochs: int,
    weights_per_label: int | None,
    seed: int,
    n_jobs: int,
    order: np.ndarray | None = None,
) -> tuple[sp.csr_matrix, np.ndarray]:
    """Weights (d, L) and biases (L,), float32, of the classifiers of all labels.

    For each label with y_i = 1 on relevant rows and -1 elsewhere, minimises
    ``1/2 (||w||^2 + b^2) + C sum_i c_i max(0, 1 - y_i (w . x_i + b))^2``, c_i the label's entry of
    `positive_cost` on relevant rows and 1 elsewhere. Stops when no row violates the conditions of optimality
    by more than `tolerance`. A label without relevant rows gets weights 0 and bias -1. Labels are trained in
    groups in the given order, by default that of the leaves of a tree: similar ones together.

    Of the weights, as many as `weights_per_label` for each label on average stay, the largest after
    multiplication by `pruning_factors`; how large is large enough is estimated on 256 labels.
    """
    n_labels = Y.shape[1]
    by_label = sp.csc_matrix(Y > 0)
    labels = by_label.indptr.astype(np.int64), by_label.indices.astype(np.int32)
    if not len(labels[1]):
        return sp.csr_matrix((X.shape[1], n_labels), dtype=np.float32), np.full(n_labels, -1, np.float32)
    if order is None:
        child = learn_hierarchy(X, Y, n_trees=1, max_leaf=_GROUP, seed=seed).child
        order = np.ascontiguousarray(~child[child < 0])
    factor = pruning_factors(X)

    def train(order: np.ndarray, least: float) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        options = _core.SquaredHingeOptions(
            C=C, tolerance=tolerance, least=least, max_epochs=max_epochs, seed=seed
        )
        return _core.train_squared_hinge(
            X=(*csr_parts(X), X.shape[1]),
            label_indptr=labels[0],
            label_rows=labels[1],
            positive_cost=positive_cost.astype(np.float32),
            order=order,
            factor=factor,
            options=options,
            n_threads=n_jobs,
        )

    least = 0.0
    if weights_per_label is not None:
        starts = np.arange(0, len(order), _GROUP)
        drawn = starts[np.unique(np.linspace(0, len(starts) - 1, _SAMPLE_GROUPS).astype(np.int64))]
        sample = np.concatenate([order[start : start + _GROUP] for start in drawn])
        _, features, values, _ = train(sample, 0.0)
        magnitude = np.abs(values) * factor[features]
        kept = weights_per_label * len(sample)
        if kept < len(magnitude):
            least = float(np.partition(magnitude, -kept)[-kept])
    # Groups of labels are trained apart: where progress is shown, so many of them at a time.
    step = _GROUP * max(16, n_jobs) if is_heard() else len(order)
    parts = []
    for start in range(0, len(order), step):
        report(f"label {start} of {len(order)}", start / len(order))
        parts.append(train(order[start : start + step], least))
    label = np.repeat(order, np.concatenate([np.diff(indptr) for indptr, _, _, _ in parts]))
    features, values, biases = (np.concatenate([part[i] for part in parts]) for i in (1, 2, 3))
    W = sp.csr_matrix((values, (features, label)), shape=(X.shape[1], n_labels))
    bias = np.full(n_labels, -1, np.float32)
    bias[order] = biases
    return W, bias
