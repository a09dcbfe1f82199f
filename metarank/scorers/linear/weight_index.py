"""`WeightIndex`: the weights of linear classifiers by feature, for scores of all labels at once."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Any, ClassVar, TypeAlias

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank.persist.fields import Array, Declared, Ids, check_indptr
from metarank.persist.spec import Saved, Spec
from metarank.types.candidates import Candidates
from metarank.types.checks import finite_scores

# Arrays of rows: canonical CSR's indptr (int64), indices (int32) and data (float32).
Parts: TypeAlias = tuple[np.ndarray, np.ndarray, np.ndarray]

# Labels to a band: an entry's label takes two bytes.
_BAND = 65_536
_LARGEST = 32_767


@dataclass(eq=False)
class WeightIndex(Saved):
    """Scores ``x . w_l + b_l`` of pairs, and the labels with the largest.

    Scores beyond float32 are a `ScoresNotFiniteError`.

    Build with `quantised` (16-bit weights with a scale for each label, an error of at most
    max |w_l| / 65,534 a weight) or `exact`.

    Attributes
    ----------
    start : int64 array (bands * d + 1,)
        First entry of each band of 65,536 labels and feature.
    label : uint16 array (entries,)
        The entry's label, counted from the start of its band.
    weight : int16 or float32 array (entries,)
        The weight is ``scale[label] * weight``.
    scale, bias : float32 array (L,)
    seen : int32 array
        The labels that may be proposed, ascending.
    """

    n_features: Annotated[int, Declared("", size="d")]
    scale: Annotated[np.ndarray, Array("", np.float32, ("L",))]
    label: Annotated[np.ndarray, Array("", np.uint16, ("weights",))]
    start: Annotated[np.ndarray, Array("", np.int64, (lambda of: -(-of["L"] // _BAND) * of["d"] + 1,))]
    weight: Annotated[np.ndarray, Array("", (np.int16, np.float32), ("weights",))]
    bias: Annotated[np.ndarray, Array("", np.float32, ("L",))]
    seen: Annotated[np.ndarray, Ids("", np.int32, below="L", ascending=True)]

    saved: ClassVar[Spec] = Spec(
        check=lambda of: check_indptr(of.start, len(of.weight), f"start of {of.name}")
    )

    @classmethod
    def quantised(cls, W: sp.csr_matrix, bias: np.ndarray, seen: np.ndarray) -> WeightIndex:
        """From weights (d, L), in 16 bits."""
        largest = np.zeros(W.shape[1], np.float32)
        np.maximum.at(largest, W.indices, np.abs(W.data))
        scale = largest / np.float32(_LARGEST)
        levels = np.rint(W.data / np.where(scale > 0, scale, 1)[W.indices]).astype(np.int16)
        return cls._build(W, levels, scale, bias, seen)

    @classmethod
    def exact(cls, W: sp.csr_matrix, scale: np.ndarray, bias: np.ndarray, seen: np.ndarray) -> WeightIndex:
        """From weights (d, L) to be multiplied by ``scale`` (L,), as they are."""
        return cls._build(W, W.data.astype(np.float32), scale, bias, seen)

    @classmethod
    def _build(
        cls, W: sp.csr_matrix, values: np.ndarray, scale: np.ndarray, bias: np.ndarray, seen: np.ndarray
    ) -> WeightIndex:
        d, n_labels = W.shape
        band = W.indices // _BAND
        feature = np.repeat(np.arange(d), np.diff(W.indptr))
        order = np.argsort(band, kind="stable") if n_labels > _BAND else slice(None)
        n_bands = -(-n_labels // _BAND)
        counts = np.bincount(band * np.int64(d) + feature, minlength=n_bands * d)
        return cls(
            d,
            scale.astype(np.float32),
            (W.indices % _BAND).astype(np.uint16)[order],
            np.concatenate([[0], np.cumsum(counts)]).astype(np.int64),
            values[order],
            bias.astype(np.float32),
            seen.astype(np.int32),
        )

    @property
    def n_labels(self) -> int:
        return len(self.scale)

    def scores(self, rows: Parts, candidates: Candidates, n_jobs: int) -> np.ndarray:
        """The score of each pair, float32 (m,)."""
        return finite_scores(self._scorer.scores(rows, candidates.indptr, candidates.labels, n_jobs))

    def shortlist(self, rows: Parts, k: int, name: str, n_jobs: int) -> Candidates:
        """The k labels of largest score among those seen, ties by label; the score is called `name`."""
        k = min(k, len(self.seen))
        labels, scores = self._lister.shortlist(rows, k, n_jobs)
        indptr = np.arange(len(labels) + 1, dtype=np.int64) * labels.shape[1]
        return Candidates.of_core(
            indptr, labels.ravel(), self.n_labels, {name: finite_scores(scores.ravel())}
        )

    def planned(self) -> Any:
        """The source of a `metarank._core.Plan` that lists and scores as this does."""
        exact = self.weight.dtype == np.float32
        kind = _core.PlanExactWeights if exact else _core.PlanQuantisedWeights
        return kind(self._scorer, self._lister, len(self.seen))

    def planned_dense(self) -> Any:
        """As `planned`, of rows that are an array."""
        exact = self.weight.dtype == np.float32
        return self.planned() if exact else _core.PlanDenseWeights(self._scorer, self.seen)

    @cached_property
    def _scorer(self) -> Any:
        return self._in_core(self.bias)

    @cached_property
    def _lister(self) -> Any:
        """With biases of -inf for labels that are never proposed."""
        bias = np.full(self.n_labels, -np.inf, np.float32)
        bias[self.seen] = self.bias[self.seen]
        return self._in_core(bias)

    def _in_core(self, bias: np.ndarray) -> Any:
        kind = _core.ExactWeightIndex if self.weight.dtype == np.float32 else _core.QuantisedWeightIndex
        return kind(self.n_features, self.start, self.label, self.weight, self.scale, bias)
