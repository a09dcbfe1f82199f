"""Checks of several targets for each pair (instance, label), given to `MetaRanker.fit`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Integral
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank._util.parameters import seed_of
from metarank.objectives import check_weights
from metarank.objectives.multi_objective import MultiObjectiveRanker
from metarank.ranker.lists import informative_lists
from metarank.types.checks import LabelKind, check_labels, check_writable


def check_objectives(
    Y: Any, objectives: Any, *, ranker: Any, random_state: int
) -> MultiObjectiveRanker | None:
    """The aggregation of several targets; None if Y is not a dict of targets.

    Raises
    ------
    ValueError, TypeError
        If `objectives` is not an aggregation, or is given without targets or together with a `ranker`.
    """
    if not isinstance(Y, Mapping) or sp.issparse(Y):  # a DOK matrix is a mapping too
        if objectives is not None:
            raise ValueError("objectives needs several targets: Y must be a dict of them by objective")
        return None
    if not (isinstance(ranker, str) and ranker == "auto"):
        raise ValueError(f"ranker must be 'auto' where Y holds several objectives, got {ranker!r}")
    if isinstance(objectives, MultiObjectiveRanker):
        model = objectives
        if not isinstance(model.random_state, Integral):
            model = clone(model).set_params(random_state=seed_of(model.random_state))
    elif objectives is None or isinstance(objectives, str):
        model = MultiObjectiveRanker(
            objectives or "label",  # type: ignore[arg-type]  # checked below
            random_state=random_state,
            label_gain="linear",
            n_rounds=120,
            num_leaves=15,
            lambda_l2=5.0,
            feature_fraction=0.5,
            max_bin=63,
        )
    else:
        raise TypeError(
            f"objectives must name an aggregation or be a MultiObjectiveRanker, got {objectives!r:.80}"
        )
    model._check_parameters()
    return model


def check_targets(
    Y: Mapping[str, Any],
    n_rows: int,
    label_names: Sequence[str] | None,
    model: MultiObjectiveRanker,
    n_labels: int | None = None,
) -> tuple[dict[str, sp.csr_matrix], sp.csr_matrix, list[str] | None, LabelKind]:
    """Each target as CSR (n, L), their sum, the names of the labels, and "ids" if these are integers.

    Targets given by label names may have different labels; L counts all of them.

    Raises
    ------
    ValueError, TypeError
        No objective, names that are not strings; what `check_labels` refuses; targets of other labels or
        widths; an objective without a relevant label, or that is the same for all pairs; weights that do
        not fit, or by which the objectives cancel out.
    """
    if not Y:
        raise ValueError("Y must hold at least one objective, got an empty dict")
    for name in Y:
        if not isinstance(name, str) or not name:
            raise TypeError(f"Y must have the names of objectives as keys, got {name!r}")
        check_writable(name, "the objectives of Y")
    checked = {
        name: check_labels(of, n_rows=n_rows, n_labels=n_labels, label_names=label_names, name=f"Y[{name!r}]")
        for name, of in Y.items()
    }
    # Beside a matrix, which has places of labels, integers in lists are such.
    widths = [of.shape[1] for of, found, _ in checked.values() if found is None]
    for name, (_, _, kind) in list(checked.items()) if widths else ():
        if kind == "ids":
            places = {"n_rows": n_rows, "n_labels": max(widths), "ids": "positions"}
            checked[name] = check_labels(Y[name], name=f"Y[{name!r}]", **places)
    known = [found for _, found, _ in checked.values()]
    are_ids = all(kind == "ids" for _, _, kind in checked.values())
    if any(found is None for found in known) and any(found is not None for found in known):
        raise ValueError("Y must name the labels in all objectives or in none")
    names = None if known[0] is None else list(known[0])
    if names is not None and any(found != names for found in known):
        every = {label for found in known if found is not None for label in found}
        names = sorted(every, key=int if are_ids else None)
    targets: dict[str, sp.csr_matrix] = {}
    n_labels = max(of.shape[1] for of, _, _ in checked.values()) if names is None else len(names)
    for name, (of, found, _) in checked.items():
        if found is not None and names is not None and found != names:
            column = {label: j for j, label in enumerate(names)}
            ids = np.array([column[label] for label in found], np.int64)
            of = sp.csr_matrix((of.data, ids[of.indices], of.indptr), (n_rows, n_labels))
            of.sort_indices()
        if of.shape[1] != n_labels:
            raise ValueError(f"Y[{name!r}] must have {n_labels} labels as others have, got {of.shape[1]}")
        if of.nnz == 0:
            raise ValueError(f"Y[{name!r}] must hold a relevant label, got none")
        if _is_constant(of).all() and of.data.min() == of.data.max():
            raise ValueError(
                f"Y[{name!r}] must tell pairs apart, got {of.data[0]:g} for every label of every row"
            )
        targets[name] = of
    weights = check_weights(model.weights, len(targets), names=list(targets))
    if model.aggregation == "label" and model.combine == "sum" and len(targets) > 1:
        joint = sp.csr_matrix(sum(w * of.astype(np.float64) for w, of in zip(weights, targets.values())))
        if _is_constant(joint).all():
            raise ValueError(
                f"Y must hold objectives that do not cancel out: the weighted sum of {', '.join(targets)} is "
                f"the same for all labels of a row, in every row; got weights {weights.tolist()}"
            )
    total = sp.csr_matrix(sum(targets.values(), sp.csr_matrix((n_rows, n_labels), dtype=np.float32)))
    total.sum_duplicates()
    return targets, total.astype(np.float32), names, "ids" if are_ids else "indicator"


def _is_constant(of: sp.csr_matrix) -> np.ndarray:
    """bool (n,): rows with the same value for all labels."""
    stored = np.diff(of.indptr)
    differ = informative_lists(of.data, of.indptr, np.ones(len(stored)))
    return (stored == 0) | ((stored == of.shape[1]) & ~differ)
