"""The labels of a data set in the order of those that were ranked, by their names."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._util.callers import outside
from metarank._util.printable import first_few
from metarank.types.ranking import Ranking


def in_one_order(Y_true: Any, scores: Any, of_labels: Mapping[str, Any]) -> tuple[Any, Any, dict[str, Any]]:
    """Relevances, scores and what is told of each label, all with the same labels in the same order.

    Parameters
    ----------
    Y_true : relevances, or a Dataset, whose labels may be others, in another order, than those of the ranking
    scores : as of `evaluate`
    of_labels : dict
        "Y_pred", "inv_propensity" and "label_counts", each None or of the labels of `scores`.

    Returns
    -------
    Y_true, scores, of_labels
        As they are unless `Y_true` is a Dataset. Otherwise its relevances, at the places of the ranking's
        labels where both have names. Labels of the data that the ranking does not know stand behind them,
        with a warning: they are not listed, in no label set, have no training row and the greatest inverse
        propensity.

    Raises
    ------
    ValueError
        If two labels that are relevant for some row share a name, or two of the ranking's do.
    """
    if not (hasattr(Y_true, "Y") and hasattr(Y_true, "label_names")):
        return Y_true, scores, dict(of_labels)
    Y, names = sp.csr_matrix(Y_true.Y), Y_true.label_names
    known = scores.label_names if isinstance(scores, Ranking) else None
    if known is None or names is None or list(names) == list(known):
        return Y, scores, dict(of_labels)
    place = {name: label for label, name in enumerate(known)}
    used = np.unique(Y.indices)
    relevant = [names[label] for label in used]
    for what, some in (("scores", known), ("Y_true", relevant)):
        if len(set(some)) < len(some):
            twice = next(name for i, name in enumerate(some) if name in some[:i])
            raise ValueError(
                f"{what} must have labels of different names to be matched by name, got {twice!r} twice"
            )
    unknown = [name for name in relevant if name not in place]
    place |= {name: len(known) + i for i, name in enumerate(unknown)}
    target = np.zeros(Y.shape[1], Y.indices.dtype)
    target[used] = [place[name] for name in relevant]
    Y = sp.csr_matrix((Y.data, target[Y.indices], Y.indptr), shape=(Y.shape[0], len(place)))
    Y.sort_indices()
    if not unknown:
        return Y, scores, dict(of_labels)
    n_pairs = int(np.count_nonzero(Y.indices >= len(known)))
    warnings.warn(
        f"labels that the ranking does not know: {len(unknown)} ({first_few(unknown)}), in {n_pairs} of "
        f"{Y.nnz} relevant pairs, which count as missed",
        stacklevel=outside(),
    )
    scores = replace(scores, n_labels=len(place), label_names=[*known, *unknown])
    return Y, scores, {name: _wider(name, value, len(unknown)) for name, value in of_labels.items()}


def _wider(name: str, value: Any, more: int) -> Any:
    """What is told of the labels, for so many more that nothing is known of."""
    if value is None:
        return None
    if name == "Y_pred":
        sets = sp.csr_matrix(value)
        return sp.csr_matrix((sets.data, sets.indices, sets.indptr), (sets.shape[0], sets.shape[1] + more))
    value = np.asarray(value)
    unseen = 0 if name == "label_counts" else value.max(initial=1.0)
    return np.append(value, np.full(more, unseen, value.dtype))
