"""The parameters of `MetaRanker`: checked, as a fit uses them (`FitOptions`), and as they are saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from metarank._util.languages import check_language
from metarank._util.parameters import check_integer, check_random_state, check_real
from metarank._util.progress import check_verbose
from metarank._util.threads import resolve_n_jobs
from metarank.model.fitting.auto import EFFORTS, check_names, is_auto, is_yang2012
from metarank.ranker import Ranker, make_ranker
from metarank.thresholds import LearnedCuts


@dataclass(frozen=True)
class FitOptions:
    """The parameters of `MetaRanker` that a fit uses, a drawn seed and a number of threads."""

    shortlister: Any
    features: Any
    ranker: Any
    threshold: str
    language: str | None
    names: bool
    propensity_weight: float | str
    shortlist_size: int
    n_folds: int
    effort: str
    labelwise: bool
    seed: int
    n_jobs: int

    @classmethod
    def of(cls, params: Mapping[str, Any], seed: int, n_jobs: int) -> FitOptions:
        """The options of parameters by name."""
        named = {name: params[name] for name in cls.__dataclass_fields__ if name in params}
        return cls(**named | {"seed": seed, "n_jobs": n_jobs})

    @property
    def standardizes(self) -> bool:
        """Whether columns are also standardised within each list; those of "yang2012" are not."""
        return not is_yang2012(self.features)


def check_parameters(params: Mapping[str, Any]) -> int:
    """Raise ValueError or TypeError unless the parameters keep their rules; return the number of threads."""
    n_jobs = resolve_n_jobs(params["n_jobs"])
    for name, low in (("n_folds", 2), ("shortlist_size", 1)):
        check_integer(name, params[name], low)
    for name in ("names", "labelwise"):
        if not isinstance(params[name], (bool, np.bool_)):
            raise TypeError(f"{name} must be True or False, got {params[name]!r:.80}")
    check_random_state(params["random_state"])
    check_verbose(params["verbose"])
    if params["effort"] not in EFFORTS:
        raise ValueError(f"effort must be one of {', '.join(EFFORTS)}, got {params['effort']!r}")
    ranker, weight = params["ranker"], params["propensity_weight"]
    if isinstance(ranker, str):
        make_ranker(ranker)
    elif not isinstance(ranker, Ranker):
        raise TypeError(f"ranker must be a name or a Ranker, got {ranker!r}")
    check_names(params["features"], params["shortlister"])
    if not is_auto(weight):
        check_real("propensity_weight", weight, 0, 10, "'auto' or a number in [0, 10]")
    LearnedCuts(params["threshold"])
    check_language(params["language"])
    return n_jobs


def plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as plain values. A scorer object, which lives on fitted, becomes "auto"."""
    return {k: v if _is_plain(v) else "auto" for k, v in params.items()}


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, (str, int, float, np.generic))
