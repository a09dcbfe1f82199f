"""`OneVsAll`: a sparse linear classifier for every label, however many there are."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp

from metarank._util.parameters import check_integer, check_real, with_parameters
from metarank._util.progress import report
from metarank._util.threads import resolve_n_jobs, single_threaded_blas
from metarank.metrics.propensity import inv_propensity
from metarank.persist.fields import Number, Object, Params
from metarank.persist.spec import Spec
from metarank.scorers.base import Planned
from metarank.scorers.crossfit import refit_columns, refit_shortlist, scatter_folds, stack_folds
from metarank.scorers.label_weights import propensity_curve
from metarank.scorers.linear.shared_ridge import SharedRidge, leave_one_out_ndcg, ridge_by_gradients
from metarank.scorers.linear.squared_hinge import squared_hinge_weights
from metarank.scorers.linear.weight_index import Parts, WeightIndex
from metarank.scorers.neighbors.training_rows import as_canonical
from metarank.scorers.sizes import DESCRIBE, FIT, STAGES, FitSizes, MemoryPart
from metarank.scorers.tuning import TUNED, Tunable
from metarank.types.arrays import require_rows, sample_rows
from metarank.types.candidates import Candidates
from metarank.types.checks import check_candidates
from metarank.types.view import Features, TrainingSet, View

LOSSES = ("squared_hinge", "ridge")
RELEVANCES = ("auto", "binary", "inverse-propensity", "graded")

# Bounds of what is multiplied into float32 sums.
_LEAST, _MOST = 1e-12, 1e6
_C_GRID = (1 / 20, 1 / 6, 1 / 2, 3 / 2)
_CHOICE_ROWS = 3000
_LEAST_CHOICE_ROWS = 10
_QUERY_ROWS = 256


@with_parameters
class OneVsAll(Tunable):
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
        Curve of `metarank.metrics.propensity.inv_propensity`, applied to the counts in the View. With fewer
        than 3 rows all labels have weight 1.
    C : float in [1e-12, 1e6] or "auto"
        Weight of the loss; the usual penalty of ridge regression is 1 / (2 C). "auto": 1 for the squared
        hinge; for the ridge, of 1/20, 1/6, 1/2 and 3/2 the value with the largest nDCG@5 of exact
        leave-one-out scores, the gain of a pair being its relevance, on at most 3,000 rows of the View.
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
        Ridge: largest factorisation, in rows or features, whichever are fewer: memory grows with its
        square, time with its cube. Larger problems are solved by conjugate gradients.
    verbose : int
        1 shows the progress of `fit`; see `MetaRanker`.
    tune : int
        As in `Parabel`: the number of settings to try on held-out rows, judged by nDCG@5, for inverse
        propensities PSP@5, for graded relevance WP@5.

    Attributes
    ----------
    best_params_, choices_ : see `Parabel`
    C_ : float
    index_ : WeightIndex
    n_features_in_, n_labels_ : int

    Notes
    -----
    Rows of X are used as given, whereas `Parabel` and `XReg` scale them to unit length. A longer row has more
    influence in training and larger scores, and X times s needs C / s^2. If length has no meaning, as in
    TF-IDF of texts, normalise rows first (`sklearn.preprocessing.normalize`). All rows have the same weight:
    `fit` refuses a `sample_weight`.

    Column: ``ova_<loss>``. A label without a relevant row in the View is never proposed; its score is 0
    (ridge) or -1 (squared hinge). Held-out scores in closed form are those of all weights, before pruning.

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
    verbose: int = 0

    is_classifier = True
    settings: ClassVar[dict[str, tuple[dict[str, Any], ...]]] = {
        "squared_hinge": (
            {},
            {"max_epochs": 3},
            {"weights_per_label": 50},
            {"C": 0.3},
            {"C": 3.0},
            {"weights_per_label": 500},
            {"C": 0.3, "max_epochs": 12},
            {"C": 10.0, "max_epochs": 12},
        ),
        "ridge": (
            {},
            {"weights_per_label": 50},
            {"C": 0.02},
            {"C": 5.0},
            {"intercept_scaling": 1.0},
            {"weights_per_label": 500},
        ),
    }

    saved: ClassVar[Spec] = Spec(
        Params(tuples=("propensity",), omits=("tune",), check=lambda scorer: scorer._check_params()),
        Number("C_", 0),
        Object("index_", WeightIndex, ("d", "L"), inline=True),
        *TUNED,
    )

    @property
    def column(self) -> str:
        """Name of the score."""
        return f"ova_{self.loss}"

    def _learn(self, view: View, sample_weight: np.ndarray | None, n_jobs: int) -> None:
        if sample_weight is not None:
            raise ValueError("OneVsAll does not take sample_weight: it must be None")
        require_rows(view)
        C = self._tuned_C(view, n_jobs)
        solve = self._fit_ridge if self.loss == "ridge" else self._fit_squared_hinge
        W, bias = solve(view, C, n_jobs)
        self.C_: float = C
        self.index_: WeightIndex = WeightIndex.quantised(W, bias, np.flatnonzero(view.label_counts))

    def _fit_ridge(self, view: View, C: float, n_jobs: int) -> tuple[sp.csr_matrix, np.ndarray]:
        extended = self._extended(view.X)
        weight = self._label_weight(view.label_counts, view.n_rows)
        targets = _scale_columns(self._targets(view.Y), weight)
        kept = extended.shape[1] if self.weights_per_label is None else int(self.weights_per_label)
        density = kept * np.count_nonzero(view.label_counts) / max(1, extended.shape[1] * view.n_labels)
        penalty = 1 / (2 * C)
        with single_threaded_blas():
            if SharedRidge.size(extended) <= self.max_size:
                # Of all rows it is what the held-out scores were made from.
                whole = view.mask.all()
                if whole:
                    ridge = self._shared_ridge(view, penalty, n_jobs)
                else:
                    ridge = SharedRidge(extended, penalty, n_jobs=n_jobs)
                W = ridge.weights(targets, density, view.seed, n_jobs)
                if whole:  # the largest matrix of a fit, and nobody asks for it any more
                    view.release(self._ridge_key(penalty))
            else:
                W = ridge_by_gradients(extended, targets, penalty, density, view.seed, n_jobs)
        return W[:-1], W[-1].toarray()[0] * np.float32(self.intercept_scaling)

    def _fit_squared_hinge(self, view: View, C: float, n_jobs: int) -> tuple[sp.csr_matrix, np.ndarray]:
        return squared_hinge_weights(
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

    def tuned(self, view: View, *, n_jobs: int = 1) -> OneVsAll:
        """An unfitted copy whose `C` is tuned on this View."""
        require_rows(view)
        found = super().tuned(view, n_jobs=n_jobs)
        return found.set_params(C=found._tuned_C(view, n_jobs))

    def search(self, X: Features, *, n_jobs: int = 1) -> dict[str, Any]:
        """The sums of all labels, of few rows."""
        sums = self.index_.sums(self._row_parts(X), n_jobs)
        return {} if sums is None else {"sums": sums}

    def score(
        self,
        X: Features,
        candidates: Candidates,
        *,
        n_jobs: int | None = 1,
        sums: np.ndarray | None = None,
    ) -> dict[str, np.ndarray]:
        """float32 column (m,): ``w . x + b`` of each pair, with the weights that were kept.

        Ridge: an estimate of the target, which is 0 for irrelevant labels. Squared hinge: a margin, positive
        for labels that are predicted to be relevant. `shortlist` uses the same scores.

        Raises
        ------
        ValueError, TypeError
            If the estimator is not fitted, X is malformed, holds NaN or infinity or has another width than in
            training, or `candidates` are not lists of the labels learned, one for each row of X.
        """
        if sums is not None:  # those of `search`, for the same rows
            return {self.column: self.index_.scores_of(sums, candidates)}
        rows = self._row_parts(X)
        candidates = check_candidates(candidates, len(rows[0]) - 1, self.n_labels_)
        return {self.column: self.index_.scores(rows, candidates, resolve_n_jobs(n_jobs))}

    def planned(self) -> Planned:
        return Planned(self.index_.planned(), [self.column])

    def memory(self, sizes: FitSizes, *, keeps_products: bool) -> list[MemoryPart]:
        name, n, d = type(self).__name__, sizes.n_rows, sizes.n_features
        weights = 8 * sizes.n_labels * min(d, self.weights_per_label or d)
        solved = MemoryPart(f"weights of {name}", 3 * weights, (FIT,), "take a smaller weights_per_label")
        size = min(n, d + 1)
        if self.loss != "ridge":
            fits = weights * (sizes.used_folds + 1)
            return [solved, MemoryPart(f"fits of {name} without folds", fits, (DESCRIBE,))]
        if size > self.max_size:
            blocks = 4 * 256 * 4 * (n + d) * sizes.n_jobs
            return [solved, MemoryPart(f"gradients of {name}", blocks, (DESCRIBE, FIT))]
        other = "leave one-vs-all out, or take a smaller max_size"
        fold = n * n * (sizes.n_folds - 1) / sizes.n_folds**2  # entries of a fold's product
        at_once = sizes.used_folds if keeps_products else min(sizes.n_jobs, sizes.used_folds)
        products = int(8 * fold * (at_once + 2 * sizes.n_jobs))
        return [
            solved,
            MemoryPart(f"matrix of {name}, {size} x {size}", 8 * size * size, STAGES, other),
            MemoryPart(f"products of {name} by fold", products, (DESCRIBE,), other),
        ]

    def of_labels(self, first: int, last: int) -> OneVsAll:
        out = copy.copy(self)
        out.index_ = self.index_.of_labels(first, last)
        out.n_labels_ = last - first
        return out

    def shortlist(
        self, X: Any, k: int = 100, *, n_jobs: int | None = 1, sums: np.ndarray | None = None
    ) -> Candidates:
        """The k labels of largest score for each row, or all labels of the View if there are fewer.

        Parameters
        ----------
        X : features (n, d), or a Dataset
        k : int
        n_jobs : int or None
            Threads; None uses all cores.
        sums : float32 array (n, L), optional
            What `search` found for the same rows.

        Returns
        -------
        Candidates
            Labels ascend within a row; see `score` for their scores. Ties at the cut go to the smaller label
            id.
        """
        check_integer("k", k, 1)
        rows = self._row_parts(X)
        return self.index_.shortlist(rows, int(k), self.column, resolve_n_jobs(n_jobs), sums)

    def score_held_out(
        self, data: TrainingSet, candidates: Candidates, *, rows: np.ndarray | None = None, n_jobs: int = 1
    ) -> dict[str, np.ndarray]:
        """Columns of the pairs of training rows, equal to those of fits without the row's fold, before
        pruning.

        The ridge has a closed form up to `max_size`. Propensities and targets are those of the View without
        the fold.
        """
        rows = np.arange(len(data.fold)) if rows is None else rows
        held_out = self._held_out_ridge(data, n_jobs)
        if held_out is None:
            return refit_columns(self, data, candidates, rows=rows, n_jobs=n_jobs)

        def one_fold(fold: int, threads: int) -> dict[str, np.ndarray]:
            inside = np.flatnonzero(data.fold[rows] == fold)
            index, queries = held_out(fold, rows[inside])
            parts = [
                index.scores(query, candidates.rows(inside[at : at + _QUERY_ROWS]), threads)
                for at, query in _query_blocks(queries)
            ]
            return {self.column: np.concatenate(parts)}

        with single_threaded_blas():
            return scatter_folds(one_fold, data.fold[rows], candidates, n_jobs)

    def shortlist_held_out(
        self, data: TrainingSet, k: int, *, rows: np.ndarray, n_jobs: int = 1
    ) -> Candidates:
        """The k proposals for each of some training rows; see `score_held_out`."""
        held_out = self._held_out_ridge(data, n_jobs)
        if held_out is None:
            return refit_shortlist(self, data, k, rows=rows, n_jobs=n_jobs)

        def one_fold(fold: int, threads: int) -> Candidates:
            inside = np.flatnonzero(data.fold[rows] == fold)
            index, queries = held_out(fold, rows[inside])
            parts = [index.shortlist(query, k, self.column, threads) for _, query in _query_blocks(queries)]
            return Candidates.stack(parts)

        with single_threaded_blas():
            return stack_folds(one_fold, data.fold[rows], n_jobs)

    def _held_out_ridge(
        self, data: TrainingSet, n_jobs: int
    ) -> Callable[[int, np.ndarray], tuple[WeightIndex, np.ndarray]] | None:
        """What scores some rows of a fold: the others' targets as weights, the rows of H as features."""
        view = data.view()
        self._check_params()
        extended = self._extended(data.X)
        if self.loss != "ridge" or SharedRidge.size(extended) > self.max_size:
            return None
        penalty = 1 / (2 * self._tuned_C(view, n_jobs))
        ridge = self._shared_ridge(view, penalty, n_jobs)

        def of_fold(fold: int, rows: np.ndarray) -> tuple[WeightIndex, np.ndarray]:
            others = data.without_fold(fold)
            # Always of the whole fold, so that a row's scores do not depend on the rows asked for; proposing
            # and describing both ask.
            inside = np.flatnonzero(data.fold == fold)
            key = f"held-out ridge {penalty} {self.intercept_scaling} fold {fold}"
            if data.keeps_products:
                H = data.shared(key, lambda X: ridge.held_out(inside, others.rows))
            else:
                H = ridge.held_out(inside, others.rows)
            weight = self._label_weight(others.label_counts, others.n_rows)
            seen = np.flatnonzero(others.label_counts)
            zero = np.zeros(view.n_labels)
            at = np.searchsorted(inside, rows)
            return WeightIndex.exact(self._targets(others.Y), weight, zero, seen), H[at]

        return of_fold

    def _shared_ridge(self, view: View, penalty: float, n_jobs: int) -> SharedRidge:
        """The ridge of all rows, one for all Views of a fit: it knows no labels."""
        key = self._ridge_key(penalty)
        return view.shared(key, lambda X: SharedRidge(self._extended(X), penalty, n_jobs=n_jobs))

    def _ridge_key(self, penalty: float) -> str:
        return f"ridge {penalty} {self.intercept_scaling}"

    def _work(self, view: View) -> float:
        """Of the squared hinge, the terms of all rows for each label in each pass; of the ridge, one
        factorisation and a solution a label. And the weights that are kept."""
        X, labels, kept = sp.csr_matrix(view.X), len(self.index_.seen), len(self.index_.weight)
        if self.loss == "squared_hinge":
            return float(self.max_epochs) * X.nnz * labels + kept
        size = float(min(X.shape[0], X.shape[1] + 1))
        return size * size * (size / 3 + labels) + kept

    @property
    def _loss_learned(self) -> str:
        return self.loss

    @property
    def _learned_as(self) -> tuple[str, Any]:
        default = "inverse-propensity" if self.loss == "ridge" else "binary"
        return default if self.relevance == "auto" else self.relevance, self.propensity

    def _check_params(self) -> None:
        super()._check_params()
        for name, value, allowed in (("loss", self.loss, LOSSES), ("relevance", self.relevance, RELEVANCES)):
            if not isinstance(value, str) or value not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(map(repr, allowed))}, got {value!r}")
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

    def _tuned_C(self, view: View, n_jobs: int) -> float:
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
        if self._learned_as[0] != "inverse-propensity" or n_rows < 3:  # fewer say nothing of propensities
            return np.ones(len(counts))
        return inv_propensity(counts, *propensity_curve(self.propensity), n_points=n_rows)

    def _choose_C(self, view: View, n_jobs: int) -> float:
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


def _scale_columns(T: sp.csr_matrix, factors: np.ndarray) -> sp.csr_matrix:
    out = T.copy()
    out.data = (T.data * factors[T.indices]).astype(np.float32)
    return out


def _query_blocks(queries: np.ndarray) -> Iterator[tuple[int, Parts]]:
    """(first row, CSR arrays) of dense queries, a few at a time: with every entry, few of which are 0."""
    width = queries.shape[1]
    for at in range(0, len(queries), _QUERY_ROWS):
        block = queries[at : at + _QUERY_ROWS].astype(np.float32)
        indptr = np.arange(len(block) + 1, dtype=np.int64) * width
        yield at, (indptr, np.tile(np.arange(width, dtype=np.int32), len(block)), block.ravel())
