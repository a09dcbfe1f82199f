"""`diagnose`: how several targets interact in one ranking, before training and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, is_dataclass, replace
from itertools import combinations, permutations
from typing import Any

import numpy as np

from metarank._util import html as _html
from metarank.metrics.resampling import Interval
from metarank.objectives.advice import page_of, recommendation_of, warnings_of
from metarank.objectives.auc_by_label import dominates
from metarank.objectives.bayes import label_spread
from metarank.objectives.checks import Grouping, check_groups, check_targets, check_weights
from metarank.objectives.conflicts import Conflicts, pair_conflicts
from metarank.objectives.intervals import Estimates, auc_estimates, complete_auc, ndcg_estimates
from metarank.objectives.pair_terms import pair_terms
from metarank.objectives.partial_labels import (
    CompletePairs,
    attenuation,
    check_propensities,
    completed,
    pair_costs,
)
from metarank.types.ranking import check_k

# Shares this near to each other hardly change an order.
_MILD = 1.25
# Of the spread of the labels that the sum keeps: below, they cancel each other out (D.1).
_CANCELLED = 0.25
_LEVEL = 0.95


@dataclass(frozen=True)
class ModelDiagnosis:
    """How one column of scores serves the labels.

    Attributes
    ----------
    auc, auc_low, auc_high : float64 arrays (K,)
        AUC of each label with its 95 % interval; the mean over the queries where there are queries.
    ndcg, ndcg_low, ndcg_high : float64 arrays (K,) or None
        nDCG@k, gains y; None without queries, and with propensities.
    diff_auc, min_auc : Interval
        Difference of the greatest and the least AUC, and the least AUC, with intervals for these two labels.
    """

    auc: np.ndarray
    auc_low: np.ndarray
    auc_high: np.ndarray
    diff_auc: Interval
    min_auc: Interval
    ndcg: np.ndarray | None = None
    ndcg_low: np.ndarray | None = None
    ndcg_high: np.ndarray | None = None


@dataclass(frozen=True)
class Diagnosis:
    """Result of `diagnose`; `print` shows it as a table with a recommendation.

    Attributes
    ----------
    names : list of str
        Of the K labels.
    n_rows, n_queries : int
        n_queries is 0 where there are none.
    weights : float64 array (K,)
        a_k of loss aggregation, w_k of label aggregation.
    pi : float64 array (K,)
        Share of rows with a grade above 0.
    spread : float64 array (K,)
        ``pi_k (1 - pi_k)`` of a binary label, half the mean difference of two rows in general
        (`label_spread`); with queries the harmonic mean over those in which the label is not constant.
    inner_weights : float64 array (K,)
        ``a_k / spread_k``: the weight of eta_k under loss aggregation (Lukasik et al. 2025,
        Proposition 5.2; arXiv 2504.11284).
    loss_shares, label_shares : float64 arrays (K,)
        Shares of a step from the least to the greatest grade of each label, in the two Bayes-optimal
        scorers: inner_weights, or weights, times the range of grades, divided by their sum.
    balanced_weights : float64 array (K,)
        Weights of the same sum under which loss aggregation gives the order of label aggregation with
        `weights`: proportional to weights times spread.
    leader : int
        The label with the greatest share under loss aggregation.
    lead : float
        Its share over that of the next label.
    dictates : bool
        Whether its share exceeds those of all others together. Of two rows with deterministic labels that
        differ by its full range of grades, its grade alone then decides (Lukasik et al. 2025,
        Proposition 6.1).
    tilt : float
        How differently the two aggregations weigh the labels: the greatest value of loss_shares /
        label_shares over the least; 1 where both give the same order.
    favoured : int
        The label whose share grows most from label to loss aggregation.
    mild : bool
        Whether the tilt is below 1.25. The two orders then differ in near-ties only, unless labels are
        deterministic.
    dictates_until : float
        The greatest weight at which the leader does not dictate, with all other weights unchanged.
    correlations : float64 array (K, K)
        Pearson's; phi for binary labels.
    conflicts, conflict_shares : float64 arrays (K, K)
        Pairs of rows that two labels order oppositely: as a share of the pairs that both of them order (NaN
        where there are none), and of all pairs.
    kept_spread : float
        Spread of ybar = sum_k w_k y_k over the sum of w_k times the spreads, in [0, 1]: 1 where the labels
        never conflict, 0 where ybar is constant.
    nearly_constant : bool
        kept_spread < 0.25: the aggregated label is nearly constant (D.1).
    k : int
        Of nDCG@k.
    models : dict of str to ModelDiagnosis
        By name of the column of scores.
    dominance : bool array (m, m)
        Whether model i dominates model j by AUC (Definition 3.1).
    clear : bool array (m, m)
        Whether it does so with a difference of AUCs beyond 1.96 standard errors in some label.
    propensities : float64 array (K,) or None
        Means of the propensities, where they were given: all else is then of the complete labels.
    warnings : list of str
    recommendation : str
        In plain words, both.
    """

    names: list[str]
    n_rows: int
    n_queries: int
    weights: np.ndarray
    pi: np.ndarray
    spread: np.ndarray
    inner_weights: np.ndarray
    loss_shares: np.ndarray
    label_shares: np.ndarray
    balanced_weights: np.ndarray
    leader: int
    lead: float
    dictates: bool
    tilt: float
    favoured: int
    mild: bool
    dictates_until: float
    correlations: np.ndarray
    conflicts: np.ndarray
    conflict_shares: np.ndarray
    kept_spread: float
    nearly_constant: bool
    k: int
    models: dict[str, ModelDiagnosis] = field(default_factory=dict)
    dominance: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), bool))
    clear: np.ndarray = field(default_factory=lambda: np.zeros((0, 0), bool))
    propensities: np.ndarray | None = None

    @property
    def warnings(self) -> list[str]:
        return warnings_of(self)

    @property
    def recommendation(self) -> str:
        return recommendation_of(self)

    def to_dict(self) -> dict[str, Any]:
        """Lists, numbers and texts alone, ready for JSON; NaN and infinite numbers are None."""
        return _plain(self) | {"warnings": self.warnings, "recommendation": self.recommendation}

    def __str__(self) -> str:
        return page_of(self)

    def _repr_html_(self) -> str:
        """For notebooks: the page of `str`."""
        return _html.preformatted(str(self))


def diagnose(
    Y: Any,
    scores: Any = None,
    *,
    weights: Any = None,
    names: Sequence[str] | None = None,
    group: Any = None,
    qid: Any = None,
    k: int = 10,
    propensities: Any = None,
) -> Diagnosis:
    """Show how several targets interact in one ranking: before training, or in the scores of models.

    Parameters
    ----------
    Y : (n, K) array, table, or dict of name to column
        Grades >= 0, none of the K labels constant.
    scores : array (n,), (n, m) table, or dict of name to column, optional
        One or several rankings of the rows to judge and compare, preferably of held-out rows.
    weights : float array (K,) or dict of name to weight, optional
        a_k of loss aggregation and w_k of label aggregation; ones by default.
    names : sequence of str, optional
        Of the labels; those of `check_targets` by default: columns, keys, or "objective_0" and so on.
    group : integer array, optional
        Sizes of consecutive queries. With queries only rows of the same query make pairs; AUC, nDCG and inner
        weights are means over the queries in which a label is not constant.
    qid : array (n,), optional
        Query of each row, in any order, instead of `group`.
    k : int
        Of nDCG@k, which is computed with queries only.
    propensities : array (K,) or (n, K), or dict of name to number or array (n,), optional
        Where relevant labels are missing from Y, with what probability a relevant one was observed, as in
        `MultiObjectiveRanker.fit`. The diagnosis is then an estimate for the complete labels
        (`metarank.objectives.partial_labels`), without nDCG; labels must be binary, at most 8, and go missing
        independently of each other. With queries AUCs are corrected by one factor a label, and a spread
        is the mean over all pairs within queries, since that of a single query cannot be told.

    Returns
    -------
    Diagnosis
        `print` shows it as a page of text; `to_dict` is ready for JSON.

    Raises
    ------
    ValueError
        Y negative, not finite, without a row or a label; a constant label, which has no AUC (with queries:
        one constant in every query); weights of a wrong length, negative or summing to zero; names of a
        wrong number or repeated; groups that do not add up, qid of a wrong length, or both; scores that
        are NaN or of a wrong length; k < 1; propensities of another shape, not within (0, 1], with graded
        labels, or so small that a complete label would be constant.

    Examples
    --------
    Documents of which half are relevant and one in ten is recent (Appendix F):

    >>> found = diagnose([[1, 1]] + 4 * [[1, 0]] + 5 * [[0, 0]], names=["relevant", "recent"])
    >>> found.names[found.leader], found.dictates, round(found.lead, 2), round(found.dictates_until, 2)
    ('recent', True, 2.78, 0.36)
    >>> found = diagnose([[1, 0], [0, 1], [1, 0], [0, 1]])
    >>> found.nearly_constant, round(found.kept_spread, 2)
    (True, 0.0)

    Half of the rows are relevant, but three in four of these were never seen to be:

    >>> found = diagnose([[1, 1]] + 6 * [[0, 1]] + [[1, 0]] + 8 * [[0, 0]], propensities=[0.25, 1.0])
    >>> found.pi.round(3), found.spread.round(3)
    (array([0.5  , 0.438]), array([0.344, 0.246]))
    """
    grades, label_names = check_targets(Y)
    n, n_labels = grades.shape
    if n == 0:
        raise ValueError("Y must have at least one row, got none")
    if names is not None:
        label_names = [str(name) for name in names]
        if len(label_names) != n_labels or len(set(label_names)) < n_labels:
            raise ValueError(f"names must be {n_labels} different names, one a label, got {label_names}")
    a = check_weights(weights, n_labels, names=label_names)
    grouping = check_groups(n, group, qid)
    group_of_row = grouping.group_of_row if grouping.has_queries else None
    columns = _score_columns(scores, n)
    k = check_k(k)
    propensity = check_propensities(propensities, grades.shape, label_names)

    share, spread = (grades > 0).mean(axis=0), _spread(grades, group_of_row)
    if propensity is not None:
        pairs = CompletePairs(grades, propensity, grouping, label_names)
        attenuation(grades, propensity, grouping, label_names)  # refuses what is too small
        share = completed(grades > 0, propensity).mean(axis=0)
        spread = pair_costs(grades, propensity, grouping)[1].sum(axis=0) / (grouping.sizes**2).sum()
    for label, width in zip(label_names, spread):
        if not width > 0:
            where = "in all rows" if group_of_row is None else "in every query"
            raise ValueError(f"Y: label {label!r} has one value {where}: no AUC exists")
    if propensity is None:
        correlations, conflicts = _correlations(grades), _conflicts(grades, a, group_of_row)
    else:
        correlations = _correlations(grades, propensity)
        conflicts = _shares_of(Conflicts(*pairs.conflicts()), pairs.kept_spread(a * grades.max(axis=0)))
    models, dominance, clear = _judge(columns, grades, grouping, k, propensity)
    return Diagnosis(
        names=label_names,
        n_rows=n,
        n_queries=len(grouping.ids) if grouping.has_queries else 0,
        pi=share,
        **_weighing(a, spread, np.ptp(grades, axis=0)),
        correlations=correlations,
        **conflicts,
        k=k,
        models=models,
        dominance=dominance,
        clear=clear,
        propensities=None if propensity is None else np.atleast_2d(propensity).mean(axis=0),
    )


def _weighing(weights: np.ndarray, spread: np.ndarray, step: np.ndarray) -> dict[str, Any]:
    """What the two aggregations make of the weights; `step` is the range of each label's grades."""
    inner = weights / spread
    loss_shares, label_shares = _shares(inner * step), _shares(weights * step)
    leader = int(loss_shares.argmax())
    others = np.delete(loss_shares, leader)
    rest = float(others.sum())
    # Labels of weight 0 count in neither.
    gain = np.divide(loss_shares, label_shares, out=np.ones(len(weights)), where=weights > 0)
    tilt = float(gain[weights > 0].max() / gain[weights > 0].min())
    return {
        "weights": weights,
        "spread": spread,
        "inner_weights": inner,
        "loss_shares": loss_shares,
        "label_shares": label_shares,
        "balanced_weights": weights * spread * (weights.sum() / (weights * spread).sum()),
        "leader": leader,
        "lead": float(loss_shares[leader] / others.max()) if rest > 0 else np.inf,
        "dictates": bool(len(weights) > 1 and loss_shares[leader] > rest * (1 + 1e-9)),
        "tilt": tilt,
        "favoured": int(gain.argmax()),
        "mild": tilt < _MILD,
        "dictates_until": float(weights[leader] * rest / loss_shares[leader]),
    }


