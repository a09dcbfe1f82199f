"""`aggregate_labels`: one target from several."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, get_args

import numpy as np

from metarank._util.parameters import LARGEST_SEED, check_choice, seed_of
from metarank.objectives.checks import Grouping, check_groups, check_targets, check_weights
from metarank.objectives.partial_labels import check_linear, check_propensities, completed

Combination = Literal["sum", "product", "max", "lexicographic", "stochastic"]
COMBINATIONS: tuple[str, ...] = get_args(Combination)


def aggregate_labels(
    Y: Any,
    how: Combination = "sum",
    *,
    weights: Any = None,
    order: Sequence[int | str] | None = None,
    group: Any = None,
    qid: Any = None,
    random_state: Any = 0,
    propensities: Any = None,
) -> np.ndarray:
    """Label aggregation: combine several targets into one.

    Parameters
    ----------
    Y : array-like (n, K), data frame or mapping of names to columns
        Grades >= 0.
    how : str
        With weights w (ones by default):

        * "sum": ``sum_k w_k y_k``;
        * "product": ``prod_k y_k ** w_k``, so that a weight of 0 leaves a label out;
        * "max": ``max_k w_k y_k``;
        * "lexicographic": the first label of `order` decides, the second breaks ties, and so on. The value
          is the rank, from 0, of a row's grades among the distinct rows of grades;
        * "stochastic": the grade ``y_k`` of one label drawn for each query with probability
          ``w_k / sum(w)``, by a hash of (random_state, query). Without queries each row draws by its own
          number.
    weights : array-like (K,) or mapping of names, or None
        Not for "lexicographic".
    order : sequence of K numbers or names of labels, most important first, or None
        For "lexicographic" only; None keeps their order.
    group, qid : array-like or None
        Sizes of consecutive queries, or the query of each row. An integer qid is hashed as it is, so its draw
        does not depend on the order of the rows or on other queries.
    random_state : int, None, RandomState or Generator
    propensities : None, array-like (K,) or (n, K), or mapping of names
        Of Y, the observed part of complete labels: for "sum", "product" and "stochastic" the value is then an
        unbiased estimate of that of the complete labels, see `metarank.objectives.partial_labels`.

    Returns
    -------
    float64 array (n,)

    Raises
    ------
    ValueError
        Bad targets, weights or groups; an unknown `how`; an `order` that is not a permutation of the
        labels; an option that `how` does not use; a sum or product too large for a float64.

    Examples
    --------
    >>> Y = [[0, 1], [1, 0], [1, 1], [0, 0]]
    >>> aggregate_labels(Y, weights=[1, 2])
    array([2., 1., 3., 0.])
    >>> aggregate_labels(Y, "product")
    array([0., 0., 1., 0.])
    >>> aggregate_labels(Y, "lexicographic", order=[1, 0])
    array([2., 1., 3., 0.])
    >>> aggregate_labels(Y, "stochastic", group=[2, 2])
    array([1., 0., 1., 0.])
    """
    check_choice("how", how, COMBINATIONS)
    values, names = check_targets(Y)
    propensity = check_propensities(propensities, values.shape, names)
    if propensity is not None:
        check_linear("auc", "difference", how)
    if how != "lexicographic" and order is not None:
        raise ValueError(f"order is for how='lexicographic' only, got how={how!r}")
    if how == "lexicographic":
        if weights is not None:
            raise ValueError("weights have no place in how='lexicographic': give order, most important first")
        return _ranks_of_rows(values[:, _check_order(order, names)])
    w = check_weights(weights, len(names), names=names)
    grouping = check_groups(len(values), group, qid)
    seen = 1.0
    if propensity is not None:
        if how == "product":  # a label of weight 0 has no part in it
            seen = np.where(w > 0, propensity, 1.0).prod(axis=-1)
        else:
            values = completed(values, propensity)
    if how == "stochastic":
        return draw_labels(values, w, grouping, random_state)
    with np.errstate(over="ignore"):
        if how == "sum":
            out = (values * w).sum(axis=1)
        elif how == "product":
            out = (values**w).prod(axis=1) / seen
        else:
            out = (values * w).max(axis=1)
    if not np.isfinite(out).all():
        raise ValueError(f"the {how} of the labels is too large for a float64 at row {np.argmax(out)}")
    return out


def draw_labels(values: np.ndarray, weights: np.ndarray, grouping: Grouping, random_state: Any) -> np.ndarray:
    """The column that each query, or each row without queries, has drawn."""
    seed = seed_of(random_state, LARGEST_SEED)
    ids = grouping.ids if grouping.has_queries else np.arange(len(values))
    share = np.cumsum(weights) / weights.sum()
    drawn = np.minimum(np.searchsorted(share, hash_uniform(ids, seed), side="right"), len(share) - 1)
    if grouping.has_queries:
        drawn = drawn[grouping.group_of_row]
    return values[np.arange(len(values)), drawn]


def _check_order(order: Sequence[int | str] | None, names: list[str]) -> list[int]:
    if order is None:
        return list(range(len(names)))
    places = [names.index(o) if isinstance(o, str) and o in names else o for o in order]
    if sorted(map(str, places)) != sorted(map(str, range(len(names)))):
        raise ValueError(
            f"order must name each of {names} (or 0 to {len(names) - 1}) once, got {list(order)}"
        )
    return [int(place) for place in places]


def _ranks_of_rows(values: np.ndarray) -> np.ndarray:
    """The rank of each row among the distinct rows in lexicographic order, from 0."""
    order = np.lexsort(values.T[::-1])
    ordered = values[order]
    rank = np.zeros(len(values))
    rank[order[1:]] = np.cumsum((ordered[1:] != ordered[:-1]).any(axis=1))
    return rank


def hash_uniform(ids: np.ndarray, seed: int) -> np.ndarray:
    """Numbers in [0, 1), each a function of (seed, id): SplitMix64 twice."""
    x = _splitmix64(_splitmix64(np.array([seed % 2**64], np.uint64)) ^ ids.astype(np.int64).view(np.uint64))
    return (x >> np.uint64(11)) * 2.0**-53


def _splitmix64(x: np.ndarray) -> np.ndarray:
    x = x + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return x ^ (x >> np.uint64(31))
