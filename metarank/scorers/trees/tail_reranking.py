"""What XReg-t and PfastreXML add to trees: re-ranking with tail classifiers (Jain et al. 2016, eq. 8)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar, TypeVar

import numpy as np
import scipy.sparse as sp

from metarank._util.parameters import check_real
from metarank._util.threads import resolve_n_jobs
from metarank.metrics import evaluate
from metarank.metrics.rerank import bent, rerank_with_tail
from metarank.persist.fields import Number, Object
from metarank.scorers.label_weights import FLOOR, relevance_weights
from metarank.scorers.trees.tail import (
    COLUMN,
    NAME_WEIGHTS,
    TailClassifiers,
    asks_for_names,
    check_name_weight,
)
from metarank.scorers.trees.tail_weight import ALPHAS, choose_alpha
from metarank.scorers.trees.tree_ensemble import ShortlistingTrees
from metarank.types.candidates import Candidates
from metarank.types.view import Features, View

# Labels of a row, and rows of a label, that are re-ranked; more where more are asked for.
RERANKED = 100
# One row in so many is held out to choose the weight of the tail classifiers on, by the mean of a metric at
# these lengths: the weight best for long lists alone may spoil the first label.
_HELD_OUT = 5
KS = (1, 3, 5)

R = TypeVar("R", bound="TailReranking")


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
    rest: ClassVar[tuple[str, ...]] = ("alpha", "tail")

    def _check_names(self, has_tail: bool, can_name: bool = True) -> None:
        """Refuses a weight of names where no tail classifiers read them."""
        check_name_weight(self.name_weight)
        if asks_for_names(self.name_weight) and not (has_tail and can_name):
            why = "with tail_solution='likelihood'" if has_tail else "without tail classifiers"
            raise ValueError(f"name_weight must be 0 or 'auto' {why}, got {self.name_weight!r}")

    def _ready(self: R, view: View, sample_weight: np.ndarray | None, n_jobs: int) -> R:
        if view.label_text is None and asks_for_names(self.name_weight):
            raise ValueError(
                f"name_weight must be 0 or 'auto' where labels have no names, got {self.name_weight!r}; pass "
                "a Dataset with label_names and feature_names"
            )
        return super()._ready(view, sample_weight, n_jobs)

    def _tails(self, view: View, units: Sequence[bool], **params: Any) -> list[TailClassifiers]:
        """The classifiers to choose from, those without names first."""
        weights: Sequence[float] = NAME_WEIGHTS if view.label_text is not None else (0.0,)
        if params.get("solution", "means") != "means":
            weights = (0.0,)
        elif not isinstance(self.name_weight, str):
            weights = (float(self.name_weight),)
        return [
            TailClassifiers(unit_means=unit, name_weight=weight, **params)
            for weight in weights
            for unit in units
        ]

    def _learn_tail(
        self,
        view: View,
        sample_weight: np.ndarray | None,
        alpha: Any,
        tails: Sequence[TailClassifiers],
        n_jobs: int,
    ) -> dict[str, Any]:
        """With `alpha`, the best where it is "auto", no tail where it is None, and the best classifiers."""
        if alpha is None:
            return {"alpha": 1.0, "tail": None}
        tail, more = tails[0], dict[str, float]()
        if isinstance(alpha, str) or len(tails) > 1:
            grid = ALPHAS if isinstance(alpha, str) else (float(alpha),)
            alpha, tail, more = self._choose_tail(view, sample_weight, grid, tails, n_jobs)
        used = min([float(alpha), *more.values()]) < 1
        return {"alpha": float(alpha), "tail": tail.fit(view, n_jobs=n_jobs) if used else None, **more}

    def _take_rest(self, rest: dict[str, Any]) -> None:
        self.alpha_, self.tail_ = rest["alpha"], rest["tail"]

    def _choose_tail(
        self,
        view: View,
        sample_weight: np.ndarray | None,
        grid: Sequence[float],
        tails: Sequence[TailClassifiers],
        n_jobs: int,
    ) -> tuple[float, TailClassifiers, dict[str, float]]:
        parts = self._held_out(_HELD_OUT, view, sample_weight, n_jobs)
        if parts is None or parts[2].Y.nnz == 0:
            return grid[-1], tails[0], {}
        cheaper, others, held_out = parts
        X = held_out.X_as_new_to(others)
        found = cheaper.shortlist(X, RERANKED, n_jobs=n_jobs)
        Y = held_out.Y if self.relevance == "graded" else (held_out.Y > 0).astype(np.float32)
        weights = relevance_weights(view, self.relevance, self.propensity)
        metrics = [f"{'WP' if weights is None else 'PSP'}@{k}" for k in KS]
        options: dict[str, Any] = {"inv_propensity": weights, "scale": cheaper.scale_, "n_jobs": n_jobs}
        best: tuple[float, float, TailClassifiers] | None = None
        for tail in tails:
            scores = tail.fit(others, n_jobs=n_jobs).score(X, found, n_jobs=n_jobs)[COLUMN]
            # The best itself: weaker re-ranking would do less for the rare labels.
            alpha = choose_alpha(found, scores, Y, metric=metrics, grid=grid, standard_errors=0.0, **options)
            reranked = rerank_with_tail(found, scores, alpha, scale=cheaper.scale_)
            value = sum(evaluate(Y, reranked, metrics, **options).values())
            if best is None or value > best[0]:
                best = value, alpha, tail
        assert best is not None
        return best[1], best[2], self._more_weights(cheaper, best[2], view, X, held_out.Y, grid, n_jobs)

    def _more_weights(
        self,
        cheaper: Any,
        tail: TailClassifiers,
        view: View,
        X: Features,
        Y: sp.csr_matrix,
        grid: Sequence[float],
        n_jobs: int,
    ) -> dict[str, float]:
        """Other weights that a class chooses on held-out rows (X, Y), by names of `rest`."""
        return {}

    def score(self, X: Features, candidates: Candidates, *, n_jobs: int | None = 1) -> dict[str, np.ndarray]:
        """As without re-ranking, logs of relevance over the greatest there is, but the first re-ranked."""
        columns = super().score(X, candidates, n_jobs=resolve_n_jobs(n_jobs))
        if not self._plain:
            columns[self.column] = self._combined(columns[self.column], self._rows(X), candidates, n_jobs)
        return columns

    @property
    def _plain(self) -> bool:
        """Whether the labels of a row are not re-ranked."""
        return getattr(self, "tail_", None) is None or self.alpha_ == 1

    def _reranked(
        self, rows: sp.csr_matrix, found: Candidates, alpha: float, n_jobs: int | None
    ) -> Candidates:
        return rerank_with_tail(found, self._tail_scores(rows, found, n_jobs), alpha, scale=self.scale_)

    def _combined(
        self, own: np.ndarray, rows: sp.csr_matrix, candidates: Candidates, n_jobs: int | None
    ) -> np.ndarray:
        """The trees' log-relevance of each pair, re-ranked; what no tree believes in stays so."""
        tail = self._tail_scores(rows, candidates, n_jobs)
        both = self.alpha_ * own.astype(np.float64) + (1 - self.alpha_) * tail
        return np.where(own > FLOOR, np.maximum(bent(both), FLOOR), FLOOR).astype(np.float32)

    def _tail_scores(self, rows: sp.csr_matrix, candidates: Candidates, n_jobs: int | None) -> np.ndarray:
        assert self.tail_ is not None
        return self.tail_.score(rows, candidates, n_jobs=resolve_n_jobs(n_jobs))[COLUMN]
