"""`Tunable`: a shortlister that tries settings on held-out rows and takes the best worth its cost."""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, TypeVar

import numpy as np
from sklearn.base import clone

from metarank._util.parameters import check_integer, with_parameters
from metarank._util.progress import in_turn, note
from metarank.metrics import per_row
from metarank.persist.fields import Each, Field, Plain, Strings
from metarank.scorers.label_weights import relevance_weights
from metarank.scorers.shortlister import Shortlister
from metarank.types.view import View, first_of_unit, fold_of_rows

T = TypeVar("T", bound="Tunable")

logger: logging.Logger = logging.getLogger(__name__)

# One row in so many is held out.
_HELD_OUT = 5
# Fewer rows say nothing of a setting.
_LEAST_ROWS = 10
# Makes the part that is held out independent of the folds of the same seed.
_SHIFT = 3_000_017
# What judges a setting, by what the labels are learned as, and the labels of a row that it looks at.
_LISTED = 5
_METRICS = {"binary": "nDCG@5", "inverse-propensity": "PSP@5", "graded": "WP@5"}

# What a class saves of it, beside its parameters.
TUNED: tuple[Field, ...] = (
    Each(
        "best_params_",
        Plain(""),
        older=dict,
        omits_none=True,
        of=lambda own: vars(own).get("best_params_") or None,
    ),
    Strings("choices_", older=list, omits_none=True, of=lambda own: vars(own).get("choices_") or None),
)


@dataclass(frozen=True, eq=False)
class Trial:
    """What became of one setting.

    Parameters
    ----------
    setting : dict
        The parameters that differ from those of the scorer.
    values : float64 array (n,)
        The metric of each held-out row.
    work : float
        Multiply-adds of training, at most.
    """

    setting: dict[str, Any]
    values: np.ndarray
    work: float


@with_parameters
class Tunable(Shortlister):
    """A `Shortlister` with `tune`: the number of `settings` to try before it is fitted.

    Each of the first `tune` settings is fitted on four fifths of the rows and judged on the other fifth,
    which is drawn by a hash of the seed; copies of a row and rows of a group stay together. The metric is
    nDCG@5, PSP@5 if the labels are learned by inverse propensity, or WP@5 if by grade. From the least work to
    the most, a setting is taken if it is better than the one before it by more than the standard error of
    their mean difference. The fit on all rows then uses it.

    A subclass names its settings, says how much work a fit was, and as what it learns the labels.

    Attributes
    ----------
    settings : dict of str to tuple of dict
        By loss, the parameters that a setting has in place of the defaults. The first is the default, the
        others are in order of cost.
    best_params_ : dict
        The setting that was taken; parameters that it does not name are as given.
    choices_ : list of str
        What was tried, how good it was and how much work; empty without `tune`.
    """

    settings: ClassVar[dict[str, tuple[dict[str, Any], ...]]] = {}

    tune: int = 0

    @property
    def is_tunable(self) -> bool:  # type: ignore[override]
        return self.tune > 0

    def _check_params(self) -> None:
        check_integer("tune", self.tune, 0)

    @property
    def _loss_learned(self) -> str:
        """The loss, by which `settings` are listed."""
        raise NotImplementedError

    @property
    def _learned_as(self) -> tuple[str, Any]:
        """What the labels are learned as ("binary", "inverse-propensity" or "graded"), and the curve of
        their propensities."""
        raise NotImplementedError

    def _work(self, view: View) -> float:
        """Multiply-adds that the fit on a View was, at most."""
        raise NotImplementedError

    def settings_tried(self) -> list[dict[str, Any]]:
        """The first `tune` settings, without parameters whose value is given, and without repeats.

        Examples
        --------
        >>> from metarank.shortlist import Parabel
        >>> Parabel(tune=5, visitors=5).settings_tried()[2:]
        [{'max_leaf': 256}, {'max_leaf': 32}, {'C': 0.3}]
        """
        default = {f.name: f.default for f in fields(self)}
        out: list[dict[str, Any]] = []
        for setting in self.settings[self._loss_learned]:
            own = {name: value for name, value in setting.items() if getattr(self, name) == default[name]}
            if own not in out:
                out.append(own)
        return out[: self.tune]

    def trying(self: T, n: int) -> T:
        if self.tune:
            return self
        out: T = clone(self).set_params(tune=n)
        return out

    def tuned(self: T, view: View, *, n_jobs: int = 1) -> T:
        """An unfitted copy with the best of its settings on this View, and nothing left to try."""
        self._check_params()
        setting, told = self._best(view, None, n_jobs)
        for line in told:
            note(line)
        out: T = clone(self).set_params(**setting, tune=0)
        return out

    def _ready(self: T, view: View, sample_weight: np.ndarray | None, n_jobs: int) -> T:
        setting, told = self._best(view, sample_weight, n_jobs)
        for line in told:
            note(line)
        if not self.is_tunable:
            out = self
        else:
            out = type(self)(**self.get_params(deep=False) | setting | {"tune": 0})
        out.__dict__ |= {"best_params_": setting, "choices_": told}
        return out

    def _best(
        self, view: View, sample_weight: np.ndarray | None, n_jobs: int
    ) -> tuple[dict[str, Any], list[str]]:
        """The setting to take, and what there is to tell."""
        settings, name = self.settings_tried(), type(self).__name__
        if not settings:
            return {}, []
        seed = view.seed + _SHIFT
        inside = fold_of_rows(view.n_rows, _HELD_OUT, seed, view.X, view.groups) == 0
        others, held_out = view.part(np.flatnonzero(~inside)), view.part(np.flatnonzero(inside))
        if view.n_rows < _LEAST_ROWS or not (others.Y.nnz and held_out.Y.nnz):
            return settings[0], [
                f"tune: {name} {_said(settings[0])}, since {view.n_rows} rows are too few to hold some out"
            ]
        weight = None if sample_weight is None else sample_weight[~inside]
        learned_as, curve = self._learned_as
        metric, gain = _METRICS[learned_as], relevance_weights(view, learned_as, curve)
        Y = held_out.Y if learned_as == "graded" else (held_out.Y > 0).astype(np.float32)

        def trial(setting: dict[str, Any]) -> Trial:
            started = time.process_time()
            fitted = clone(self).set_params(**setting, tune=0)
            fitted.fit(others, sample_weight=weight, n_jobs=n_jobs)
            found = fitted.shortlist(held_out.X, k=_LISTED, n_jobs=n_jobs)
            values = per_row(Y, found, metric, inv_propensity=gain, n_jobs=n_jobs)
            logger.info("tune: %s took %.1f CPU s", _said(setting), time.process_time() - started)
            return Trial(setting, values, fitted._work(others))

        trials = in_turn(trial, settings, _said)
        units = None if view.groups is None else first_of_unit(held_out.n_rows, None, held_out.groups)
        best = worth_most(trials, units)
        told = [
            f"tune: {name} {_said(t.setting)}: {metric} {np.nanmean(t.values):.4f}, work {t.work:.2g}"
            + (", taken" if t is best else "")
            for t in trials
        ]
        head = f"tune: {len(trials)} settings of {name}, on {held_out.n_rows} of {view.n_rows} rows"
        return best.setting, [head, *told]


