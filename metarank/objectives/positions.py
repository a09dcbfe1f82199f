"""Clicks that depend on where a row was shown: what they say of relevance.

The position-based model: a row is clicked if its position is examined and the row attracts. Both are
independent, with probabilities theta[position] and gamma(x). Boosted trees of gamma's log-odds maximise the
likelihood of the log, and between their rounds theta takes Newton's steps to its own greatest likelihood (as
regression EM, Wang et al. 2018, "Position bias estimation for unbiased learning to rank in personal search",
but a position with probability 1 can lose it). gamma(x), the rate of clicks at a position that
everybody looks at, then stands for the clicks, in every objective alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from metarank._util.elementary import logistic
from metarank._util.progress import as_part
from metarank.objectives.learning import GradedRows
from metarank.objectives.models import Boosting, raw_scores
from metarank.ranker.boosting import lightgbm_params
from metarank.types.checks import check_numbers

# Small trees, and not too many: what stands for clicks is to forget their noise. nDCG@10 of MQ2008 after the
# clicks of two kinds of users is the same to .5 with 60 to 120 rounds of 7 to 15 leaves, and 1 to 2 less
# beyond.
_ROUNDS, _TREES = 100, {"num_leaves": 7, "learning_rate": 0.05}
_STEPS = 3  # after each round
# Probabilities that places are examined. Their scale is that of what attracts; a 1 would say of a place that
# no row without a click attracts.
_LEAST, _MOST = 1e-3, 0.95
_MOST_PLACES = 10_000
_SHARE = 0.4  # of the time of a fit


@dataclass(frozen=True, eq=False)
class ShownRows:
    """Where rows were shown, checked.

    Parameters
    ----------
    place : int64 array (n,)
        From 1; 0 where a row was not shown.
    clicked : list of int
        The objectives whose grades depend on it.
    given : float64 array (P,) or None
        The examination probabilities, if known.
    """

    place: np.ndarray
    clicked: list[int]
    given: np.ndarray | None

    @classmethod
    def checked(
        cls, rows: GradedRows, position: Any, position_of: Any, position_propensity: Any
    ) -> ShownRows | None:
        """None without positions.

        Raises
        ------
        ValueError
            Invalid positions, unknown objectives, a grade above 0 of a row that was not shown.
        """
        if position is None:
            for other, value in (("position_of", position_of), ("position_propensity", position_propensity)):
                if value is not None:
                    raise ValueError(f"{other} describes position, which is missing; got {value!r:.80}")
            return None
        place = _places(position, len(rows.values))
        clicked = _clicked(rows.names, position_of)
        for k in clicked:
            if not np.ptp(rows.values[:, k]):
                raise ValueError(
                    f"the label {rows.names[k]!r} of Y is constant: its positions cannot be learned"
                )
            unseen = (place == 0) & (rows.values[:, k] > 0)
            if unseen.any():
                raise ValueError(
                    f"position must be at least 1 where {rows.names[k]!r} is above 0, got 0 or a missing "
                    f"value at row {np.argmax(unseen)}"
                )
            if rows.propensity is not None and (rows.propensity[..., k] < 1).any():
                raise ValueError(f"propensities must not name {rows.names[k]!r}, which depends on position")
        given = None
        if position_propensity is not None:
            given = check_numbers(position_propensity, "position_propensity")
            if not ((given > 0) & (given <= 1)).all():
                raise ValueError(f"position_propensity must lie in (0, 1], got {given.tolist()!s:.80}")
            if len(given) < place.max():
                raise ValueError(
                    f"position_propensity must have {place.max()} values, got {len(given)} values"
                )
        return cls(place, clicked, given)


def without_position_bias(
    rows: GradedRows, shown: ShownRows | None, seed: int, n_jobs: int
) -> tuple[GradedRows, np.ndarray | None]:
    """The rows with gamma, on the scale of the grades, instead of clicks, and the examination probability of
    each position, relative to the greatest.

    The curve is learned from the objective that is most often above 0, unless it is given.
    """
    if shown is None:
        return rows, None
    theta, values = shown.given, rows.values.copy()
    order = sorted(shown.clicked, key=lambda k: -np.count_nonzero(values[:, k]))
    for number, k in enumerate(order):
        with as_part(f"positions of {rows.names[k]}", _SHARE * number / len(order), _SHARE / len(order)):
            theta, values[:, k] = _maximised(rows, k, shown.place, theta, seed, n_jobs)
        if not np.ptp(values[:, k]):
            raise ValueError(
                f"position needs more rows, or columns of X that separate {rows.names[k]!r} from positions, "
                f"got {np.count_nonzero(shown.place)} rows"
            )
    learned = theta if theta is None or shown.given is not None else theta / theta.max()
    return replace(rows, values=values), learned


def the_rest(shown: ShownRows | None) -> AbstractContextManager[None]:
    """Progress of the rest of a fit, after the positions."""
    return nullcontext() if shown is None else as_part("training", _SHARE, 1 - _SHARE)


def _maximised(
    rows: GradedRows, k: int, place: np.ndarray, known: np.ndarray | None, seed: int, n_jobs: int
) -> tuple[np.ndarray, np.ndarray]:
    """The curve, which is `known` or learned, and gamma for one objective, on the scale of its grades."""
    there = place > 0
    X, at, top = rows.X[there], place[there], float(rows.values[:, k].max())
    click = rows.values[there, k] / top
    theta = _MOST / np.sqrt(np.arange(1, at.max() + 1)) if known is None else known
    rate = np.clip(click.mean() / _at(theta, at).mean(), 1e-6, 0.5)
    base = float(np.log(rate / (1 - rate)))

    def gradients(scores: np.ndarray, _: Any) -> tuple[np.ndarray, np.ndarray]:
        """Of -log likelihood, with its expected curvature."""
        nonlocal theta
        gamma = logistic(scores + base)
        if known is None:
            theta = _stepped(theta, at, click, gamma)
        seen = _at(theta, at)
        missed = np.maximum(1 - seen * gamma, 1e-9)
        slope = seen * gamma * (1 - gamma) / missed
        return (1 - click) * slope - click * (1 - gamma), np.maximum(slope * (1 - gamma), 1e-9)

    trees = Boosting(X, None, lightgbm_params(_TREES, seed, n_jobs, X.size), _ROUNDS).fit(gradients)
    return theta, top * logistic(raw_scores(trees, rows.X, n_jobs) + base)


def _stepped(theta: np.ndarray, at: np.ndarray, click: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    """A few of Newton's steps, position by position, to the most likely curve."""
    n_places = len(theta)
    known = np.flatnonzero(np.bincount(at - 1, minlength=n_places))
    clicks = np.bincount(at - 1, click, n_places)
    for _ in range(_STEPS):
        missed = gamma / np.maximum(1 - theta[at - 1] * gamma, 1e-9)
        slope = clicks / theta - np.bincount(at - 1, (1 - click) * missed, n_places)
        bend = clicks / theta**2 + np.bincount(at - 1, (1 - click) * missed**2, n_places)
        stepped = np.clip(theta + slope / np.maximum(bend, 1e-9), theta / 2, np.minimum(2 * theta, 0.999))
        # A place between others where nothing was shown lies between them.
        theta = np.interp(np.arange(n_places), known, stepped[known])
        theta = np.clip(_MOST * theta / theta.max(), _LEAST, _MOST)
    return theta


