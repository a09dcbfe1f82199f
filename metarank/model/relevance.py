"""`Relevance`: the relevant labels of rows on which a model is measured, known to the model or not."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import scipy.sparse as sp

from metarank._util.printable import first_few
from metarank.data.dataset import Dataset
from metarank.data.separators import cut_labels, described, same_separator
from metarank.metrics.propensity import inv_propensity
from metarank.types.checks import check_labels, integer_names
from metarank.types.label_descriptions import LabelDescriptions
from metarank.types.ranking import Ranking

if TYPE_CHECKING:
    from metarank.model.estimator import MetaRanker


@dataclass(frozen=True, eq=False)
class Relevance:
    """Relevances of n rows for the L labels of a model, followed by U labels that it does not know.

    Unknown labels have a column each, since they count as missed. So do removed ones.

    Attributes
    ----------
    Y : CSR (n, L + U)
    n_known : int
        L.
    unknown : list of str
        Names of the U unknown labels. Each is relevant for some row.
    removed : dict of id to name
        The labels that were removed from the model and are relevant for some row.
    """

    Y: sp.csr_matrix
    n_known: int
    unknown: list[str]
    removed: dict[int, str] = field(default_factory=dict)

    @property
    def n_unknown_pairs(self) -> int:
        """Number of relevant pairs with an unknown label."""
        return int(np.count_nonzero(self.Y.indices >= self.n_known))

    @property
    def n_removed_pairs(self) -> int:
        """Number of relevant pairs with a removed label."""
        return int(np.isin(self.Y.indices, list(self.removed)).sum())

    @cached_property
    def said(self) -> str:
        """The message about labels that count as missed; "" if there are none."""
        missed = (
            ("that the model never met", self.unknown, self.n_unknown_pairs),
            ("removed from the model", list(self.removed.values()), self.n_removed_pairs),
        )
        return "; ".join(
            f"labels {what}: {len(names)} ({first_few(names)}), in {n_pairs} of {self.Y.nnz} relevant "
            "pairs, which count as missed"
            for what, names, n_pairs in missed
            if names
        )

    def warn(self, stacklevel: int = 3) -> None:
        """Emit a UserWarning about labels that count as missed, if there are any."""
        if self.said:
            warnings.warn(self.said, stacklevel=stacklevel)

    def widened(self, found: Any) -> Any:
        """A Ranking, sparse matrix or scores of L labels, extended to L + U: unknown labels are absent, or
        -inf."""
        if not self.unknown:
            return found
        n, width = self.Y.shape
        if isinstance(found, Ranking):
            names = found.label_names
            return Ranking(
                found.labels, found.scores, width, None if names is None else [*names, *self.unknown]
            )
        if sp.issparse(found):
            return sp.csr_matrix((found.data, found.indices, found.indptr), shape=(n, width))
        return np.hstack([found, np.full((n, len(self.unknown)), -np.inf, found.dtype)])

    def parents(self, model: MetaRanker) -> sp.csr_matrix | None:
        """CSR (L + U, L + U): the parents of each label; None if the model knows of none."""
        table: LabelDescriptions | None = model.labels_
        if table is None or table.parents is None:
            return None
        found = table.parents.copy()
        found.resize((self.Y.shape[1], self.Y.shape[1]))
        return found

    def inv_propensity(self, model: MetaRanker) -> np.ndarray:
        """float64 (L + U,): the model's values; for unknown labels that of a label without a training row."""
        known: np.ndarray = model.inv_propensity_
        if not self.unknown:
            return known
        n = model.n_rows_
        if n is None:  # not kept in older models: no label of theirs was rarer
            unseen = float(known.max())
        else:
            unseen = float(inv_propensity(np.zeros(1), n_points=n)[0]) if n >= 3 else 1.0
        return np.concatenate([known, np.full(len(self.unknown), unseen)])


def aligned_relevance(model: MetaRanker, Y: Any, n_rows: int | None = None) -> Relevance:
    """Relevances for the labels of a model, matched by name if both have names, else by id.

    A label that was merged into another one counts as that one.

    Parameters
    ----------
    model : fitted MetaRanker
    Y : Dataset, table, matrix (n, L), list of n lists of labels, or vector of classes
        In a Dataset without names, columns from L on are unknown labels; a matrix must have L columns. The
        column names of a table are label names, unless they are the default numbers from 0 on.
    n_rows : int, optional
        Must agree.

    Raises
    ------
    ValueError, TypeError
        As `check_labels`; if several labels of the model share a name; if there are names but the model has
        none.
    """
    found = _of_labels(model, Y, n_rows)
    if model.removed_.size == 0:
        return found
    merged = model.fitted_.merged
    if merged is not None:
        now = np.arange(found.Y.shape[1])
        now[merged[:, 0]] = merged[:, 1]
        found = replace(found, Y=_placed(found.Y, now, len(now)))
    removed = np.intersect1d(found.Y.indices, model.removed_).tolist()
    return replace(found, removed={label: model.label_table_.shown(label) for label in removed})