def _conflicts(grades: np.ndarray, weights: np.ndarray, group: np.ndarray | None) -> dict[str, Any]:
    """How often labels order pairs oppositely, and what of their spread is left in their sum."""
    return _shares_of(pair_conflicts(grades, group), _kept_spread(grades, weights, group))


def _shares_of(pairs: Conflicts, kept: float) -> dict[str, Any]:
    with np.errstate(invalid="ignore"):
        conflicts = pairs.opposite / pairs.ordered
    return {
        "conflicts": conflicts,
        "conflict_shares": pairs.opposite / max(pairs.n_pairs, 1.0),
        "kept_spread": kept,
        "nearly_constant": kept < _CANCELLED,
    }


def _spread(grades: np.ndarray, group: np.ndarray | None) -> np.ndarray:
    """Half the mean difference; within queries its harmonic mean, since 1 / spread is what weighs."""
    if group is None:
        return label_spread(grades)
    out = np.zeros(grades.shape[1])
    sizes = np.bincount(group).astype(np.float64)
    for j, column in enumerate(grades.T):
        # Pairs that differ are counted once a row: sums over rows have each pair twice.
        differences = np.bincount(group, pair_terms(column, column, "difference", group).cost)
        widths = differences / 2 / sizes**2
        if widths.any():
            out[j] = 1 / (1 / widths[widths > 0]).mean()
    return out


