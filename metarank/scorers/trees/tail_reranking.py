"""What XReg-t and PfastreXML add to trees: re-ranking with tail classifiers (Jain et al. 2016, eq. 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank._util.parameters import check_real
from metarank._util.threads import resolve_n_jobs
from metarank.metrics import evaluate, per_row
from metarank.metrics.rerank import bent, rerank_with_tail
from metarank.persist.fields import Number, Object
from metarank.scorers.crossfit import held_apart
from metarank.scorers.label_weights import FLOOR, relevance_weights
from metarank.scorers.trees.tail import (
    COLUMN,
    NAME_WEIGHTS,
    TailClassifiers,
    asks_for_names,
    check_name_weight,
)
from metarank.scorers.trees.tree_ensemble import ShortlistingTrees
from metarank.types.candidates import Candidates
from metarank.types.view import Features, TrainingView

# Labels of a row, and rows of a label, that are re-ranked; more where more are asked for.
RERANKED = 100
# The weight of the tail classifiers is chosen by the mean of a metric at these lengths: the weight best for
# long lists alone may spoil the first label.
KS = (1, 3, 5)

R = TypeVar("R", bound="TailReranking")

# The weights to choose from.
ALPHAS = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.98, 1.0)


def check_alpha(name: str, value: Any, rule: str) -> None:
    """Refuses what is neither a weight in (0, 1] nor "auto"."""
    if not (isinstance(value, str) and value == "auto"):
        check_real(name, value, 1e-6, 1, rule)


def is_without_tail(alpha: Any) -> bool:
    """Whether the weight of the trees leaves nothing for tail classifiers."""
    return not isinstance(alpha, str) and alpha >= 1


# What such a class saves beside its trees.
TAIL = (Number("alpha_", 0, 1), Object("tail_", TailClassifiers, ("d", "L"), optional=True))


class TailReranking(ShortlistingTrees):
    """A shortlister whose lists are re-ranked where ``alpha_ < 1``.

    Attributes
    ----------
    alpha_ : float
        Weight of the trees' log-relevance beside the tail classifiers' log-probability.
    tail_ : TailClassifiers or None
    scale_ : float
        The relevance that counts as probability 1.
    """

    uses_names = True
    relevance: str
    propensity: Any
    name_weight: Any
    alpha_: float
    tail_: TailClassifiers | None
    scale_: float
    # Parameters of the cheaper model that is fitted to choose on held-out rows.
    _cheaper: ClassVar[dict[str, Any]]

    def _check_names(self, has_tail: bool) -> None:
        """Refuses a weight of names where no tail classifiers read them."""
        check_name_weight(self.name_weight)
        if asks_for_names(self.name_weight) and not has_tail:
            raise ValueError(
                f"name_weight must be 0 or 'auto' without tail classifiers, got {self.name_weight!r}"
            )

    def _ready(self: R, view: TrainingView, sample_weight: np.ndarray | None, n_jobs: int) -> R:
        if view.label_text is None and asks_for_names(self.name_weight):
            raise ValueError(
                f"name_weight must be 0 or 'auto' where labels have no names, got {self.name_weight!r}; pass "
                "a Dataset with label_names and feature_names"
            )
        return super()._ready(view, sample_weight, n_jobs)

    def _tails(self, view: TrainingView, units: Sequence[bool], **params: Any) -> list[TailClassifiers]:
        """The classifiers to choose from, those without names first."""
        weights: Sequence[float] = NAME_WEIGHTS if view.label_text is not None else (0.0,)
        if not isinstance(self.name_weight, str):
            weights = (float(self.name_weight),)
        return [
            TailClassifiers(unit_means=unit, name_weight=weight, **params)
            for weight in weights
            for unit in units
        ]

    def _learn_tail(
        self,
        view: TrainingView,
        sample_weight: np.ndarray | None,
        alpha: Any,
        tails: Sequence[TailClassifiers],
        n_jobs: int,
    ) -> dict[str, float]:
        """Keep `alpha`, the best where it is "auto", no tail where it is None, and the best classifiers.

        Returns the other weights of `_more_weights`.
        """
        self.alpha_, self.tail_ = 1.0, None
        if alpha is None:
            return {}
        tail, more = tails[0], dict[str, float]()
        if isinstance(alpha, str) or len(tails) > 1:
            grid = ALPHAS if isinstance(alpha, str) else (float(alpha),)
            alpha, tail, more = self._choose_tail(view, sample_weight, grid, tails, n_jobs)
        self.alpha_ = float(alpha)
        if min([self.alpha_, *more.values()]) < 1:
            self.tail_ = tail.fit(view, n_jobs=n_jobs)
        return more

    def _choose_tail(
        self,
        view: TrainingView,
        sample_weight: np.ndarray | None,
        grid: Sequence[float],
        tails: Sequence[TailClassifiers],
        n_jobs: int,
    ) -> tuple[float, TailClassifiers, dict[str, float]]:
        parts = held_apart(view, self.random_state)
        if parts is None:
            return grid[-1], tails[0], {}
        others, held_out, learns = parts
        weight = None if sample_weight is None else sample_weight[learns]
        cheaper = clone(self).set_params(**self._cheaper)
        cheaper.n_trees = min(cheaper.n_trees, self.n_trees)
        cheaper.fit(others, sample_weight=weight, n_jobs=n_jobs)
        X = held_out.X_as_new_to(others)
        listed = cheaper.shortlist(X, RERANKED, n_jobs=n_jobs)
        Y = held_out.Y if self.relevance == "graded" else (held_out.Y > 0).astype(np.float32)
        weights = relevance_weights(view, self.relevance, self.propensity)
        metrics = [f"{'WP' if weights is None else 'PSP'}@{k}" for k in KS]
        options: dict[str, Any] = {"inv_propensity": weights, "scale": cheaper.scale_, "n_jobs": n_jobs}
        best: tuple[float, float, TailClassifiers] | None = None
        for tail in tails:
            scores = tail.fit(others, n_jobs=n_jobs).score(X, listed, n_jobs=n_jobs)[COLUMN]
            alpha = choose_alpha(listed, scores, Y, metrics, grid, **options)
            reranked = rerank_with_tail(listed, scores, alpha, scale=cheaper.scale_)
            value = sum(evaluate(Y, reranked, metrics, **options).values())
            if best is None or value > best[0]:
                best = value, alpha, tail
        assert best is not None
        return best[1], best[2], self._more_weights(cheaper, best[2], view, X, held_out.Y, grid, n_jobs)

    def _more_weights(self, *_: Any, **__: Any) -> dict[str, float]:
        """Other weights that a class chooses on held-out rows, by name."""
        return {}

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int | None = 1) -> dict[str, np.ndarray]:
        """As without re-ranking, logs of relevance over the greatest there is, but the first re-ranked."""
        columns = super().score(X, candidates, n_jobs=resolve_n_jobs(n_jobs))
        if not self._plain:
            trees = columns[self.column]
            tail = self._tail_scores(self._rows(X), candidates, n_jobs)
            both = np.maximum(bent(self.alpha_ * trees.astype(np.float64) + (1 - self.alpha_) * tail), FLOOR)
            # What no tree believes in stays so.
            columns[self.column] = np.where(trees > FLOOR, both, FLOOR).astype(np.float32)
        return columns

    @property
    def _plain(self) -> bool:
        """Whether the labels of a row are not re-ranked."""
        return getattr(self, "tail_", None) is None or self.alpha_ == 1

    def _reranked(
        self, rows: sp.csr_matrix, listed: Candidates, alpha: float, n_jobs: int | None
    ) -> Candidates:
        return rerank_with_tail(listed, self._tail_scores(rows, listed, n_jobs), alpha, scale=self.scale_)

    def _tail_scores(self, rows: sp.csr_matrix, candidates: Candidates, n_jobs: int | None) -> np.ndarray:
        assert self.tail_ is not None
        return self.tail_.score(rows, candidates, n_jobs=resolve_n_jobs(n_jobs))[COLUMN]


def choose_alpha(
    listed: Candidates,
    tail_scores: np.ndarray,
    Y: sp.csr_matrix,
    metrics: Sequence[str],
    grid: Sequence[float] = ALPHAS,
    **options: Any,
) -> float:
    """The weight of `rerank_with_tail` with the greatest mean of some metrics on held-out rows, the largest
    of equal ones. It is the best itself: weaker re-ranking would do less for the rare labels.

    Parameters
    ----------
    listed, tail_scores : of rows that neither the trees nor the tail classifiers were trained on
    Y : CSR (n, L), the relevances of those rows
    options : of `metarank.metrics.per_row`; the scale of relevances among them

    Examples
    --------
    >>> c = Candidates(np.array([0, 2]), np.array([0, 1]), 2, {"score": np.array([0.6, 0.5])})
    >>> Y = sp.csr_matrix(np.float32([[0, 1]]))
    >>> choose_alpha(c, np.log([0.5, 0.9]), Y, ["WP@1"], (0.2, 0.7, 1.0), scale=1.0)
    0.7
    """
    alphas, values = sorted(grid, reverse=True), []
    for alpha in alphas:
        reranked = rerank_with_tail(listed, tail_scores, alpha, scale=options["scale"])
        values.append(np.mean([per_row(Y, reranked, metric, **options) for metric in metrics], axis=0))
    counted = np.isfinite(values[0])
    if not counted.any():
        return float(alphas[0])
    return float(alphas[int(np.argmax([float(np.mean(of[counted])) for of in values]))])
