"""The parameters of `MetaRanker`: checked, as a fit uses them (`FitOptions`), and as they are saved."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Integral
from typing import TYPE_CHECKING, Any

import numpy as np

from metarank._util.languages import check_language
from metarank._util.parameters import as_fitted, check_integer, check_random_state, check_real
from metarank._util.progress import check_verbose
from metarank._util.threads import resolve_n_jobs
from metarank.data.separators import check_separator
from metarank.data.text_part import check_text_part
from metarank.model.auto import EFFORTS, check_names
from metarank.model.memory import parse_budget
from metarank.ranker import Ranker, make_ranker
from metarank.thresholds import LearnedCuts
from metarank.types.blocks import check_blocks
from metarank.types.checks import check_writable

if TYPE_CHECKING:
    from metarank.model.estimator import MetaRanker


@dataclass(frozen=True)
class FitOptions:
    """The parameters of `MetaRanker` that a fit uses.

    Parameters
    ----------
    shortlister, features, label_text, ranker, threshold, n_folds, effort : as of `MetaRanker`
    shortlist_size, propensity_weight, memory_budget, tune, labelwise : as of `MetaRanker`
    seed : int
    n_jobs : int
        Threads.
    every_pair : bool
        Whether the ranker learns from the pairs of all rows, on a cluster.
    """

    shortlister: Any
    features: Any
    label_text: Any
    ranker: Any
    threshold: str
    n_folds: int
    effort: str
    shortlist_size: int
    propensity_weight: float | str
    memory_budget: Any
    seed: int
    n_jobs: int
    tune: int = 0
    labelwise: bool = False
    every_pair: bool = False

    @property
    def standardizes(self) -> bool:
        """Whether columns are also standardised within each list; those of "yang2012" are not."""
        return not (isinstance(self.features, str) and self.features == "yang2012")


def fit_options(model: MetaRanker, seed: int, n_jobs: int) -> FitOptions:
    """The parameters of a model that a fit uses."""
    return FitOptions(
        shortlister=model.shortlister,
        features=model.features,
        label_text=model.label_text,
        ranker=model.ranker,
        threshold=model.threshold,
        n_folds=int(model.n_folds),
        effort=model.effort,
        shortlist_size=int(model.shortlist_size),
        propensity_weight=model.propensity_weight,
        memory_budget=model.memory_budget,
        seed=seed,
        n_jobs=n_jobs,
        tune=int(model.tune),
        labelwise=bool(model.labelwise),
    )


def check_labelwise(options: FitOptions, sample_weight: Any, aggregation: Any) -> None:
    """Raise ValueError if a fit is to learn of lists of points what these cannot tell."""
    if not options.labelwise:
        return
    if sample_weight is not None:
        raise ValueError(
            "sample_weight must be None where labelwise=True, since points of a label weigh the same"
        )
    if aggregation is not None:
        raise ValueError("labelwise must be False where Y has several objectives, got True")
    if options.every_pair:
        raise ValueError("labelwise must be False where ranker_pairs='all', got True")


def check_parameters(model: MetaRanker, *, trains: bool = True) -> int:
    """Raise ValueError or TypeError unless the parameters keep their rules; return the number of threads."""
    n_jobs = resolve_n_jobs(model.n_jobs)
    for name, low in (("n_folds", 2), ("shortlist_size", 1)):
        value = getattr(model, name)
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise TypeError(f"{name} must be an integer >= {low}, got {value!r}")
        if not low <= int(value) < 2**31:
            raise ValueError(f"{name} must be an integer >= {low} and < 2^31, got {value!r}")
    check_integer("tune", model.tune, 0)
    if not isinstance(model.labelwise, (bool, np.bool_)):
        raise TypeError(f"labelwise must be True or False, got {model.labelwise!r:.80}")
    check_random_state(model.random_state)
    check_verbose(model.verbose)
    if model.effort not in EFFORTS:
        raise ValueError(f"effort must be one of {', '.join(EFFORTS)}, got {model.effort!r}")
    if isinstance(model.ranker, str):
        make_ranker(model.ranker)
    elif not isinstance(model.ranker, Ranker):
        raise TypeError(f"ranker must be a name or a Ranker, got {model.ranker!r}")
    check_names(model.features, model.shortlister)
    rule = f"label_text must be 'auto', 'learned', None or a list of texts, got {model.label_text!r:.80}"
    if not (model.label_text is None or isinstance(model.label_text, (str, list, tuple))):
        raise TypeError(rule)
    if isinstance(model.label_text, str) and model.label_text not in ("auto", "learned"):
        raise ValueError(rule)
    for text in model.label_text if isinstance(model.label_text, (list, tuple)) else ():
        if isinstance(text, str):
            check_writable(text, "label_text")
    if trains and model.label_text == "learned":
        from metarank._util.extra import require_extra

        require_extra("text", "torch", "tokenizers")
    _check_propensity_weight(model.propensity_weight, "'auto' or a number in [0, 10]")
    parse_budget(model.memory_budget)
    check_separator(model.label_separator)
    LearnedCuts(model.threshold)
    check_language(model.language)
    check_text_part(model.text_part)
    check_blocks(model.blocks)
    return n_jobs


def saved_parameters(model: MetaRanker) -> dict[str, Any]:
    """The parameters of the fit as plain values, including the seed."""
    params = plain(as_fitted(model.get_params(deep=False), getattr(model, "_given_", {})))
    return params | {"random_state": model.random_state_}


def plain(params: Mapping[str, Any]) -> dict[str, Any]:
    """Parameters as plain values. A scorer object, which lives on fitted, becomes "auto"."""
    return {k: v if _is_plain(v) else "auto" for k, v in params.items()}


def _is_plain(value: Any) -> bool:
    if isinstance(value, (list, tuple)):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, (str, int, float, np.generic))


def _check_propensity_weight(value: Any, rule: str) -> None:
    if isinstance(value, str) and value == "auto":
        return
    check_real("propensity_weight", value, 0, 10, rule)
