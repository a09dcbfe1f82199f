"""`diagnose`: how several targets interact in one ranking, in numbers, before training."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
from sklearn.base import clone

from metarank._util.printable import plain_table, preformatted
from metarank.objectives.aggregation import label_spread
from metarank.objectives.checks import Grouping, check_weights, metric_of
from metarank.objectives.learning import GradedRows, graded_rows
from metarank.objectives.multi_objective import MultiObjectiveRanker
from metarank.objectives.pairwise import AucPairs
from metarank.objectives.positions import ShownRows, without_position_bias
from metarank.types.checks import check_same_order

_PLACES_SHOWN = 20


@dataclass(frozen=True)
class Diagnosis:
    """Result of `diagnose`; `print` shows it as tables.

    Attributes
    ----------
    names : list of str
        Of the K labels.
    n_rows, n_queries : int
        n_queries is 0 where there are none.
    weights : float64 array (K,)
        a_k of loss aggregation, w_k of label aggregation.
    pi : float64 array (K,)
        Share of rows with a grade above 0: of those given, before clicks are corrected for positions.
    spread : float64 array (K,)
        ``pi_k (1 - pi_k)`` of a binary label, half the mean difference of two rows in general
        (`label_spread`); with queries the harmonic mean over those in which the label is not constant.
    loss_shares, label_shares : float64 arrays (K,)
        What a step from the least to the greatest grade of each label weighs in the two Bayes-optimal
        scorers: ``a_k / spread_k``, or ``w_k``, times the range of grades, divided by their sum. A label of
        more than half dictates the order of rows whose labels are deterministic (Lukasik et al. 2025,
        Proposition 6.1; arXiv 2504.11284).
    balanced_weights : float64 array (K,)
        Weights of the same sum under which loss aggregation gives the order of label aggregation with
        `weights`: proportional to weights times spread.
    conflicts, conflict_shares : float64 arrays (K, K)
        Pairs of rows that two labels order oppositely: as a share of the pairs that both of them order (NaN
        where there are none), and of all pairs.
    cross_validated : dict of str to float64 array (folds, K)
        Of "label" and "loss" aggregation what each label attains on held-out rows, in `cross_metric`.
    cross_metric : str
    position_propensity : float64 array (P,) or None
        With positions: the examination probability of each, relative to the greatest. All other values,
        except `pi`, are then for the relevance estimated from clicks.
    """

    names: list[str]
    n_rows: int
    n_queries: int
    weights: np.ndarray
    pi: np.ndarray
    spread: np.ndarray
    loss_shares: np.ndarray
    label_shares: np.ndarray
    balanced_weights: np.ndarray
    conflicts: np.ndarray
    conflict_shares: np.ndarray
    cross_validated: dict[str, np.ndarray]
    cross_metric: str
    position_propensity: np.ndarray | None

    def to_dict(self) -> dict[str, Any]:
        """Lists, numbers and texts alone, ready for JSON; NaN and infinite numbers are None."""
        return {name: _plain(value) for name, value in vars(self).items()}

    def __str__(self) -> str:
        rows = f"{self.n_rows:,} rows, {len(self.names)} objective{'s' * (len(self.names) != 1)}"
        parts = [rows + (f", {self.n_queries:,} queries" if self.n_queries else "")]
        parts += ["", self._weights_table()]
        if len(self.names) > 1:
            parts += ["", self._conflicts_table()]
        if self.cross_validated:
            parts += ["", self._cross_table()]
        if self.position_propensity is not None:
            parts += ["", self._position_table()]
        return "\n".join(parts)

    def _repr_html_(self) -> str:
        """For notebooks: the page of `str`."""
        return preformatted(str(self))

    def _weights_table(self) -> str:
        head = [
            "objective",
            "above 0",
            "spread",
            "weight",
            "loss share",
            "label share",
            "balanced weight",
        ]
        columns = [
            self.names,
            [_per_cent(share) for share in self.pi],
            [f"{width:.4f}" for width in self.spread],
            [f"{weight:.3g}" for weight in self.weights],
            [_per_cent(share) for share in self.loss_shares],
            [_per_cent(share) for share in self.label_shares],
            [f"{weight:.3g}" for weight in self.balanced_weights],
        ]
        return plain_table(head, list(zip(*columns)))

    def _conflicts_table(self) -> str:
        rows = [
            [
                f"{self.names[j]} / {self.names[k]}",
                _per_cent(self.conflicts[j, k]),
                _per_cent(self.conflict_shares[j, k]),
            ]
            for j, k in combinations(range(len(self.names)), 2)
        ]
        return plain_table(["objectives", "conflicts, of pairs both order", "of all pairs"], rows)

    def _position_table(self) -> str:
        curve = self.position_propensity if self.position_propensity is not None else np.zeros(0)
        places = [(str(place), f"{value:.3f}") for place, value in enumerate(curve[:_PLACES_SHOWN], 1)]
        table = plain_table(["position", "examined"], places)
        return f"{table}\nall values but 'above 0' are corrected for positions"

    def _cross_table(self) -> str:
        """Means over the folds and their standard errors."""
        rows = []
        for method, values in self.cross_validated.items():
            errors = values.std(axis=0, ddof=1) / np.sqrt(len(values))
            shown = [f"{mean:.4f} ± {error:.4f}" for mean, error in zip(values.mean(axis=0), errors)]
            rows.append([method, *shown])
        head = ["aggregation", *(f"{self.cross_metric} {name}" for name in self.names)]
        return f"{plain_table(head, rows)}\nmeans of held-out folds ± standard error"


def diagnose(
    Y: Any,
    *,
    X: Any = None,
    ranker: MultiObjectiveRanker | None = None,
    weights: Any = None,
    group: Any = None,
    qid: Any = None,
    position: Any = None,
    position_of: Any = None,
    position_propensity: Any = None,
) -> Diagnosis:
    """Show what each of several targets weighs in one ranking, which conflict, and what aggregations give.

    Parameters
    ----------
    Y : (n, K) array, table, or dict of name to column
        Grades >= 0, none of the K labels constant.
    X : array-like or sparse (n, d), or data frame, optional
        Features, by which label and loss aggregation are compared in five-fold cross-validation over queries,
        or rows.
    ranker : MultiObjectiveRanker, optional
        Its settings are used in that; it is not changed or fitted.
    weights : float array (K,) or dict of name to weight, optional
        a_k of loss aggregation and w_k of label aggregation; ones by default.
    group : integer array, optional
        Sizes of consecutive queries. With queries only rows of the same query make pairs, and
        spreads are harmonic means over the queries in which a label is not constant.
    qid : array (n,), optional
        Query of each row, in any order, instead of `group`.
    position, position_of, position_propensity : optional
        Where the rows were shown, as in `MultiObjectiveRanker.fit`; X must be given too.

    Returns
    -------
    Diagnosis
        `print` shows it as tables; `to_dict` is ready for JSON.

    Raises
    ------
    ValueError
        Y negative, not finite, without a row or a label; a constant label, which has no AUC (with queries:
        one constant in every query); weights of a wrong length, negative or summing to zero; groups that do
        not add up, qid of a wrong length, or both.

    Examples
    --------
    Documents of which half are relevant and one in ten is recent (Appendix F):

    >>> found = diagnose({"relevant": 5 * [1] + 5 * [0], "recent": [1] + 9 * [0]})
    >>> found.loss_shares.round(2), found.balanced_weights.round(2)
    (array([0.26, 0.74]), array([1.47, 0.53]))
    """
    model = MultiObjectiveRanker() if ranker is None else ranker
    check_same_order(X=X, Y=Y)
    features = None if X is None else model.features(X, min_rows=2)
    rows = graded_rows(features, Y, group, qid)
    shown, curve = ShownRows.checked(rows, position, position_of, position_propensity), None
    if len(rows.values) == 0:
        raise ValueError("Y must have at least one row, got none")
    raw = rows.values
    if shown is not None:
        if X is None:
            raise ValueError("position needs X, to separate relevance from positions, got None")
        settings = model.settings()
        rows, curve = without_position_bias(rows, shown, settings.seed, settings.n_jobs)
    grades, label_names, grouping = rows.values, rows.names, rows.grouping
    n, n_labels = grades.shape
    a = check_weights(weights, n_labels, names=label_names)
    spread = _spread_of(grades, grouping, label_names)
    loss_shares, label_shares = (w * np.ptp(grades, axis=0) for w in (a / spread, a))
    opposite, ordered = _conflicts(grades, grouping)
    with np.errstate(invalid="ignore"):
        conflicts = opposite / ordered
    return Diagnosis(
        names=label_names,
        n_rows=n,
        n_queries=rows.n_queries,
        weights=a,
        pi=(raw > 0).mean(axis=0),
        spread=spread,
        loss_shares=loss_shares / loss_shares.sum(),
        label_shares=label_shares / label_shares.sum(),
        balanced_weights=a * spread * (a.sum() / (a * spread).sum()),
        conflicts=conflicts,
        conflict_shares=opposite / max((grouping.sizes * (grouping.sizes - 1) / 2).sum(), 1.0),
        cross_validated={} if X is None else _cross_validated(rows, a, model),
        cross_metric=metric_of(model.metric, grouping),
        position_propensity=curve,
    )


def _cross_validated(
    rows: GradedRows, weights: np.ndarray, ranker: MultiObjectiveRanker
) -> dict[str, np.ndarray]:
    """What each label attains on each fold by a model of the others, (folds, K) for each aggregation."""
    fold = rows.folds(5, ranker.settings().seed)
    out = {}
    for method in ("label", "loss"):
        aggregation = replace(ranker.settings().aggregation, method=method)  # type: ignore[arg-type]
        model = clone(ranker).set_params(aggregation=aggregation, weights=weights)
        attained = []
        for f in np.unique(fold):
            seen, held_out = rows.take(fold != f), rows.take(fold == f, "eval_set")
            attained.append(model._learn(model.settings(), seen, held_out).attained_)
        out[method] = np.array(attained)
    return out


def _spread_of(grades: np.ndarray, grouping: Grouping, names: list[str]) -> np.ndarray:
    """float64 (K,)"""
    spread = label_spread(grades)
    if grouping.has_queries:
        # Half the mean difference in each query; its harmonic mean, since 1 / spread is what weighs.
        for j, column in enumerate(grades.T):
            cost = np.bincount(grouping.group_of_row, grouping.distances(column))
            widths = cost / 2 / grouping.sizes.astype(np.float64) ** 2
            spread[j] = 1 / (1 / widths[widths > 0]).mean() if widths.any() else 0.0
    for label, width in zip(names, spread):
        if not width > 0:
            where = "in every query" if grouping.has_queries else "in all rows"
            raise ValueError(f"Y: label {label!r} has one value {where}: no AUC exists")
    return spread


def _conflicts(grades: np.ndarray, grouping: Grouping) -> tuple[np.ndarray, np.ndarray]:
    """Pairs of rows that two labels order oppositely, and pairs that both order, (K, K) each.

    Taken as scores of label j, label k has D of the pairs that j orders in the opposite order, and T tied.
    """

    def pairs_of(code: np.ndarray) -> AucPairs:
        return AucPairs(code.astype(float), grouping, cost="uniform", costs=np.ones(len(grouping.sizes)))

    codes = [np.unique(column, return_inverse=True)[1] for column in grades.T]
    labels = [pairs_of(code) for code in codes]
    tied = np.zeros(len(grades))
    number = [2 * label.lost(tied) for label in labels]
    opposite, ordered = np.zeros((len(codes), len(codes))), np.diag(number)
    for j, k in combinations(range(len(codes)), 2):
        either = 2 * pairs_of(codes[j] * (codes[k].max() + 1) + codes[k]).lost(tied)
        ordered[j, k] = ordered[k, j] = number[j] + number[k] - either
        lost = labels[j].lost(codes[k].astype(float))
        opposite[j, k] = opposite[k, j] = lost - (number[j] - ordered[j, k]) / 2
    return opposite, ordered


def _per_cent(value: float) -> str:
    return "-" if np.isnan(value) else f"{100 * value:.1f} %"


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        value = value.tolist()
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value