def _kept_spread(grades: np.ndarray, weights: np.ndarray, group: np.ndarray | None) -> float:
    """Sum over all pairs of |ybar - ybar'|, over that of sum_k w_k |y_k - y_k'|."""
    total = np.zeros(len(grades))
    apart = 0.0
    for column, weight in zip(grades.T, weights):
        total += weight * column
        apart += weight * pair_terms(column, column, "difference", group).cost.sum()
    # Sums of weighted grades that are equal but for rounding are equal.
    total = np.round(total / total.max(), 12) * total.max()
    return float(pair_terms(total, total, "difference", group).cost.sum() / apart)


def _correlations(grades: np.ndarray, propensity: np.ndarray | None = None) -> np.ndarray:
    if propensity is not None:
        return _complete_correlations((grades > 0).astype(np.float64), propensity)
    centred = grades - grades.mean(axis=0)
    length = np.sqrt((centred**2).sum(axis=0))
    out = np.eye(len(length))
    for j, k in combinations(range(len(length)), 2):
        out[j, k] = out[k, j] = (centred[:, j] * centred[:, k]).sum() / (length[j] * length[k])
    return np.clip(out, -1.0, 1.0)


def _complete_correlations(observed: np.ndarray, propensity: np.ndarray) -> np.ndarray:
    """phi of the complete labels: ``E[z_j z_k]`` is the share of rows that have both."""
    z = completed(observed, propensity)
    pi = z.mean(axis=0)
    deviation = np.sqrt(np.maximum(pi * (1 - pi), 0.0))
    out = np.eye(len(pi))
    for j, k in combinations(range(len(pi)), 2):
        bound = deviation[j] * deviation[k]
        joint = (z[:, j] * z[:, k]).mean() - pi[j] * pi[k]
        out[j, k] = out[k, j] = joint / bound if bound > 0 else 0.0
    return np.clip(out, -1.0, 1.0)