def _at(theta: np.ndarray, place: np.ndarray) -> np.ndarray:
    """The value of each row's position: that of the last beyond it, and 0 if the row was not shown."""
    return np.append(0.0, theta)[np.minimum(place, len(theta))]


def _places(position: Any, n_rows: int) -> np.ndarray:
    try:
        values = np.asarray(position, np.float64)
    except (TypeError, ValueError):
        raise ValueError(f"position must be whole numbers, got {position!r:.80}") from None
    if values.shape != (n_rows,):
        raise ValueError(f"position must have one entry per row, shape ({n_rows},), got {values.shape}")
    values = np.where(np.isnan(values), 0.0, values)
    bad = (values < 0) | (values > _MOST_PLACES) | (values != np.floor(values))
    if bad.any():
        row = int(np.argmax(bad))
        raise ValueError(
            f"position must be whole numbers from 1 (the first) to {_MOST_PLACES}, 0 or missing where "
            f"a row was not shown, got {values[row]:g} at row {row}"
        )
    if not values.any():
        raise ValueError("position must be above 0 for some row, got none that was shown")
    return values.astype(np.int64)


def _clicked(names: Sequence[str], position_of: Any) -> list[int]:
    if position_of is None:
        wanted = [name for name in names if name != "relevance"]
    else:
        given: list[Any] = [position_of] if isinstance(position_of, (str, int)) else list(position_of)
        wanted = [names[k] if type(k) is int and 0 <= k < len(names) else k for k in given]
    for name in wanted:
        if name not in names:
            raise ValueError(f"position_of must name objectives of {list(names)}, got {name!r}")
    if not wanted:
        raise ValueError(f"position_of must name an objective of {list(names)}, got none")
    return [k for k, name in enumerate(names) if name in wanted]