def _of_labels(model: MetaRanker, Y: Any, n_rows: int | None) -> Relevance:
    """Relevances for the labels of a model, removed ones included."""
    L, known = model.n_labels_, model.label_names_
    if isinstance(Y, Dataset):
        _check_same_separator(model, Y)
        own, names = check_labels(Y.Y, n_rows=n_rows, allow_no_labels=True)[0], Y.label_names
        if names is None:
            if own.shape[1] < L:
                raise ValueError(f"Y must have the {L} labels of the model, got {own.shape[1]}")
            return _by_column(model, own, [f"label {label}" for label in range(own.shape[1])], np.arange(L))
    else:
        Y = cut_labels(Y, model.label_separator_)[0]
        own, names, kind = check_labels(Y, n_rows=n_rows, ids="names", allow_no_labels=True)
        if names is None and kind == "lists":  # of nothing
            own = sp.csr_matrix((own.shape[0], L), dtype=np.float32)
        elif kind == "ids" and not integer_names(known):
            names = None
            own = check_labels(Y, n_rows=n_rows, n_labels=L, ids="positions")[0]
        elif names is not None and names != known and kind in ("indicator", "graded"):
            names = None if names == [str(label) for label in range(L)] else names
    if names is None or names == known:
        if own.shape[1] != L:
            raise ValueError(f"Y must have {L} labels, got {own.shape[1]}")
        return Relevance(own, L, [])
    if known is None:
        if isinstance(Y, Dataset) and own.shape[1] == L:
            return Relevance(own, L, [])
        raise ValueError(
            f"Y must be a matrix of {L} columns or lists of ids, since the labels of this model have no "
            f"names, got names such as {names[0]!r:.80}"
        )
    columns = isinstance(Y, Dataset) or kind in ("indicator", "graded")
    place = model.label_table_.places(names, "Y", np.unique(own.indices), are_columns=columns)
    return _by_column(model, own, names, place)


def _check_same_separator(model: MetaRanker, dataset: Dataset) -> None:
    """Raise ValueError if a Dataset was read with another label separator and has unknown labels."""
    if same_separator(dataset.label_separator, model.label_separator_):
        return
    known = set(model.label_names_ or ())
    unknown = next((name for name in dataset.label_names or () if name not in known), None)
    if unknown is not None:
        raise ValueError(
            f"label_separator must be that of the fit, in which {described(model.label_separator_)}; here "
            f"{described(dataset.label_separator)}, and {unknown!r} is no label of this model: read the data "
            f"with label_separator={model.label_separator_!r}"
        )


def _by_column(model: MetaRanker, own: sp.csr_matrix, names: list[str], place: np.ndarray) -> Relevance:
    """The columns of `own` at their places among the labels of the model; zeros where there is none."""
    L = model.n_labels_
    target = np.full(own.shape[1], -1, np.int64)
    target[: len(place)] = place[: own.shape[1]]
    used = np.unique(own.indices)
    unknown = used[target[used] < 0]
    target[unknown] = L + np.arange(len(unknown))
    Y = _placed(own, target, L + len(unknown))
    return Relevance(Y, L, [names[i] or f"column {i}" for i in unknown])


def _placed(own: sp.csr_matrix, target: np.ndarray, width: int) -> sp.csr_matrix:
    """CSR (n, width): each column at its target, columns of one target united by the greatest relevance."""
    label = target[own.indices]
    row = np.repeat(np.arange(own.shape[0]), np.diff(own.indptr))
    order = np.lexsort((label, row))
    key = row[order] * np.int64(width) + label[order]
    first = np.flatnonzero(np.diff(key, prepend=-1))
    values = np.maximum.reduceat(own.data[order], first) if len(first) else own.data
    indptr = np.concatenate([[0], np.cumsum(np.bincount(row[order][first], minlength=own.shape[0]))])
    return sp.csr_matrix((values, label[order][first], indptr), shape=(own.shape[0], width))