def _shares(values: np.ndarray) -> np.ndarray:
    return values / values.sum()


def _score_columns(scores: Any, n: int) -> dict[str, np.ndarray]:
    """The columns of scores by name."""
    if scores is None:
        return {}
    if isinstance(scores, Mapping):
        columns = {str(name): np.asarray(values) for name, values in scores.items()}
    elif hasattr(scores, "columns"):
        columns = {str(name): np.asarray(scores[name]) for name in scores.columns}
    elif np.ndim(scores) == 2:
        columns = {f"scores {j}": column for j, column in enumerate(np.asarray(scores).T)}
    else:
        columns = {"scores": np.asarray(scores)}
    for name, values in columns.items():
        if values.shape != (n,):
            raise ValueError(f"scores must have one entry a row of Y, ({n},), got {values.shape} in {name!r}")
        columns[name] = values.astype(np.float64)
        if np.isnan(columns[name]).any():
            raise ValueError(f"scores must not be NaN, got NaN in {name!r}")
    return columns


def _judge(
    columns: Mapping[str, np.ndarray],
    grades: np.ndarray,
    grouping: Grouping,
    k: int,
    propensity: np.ndarray | None,
) -> tuple[dict[str, ModelDiagnosis], np.ndarray, np.ndarray]:
    """Each column of scores, and which dominates which."""
    group = grouping.group_of_row if grouping.has_queries else None
    if propensity is None:
        areas = [auc_estimates(scores, grades, group) for scores in columns.values()]
    else:
        areas = [complete_auc(scores, grades, propensity, grouping) for scores in columns.values()]
    models = {}
    for (name, scores), area in zip(columns.items(), areas):
        lows, highs = _intervals(area)
        best, worst = int(area.values.argmax()), int(area.values.argmin())
        unit = np.eye(grades.shape[1])
        gap = area.interval(unit[best] - unit[worst], _LEVEL)
        gap = gap._replace(low=max(gap.low, 0.0))
        least = Interval(float(area.values[worst]), float(lows[worst]), float(highs[worst]))
        models[name] = ModelDiagnosis(area.values, lows, highs, gap, least)
        if group is not None and propensity is None:
            gains = ndcg_estimates(scores, grades, group, k)
            lows, highs = _intervals(gains)
            models[name] = replace(models[name], ndcg=gains.values, ndcg_low=lows, ndcg_high=highs)
    m = len(areas)
    dominance, clear = np.zeros((m, m), bool), np.zeros((m, m), bool)
    for i, j in permutations(range(m), 2):
        dominance[i, j] = dominates(areas[i].values, areas[j].values)
        apart = Estimates(areas[i].values - areas[j].values, areas[i].influence - areas[j].influence)
        lows = _intervals(apart)[0]
        clear[i, j] = dominance[i, j] and bool((lows > 0).any())
    return models, dominance, clear


def _intervals(estimates: Estimates) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of each value; not beyond 0 and 1 where they are of AUC or nDCG."""
    unit = np.eye(len(estimates.values))
    bounds = np.array([estimates.interval(row, _LEVEL)[1:] for row in unit])
    return np.maximum(bounds[:, 0], 0.0), np.minimum(bounds[:, 1], 1.0)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Interval):
        value = value._asdict()
    if is_dataclass(value):
        value = vars(value)
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
