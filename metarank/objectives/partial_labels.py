"""Targets of which relevant ones are missing: what the observed grades say of the complete ones.

Of a complete grade y_ik > 0 of row i and label k the observed one, o_ik, is the same with probability
p_ik and 0 otherwise; a grade of 0 is always observed as 0 (Jain et al. 2016, section 4). Rows go missing
independently of each other. Then ``z_ik = o_ik / p_ik`` has the expectation y_ik, and so has every sum
that is linear in it:

* **Label aggregation** is linear: ``E[sum_k w_k z_k | x] = sum_k w_k E[y_k | x]``. A product of labels
  is, too, if they go missing independently given the complete ones: ``prod_k o_k^w_k / p_k`` over the
  labels with w_k > 0.
* **The AUC**, with difference costs, is ``1 - N / D`` with ``N = sum over y_i > y_j of (y_i - y_j) e_ij``
  and ``D = sum_{i<j} |y_i - y_j|``; e_ij is 1 where row j is scored above row i, 0 where below, and 1/2
  in a tie. As ``|y_i - y_j| = y_i + y_j - 2 min(y_i, y_j)`` and ``e_ij + e_ji = 1``, both are linear in
  the grades except the minima, and ``E[min(o_i, o_j) / (p_i p_j)] = min(y_i, y_j)``. Hence the unbiased
  estimates

      D' = (n - 1) sum_i z_i - 2 sum_{i<j} min(o_i, o_j) / (p_i p_j)
      N' - D'/2 = N(z) - D(z)/2

  where N(z) and D(z) are those of z in the place of the grades: the AUC of the complete labels is
  estimated by ``1/2 + c (AUC(z) - 1/2)``, ``c = D(z) / D'``. For a binary label and one p this is the AUC
  against unlabelled rows, ``c = (1 - pi p) / (1 - pi)``: the order of scores is the same, the weight
  beside other labels is not. An unbiased estimate may lie outside [0, 1], the more so the larger c is.
* **Loss aggregation** ``sum_k a_k (1 - AUC_k)`` takes N(z) / D' of each label: that of z with the weights
  ``a_k c_k``. Its optimum is ``sum_k a_k E[y_k | x] / spread_k``, `label_spread` of the complete labels,
  as it is without missing ones.
* **Plug-ins**: the logistic loss is linear in its target, so that of z is unbiased; the linear model
  minimises it. Trees, which would grow without end on targets above 1, learn the observed label,
  ``p_k E[y_k | x]``, which is divided by p_k.

A surrogate of the AUC is that of z. The unbiased estimate of the surrogate itself would give pairs of
observed positives a negative weight, and have no minimum.

With queries, a loss is usually the mean over them of each query's N / D. An observed label would come to the
denominator, too, where it makes the query count less for all labels, and D' of one query may be negative.
So the sums N(z) of the queries are divided by the cost that queries of their size have on average, which is
linear again (`query_costs`); queries then count as they have pairs to order for their size.

The AUC itself, with queries, is the mean over those that have a pair. c is then one factor a label. A binary
label's AUC(z) - 1/2 is that of its relevant against its irrelevant rows times

    A = (n - sum_i y_i) S(z) / D(z),   S(z) = sum_i z_i

on average over which rows are seen, as pairs of two relevant rows are as often in either order. Relevant
rows that were not seen count as others that were: ``E[(y_i - o_i) F(z)] = E[o_i (1 - p_i) / p_i F(z
without i)]``. So the sum of A over the queries has the unbiased estimate

    (n - sum_i o_i) S(z) / D(z) - sum_i o_i (1 - p_i) / p_i S(z without i) / D(z without i)

and c is the number of queries with a pair over it: exact if the AUC of a query does not depend on how
many relevant rows it has. Of graded labels c is the sum of D(z) over that of D', exact for the AUC in
which every pair counts equally.

No sound form have: nDCG, which divides by the best DCG of the complete labels of each query; uniform
costs, since grades z of different propensities are not grades; a maximum of grades.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from metarank._util.modules import outside
from metarank.objectives.checks import Grouping

# Factors of AUC(z) - 1/2 beyond which its estimate is noise, and beyond which it is refused.
_LARGE_FACTOR, _MOST_FACTOR = 3.0, 10.0


def check_propensities(
    propensities: Any, shape: tuple[int, int], names: Sequence[str], name: str = "propensities"
) -> np.ndarray | None:
    """Propensities as float64 (K,), or (n, K) where they differ between rows; None where all are 1.

    Parameters
    ----------
    propensities : None, array-like (K,) or (n, K), or mapping of names to numbers or arrays (n,)
        Labels that a mapping does not name are observed completely.
    shape : (n, K)
    names : sequence of str
        Of the labels.
    name : str
        How messages call the input.

    Raises
    ------
    ValueError
        Another shape, an unknown name, a value that is not within (0, 1].

    Examples
    --------
    >>> check_propensities({"clicks": 0.5}, (4, 2), ["relevance", "clicks"])
    array([1. , 0.5])
    """
    if propensities is None:
        return None
    n, n_labels = shape
    if isinstance(propensities, Mapping):
        for key in propensities:
            if key not in names:
                raise ValueError(f"{name} must name objectives of {list(names)}, got {key!r}")
        parts = [propensities.get(label, 1.0) for label in names]
        wrong = next((part for part in parts if np.shape(part) not in ((), (n,))), None)
        if wrong is not None:
            raise ValueError(f"{name} must be a number or an array ({n},) for each label, got {wrong!r:.80}")
        by_label = all(np.ndim(part) == 0 for part in parts)
        propensities = parts if by_label else np.column_stack([np.broadcast_to(part, n) for part in parts])
    try:
        values = np.array(propensities, np.float64)
    except (ValueError, TypeError):
        raise ValueError(f"{name} must be numbers, got {propensities!r:.80}") from None
    if values.shape not in ((n_labels,), (n, n_labels)):
        raise ValueError(
            f"{name} must have shape ({n_labels},), one per label, or ({n}, {n_labels}), got {values.shape}"
        )
    bad = ~((values > 0) & (values <= 1))
    if bad.any():
        where = np.argwhere(bad)[0]
        place = f" at row {where[0]}" if len(where) > 1 else ""
        raise ValueError(
            f"{name} must be within (0, 1], got {values[tuple(where)]:g} for {names[where[-1]]!r}{place}"
        )
    return None if (values == 1).all() else values


def check_linear(metric: str, cost: Any, combine: str = "sum") -> None:
    """Refuse by name what has no form for missing labels."""
    if metric != "auc":
        raise ValueError(
            f"metric must be 'auc' with propensities, got {metric!r} (\"auto\" is 'ndcg' with queries): nDCG "
            "has no estimate from observed labels"
        )
    if cost != "difference":
        raise ValueError(
            f"cost must be 'difference' with propensities, got {cost!r}: only it is linear in the grades"
        )
    if combine not in ("sum", "product"):
        raise ValueError(
            f"combine must be 'sum' or 'product' with propensities, got {combine!r}: grades that are missing "
            "have no estimate in it"
        )


def completed(observed: np.ndarray, propensity: np.ndarray) -> np.ndarray:
    """float64 (n, K): ``o / p``, whose expectation is the complete grade."""
    return np.asarray(observed / propensity)


def pair_costs(
    observed: np.ndarray, propensity: np.ndarray, grouping: Grouping
) -> tuple[np.ndarray, np.ndarray]:
    """D(z) and D', the sums of ``|y_i - y_j|`` over pairs by o / p and of the complete grades, (G, K) each.

    The second is unbiased, and may be negative in a small group.

    Examples
    --------
    >>> from metarank.objectives import check_groups
    >>> found, complete = pair_costs(np.array([[1.0], [1.0], [0.0], [0.0]]), np.array([0.8]), check_groups(4))
    >>> found.round(3), complete.round(3)  # 4 pairs / .8; 3 * 2.5 - 2 / .8^2
    (array([[5.]]), array([[4.375]]))
    """
    weight = np.broadcast_to(1 / propensity, observed.shape)
    group, n_groups = grouping.group_of_row, len(grouping.ids)
    costs, complete = np.zeros((n_groups, observed.shape[1])), np.zeros((n_groups, observed.shape[1]))
    for k, grades in enumerate(observed.T):
        z = grades * weight[:, k]
        costs[:, k] = np.bincount(group, grouping.distances(z), n_groups) / 2
        # Of a pair, the row that comes first by grade has the lesser one: it meets all weights behind it.
        order = grouping.sorted_by(grades)
        w = np.where(grades > 0, weight[:, k], 0.0)[order]
        through, of_group = np.cumsum(w), group[order]
        ends = np.append(0.0, through)[grouping.indptr[1:]]
        lesser = np.bincount(of_group, grades[order] * w * (ends[of_group] - through), n_groups)
        total = np.bincount(group, z, n_groups)
        complete[:, k] = (grouping.sizes - 1) * total - 2 * lesser
    return costs, complete


def attenuation(
    observed: np.ndarray, propensity: np.ndarray, grouping: Grouping, names: Sequence[str]
) -> np.ndarray:
    """float64 (K,): c of each label, by which ``AUC(z) - 1/2`` falls short of that of the complete labels.

    Raises
    ------
    ValueError
        If the propensities are so small that complete labels would order hardly any pair of rows: c is 10 or
        more. Above 3 there is a warning.

    Examples
    --------
    Half of four rows, observed with .8: 5 / 4.375.

    >>> from metarank.objectives import check_groups
    >>> one = np.array([[1.0], [1.0], [0.0], [0.0]])
    >>> attenuation(one, np.array([0.8]), check_groups(4), ["clicks"]).round(4)
    array([1.1429])
    """
    is_complete = np.broadcast_to(propensity, observed.shape).min(axis=0, initial=1.0) == 1
    costs, complete = (part.sum(axis=0) for part in pair_costs(observed, propensity, grouping))
    if grouping.has_queries:
        kept, counted = kept_shares(observed, propensity, grouping)
        binary = np.array([len(np.unique(grades[grades > 0])) < 2 for grades in observed.T])
        costs = np.where(binary, counted.sum(axis=0), costs)
        complete = np.where(binary, kept.sum(axis=0), complete)
    for k in np.flatnonzero(~is_complete & ~(complete > costs / _MOST_FACTOR)).tolist():
        raise _too_small(names[k])
    factors = np.where(is_complete, 1.0, costs / np.where(is_complete, 1.0, complete))
    for k in np.flatnonzero(factors > _LARGE_FACTOR).tolist():
        warnings.warn(
            f"propensities of {names[k]!r} are small: estimates of its AUC are multiplied by "
            f"{factors[k]:.1f}, with their noise, and may lie far outside [0, 1]",
            stacklevel=outside(),
        )
    return factors


def query_costs(complete: np.ndarray, sizes: np.ndarray, names: Sequence[str]) -> list[np.ndarray]:
    """What the sums over the pairs of each query are divided by, float64 (G,) for each label.

    It is the cost D' of all pairs, shared out by ``n_g^b`` of the queries' sizes, and no figure of the
    query's own labels. b is the power, between 1 and 2, by which D' grows from the smaller half of the
    queries to the larger.

    Parameters
    ----------
    complete : float64 array (G, K)
        D' of each query.
    sizes : int64 array (G,)
    names : sequence of str

    Examples
    --------
    Four queries have twice the pairs where they have twice the rows:

    >>> query_costs(np.array([[3.0], [5.0], [7.0], [9.0]]), np.array([2, 2, 4, 4]), ["clicks"])[0].round(1)
    array([16., 16., 32., 32.])
    """
    out = []
    for name, of_query in zip(names, complete.T):
        if not of_query.sum() > 0:
            raise _too_small(name)
        large = sizes > np.median(sizes)
        power = 2.0
        if large.any() and min(of_query[large].sum(), of_query[~large].sum()) > 0:
            rise, growth = (np.log(x[large].mean() / x[~large].mean()) for x in (of_query, sizes))
            power = float(np.clip(rise / growth, 1.0, 2.0))
        base = sizes**power
        total = (of_query / base).sum()
        # All pairs as they are, if a few large queries have another sign than the others.
        out.append(base * total if total > 0 else np.full(len(sizes), of_query.sum()))
    return out


def _too_small(name: str) -> ValueError:
    return ValueError(
        f"propensities of {name!r} are too small: divided by them, its observed labels are those of nearly "
        "all rows, and the complete label would be constant"
    )


def kept_shares(
    observed: np.ndarray, propensity: np.ndarray, grouping: Grouping
) -> tuple[np.ndarray, np.ndarray]:
    """What AUC(z) - 1/2 of each query is of the complete binary label's, and which have a pair, (G, K) each.

    The sum of the first over all queries is unbiased.
    """
    weight = np.broadcast_to(1 / propensity, observed.shape)
    group, n_groups = grouping.group_of_row, len(grouping.ids)
    kept, counted = np.zeros((n_groups, observed.shape[1])), np.zeros((n_groups, observed.shape[1]), bool)
    for k, grades in enumerate(observed.T):
        seen = (grades > 0).astype(np.float64)
        z = seen * weight[:, k]
        cost = grouping.distances(z)
        number, total, apart = (np.bincount(group, part, n_groups) for part in (seen, z, cost / 2))
        counted[:, k] = apart > 0
        # A row whose label had not been seen would differ from the others by their z.
        others = total[group] - z
        without = np.maximum(apart[group] - cost + others, 0.0)
        lost = seen * (weight[:, k] - 1) * np.divide(others, without, np.zeros(len(z)), where=without > 0)
        ratio = np.divide(total, apart, out=np.zeros(n_groups), where=apart > 0)
        kept[:, k] = (grouping.sizes - number) * ratio - np.bincount(group, lost, n_groups)
    return kept, counted
