"""A peer's label sets by metarank's own learner of thresholds, taught on the peer's held-out scores."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from cache import Result, source_digest
from methods import CUTS
from scipy.special import logit

from metarank import thresholds
from metarank.thresholds import LearnedCuts
from metarank.types.candidates import Candidates
from metarank.types.view import fold_of_rows

# A share of votes of 0 or 1 says no more than this.
_LEAST = 1e-3


def learned_sets(result: Result, Y: np.ndarray, seed: int) -> Result:
    """For each metric of label sets, bool (n, L): what the cut learned for it keeps of the test rows.

    Scores of `result["held_out"]` come from the same five folds the learner is told of. Probabilities are
    handed over as log-odds, in which the learner's calibration is linear.
    """
    held_out, scores = (unbounded(result[name], result["probabilities"]) for name in ("held_out", "scores"))
    pairs = Candidates.all_labels(*Y.shape)
    learner = LearnedCuts().fit(
        pairs, held_out.ravel(), Y.astype(np.float32).ravel(), fold=fold_of_rows(len(Y), 5, seed), seed=seed
    )
    new = Candidates.all_labels(*scores.shape)
    kept = {f"learned:{m}": learner.cut(new, scores.ravel(), cut) for m, cut in CUTS.items()}
    return {"learned_cuts": learner.summary(), **{m: sets.reshape(scores.shape) for m, sets in kept.items()}}


def key(of_result: str) -> str:
    """What the sets depend on, given the key of the result."""
    return f"{of_result} {source_digest((Path(__file__), Path(thresholds.__file__).parent))[:16]}"


def unbounded(scores: np.ndarray, probabilities: bool) -> np.ndarray:
    """Probabilities as log-odds; other scores as they are."""
    return logit(np.clip(scores, _LEAST, 1 - _LEAST)) if probabilities else scores