def worth_most(trials: Sequence[Trial], units: np.ndarray | None = None) -> Trial:
    """The trial of least work, unless a dearer one is better by more than the standard error of the mean
    difference. Of equal work, the first counts as the cheapest.

    Parameters
    ----------
    trials : list of Trial
        On the same rows; NaN marks rows that do not count.
    units : int array (n,), optional
        Rows of the same number count as one in the standard error.

    Examples
    --------
    >>> cheap, dear = Trial({}, np.array([0.5, 0.5]), 1.0), Trial({"C": 3.0}, np.array([0.9, 0.6]), 2.0)
    >>> worth_most([cheap, dear]).setting
    {'C': 3.0}
    >>> noisy = Trial({"C": 9.0}, np.array([1.0, 0.55]), 3.0)
    >>> worth_most([cheap, dear, noisy]).setting
    {'C': 3.0}
    """
    ordered = sorted(trials, key=lambda t: t.work)
    best = ordered[0]
    for other in ordered[1:]:
        difference = other.values - best.values
        counted = ~np.isnan(difference)
        mean, error = _mean_and_error(difference[counted], None if units is None else units[counted])
        if mean > error:
            best = other
    return best


def _mean_and_error(values: np.ndarray, units: np.ndarray | None) -> tuple[float, float]:
    """The mean of some values and its standard error; infinite of fewer than two units."""
    mean = float(values.mean())
    unit = np.arange(len(values)) if units is None else np.unique(units, return_inverse=True)[1]
    n = int(unit.max()) + 1
    if n < 2:
        return mean, float("inf")
    away = np.bincount(unit, weights=values - mean)
    return mean, float(np.sqrt(n / (n - 1) * np.sum(away**2))) / len(values)


def _said(setting: dict[str, Any]) -> str:
    """A setting in words.

    Examples
    --------
    >>> _said({"C": 3.0, "visitors": 0}), _said({})
    ('with C=3.0, visitors=0', 'as given')
    """
    return "with " + ", ".join(f"{k}={v}" for k, v in setting.items()) if setting else "as given"
