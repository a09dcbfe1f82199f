"""`Relevance`: relevances whose labels stand in the order of those of the answer that is judged."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank._util.modules import outside
from metarank._util.printable import first_few
from metarank.types.containers import table_columns
from metarank.types.label_table import LabelTable, relabeled


@dataclass(frozen=True, eq=False)
class Relevance:
    """Relevances of n rows for L labels that are known, followed by U labels that are not.

    Unknown labels have a column each, since they count as missed. So do removed ones.

    Attributes
    ----------
    Y : CSR (n, L + U)
    unknown : list of str
        Names of the U unknown labels. Each is relevant for some row.
    removed : dict of id to name
        The labels that were removed from a model and are relevant for some row.
    """

    Y: Any
    unknown: Sequence[str] = ()
    removed: Mapping[int, str] = field(default_factory=dict)

    @classmethod
    def of(cls, Y_true: Any, known: LabelTable | None = None) -> Relevance:
        """Relevances as they are given, or those of a `Dataset` or a table with columns named as labels.

        The latter stand at the places of the labels of what is judged, where both have ids or names, with a
        warning of labels that are not `known` there.

        Raises
        ------
        ValueError
            If a label that is relevant for some row has a name that several of the answer share.
        """
        if isinstance(Y_true, Relevance):
            return Y_true
        columns = {} if known is None else dict(table_columns(Y_true) or ())
        if known is not None and columns.keys() & {*(known.names or ()), *(known.ids or ())}:
            Y, names = sp.csr_matrix(np.column_stack(list(columns.values()))), list(columns)
        elif hasattr(Y_true, "Y") and hasattr(Y_true, "label_names"):
            Y, names = sp.csr_matrix(Y_true.Y), Y_true.label_names
        else:
            return cls(Y_true)
        if known is None or names is None or list(names) == list(known.names or ()):
            return cls(Y)
        place = known.places(names, "Y_true", np.unique(Y.indices), are_columns=False)
        out = cls.placed(Y, place, names, known.n_labels)
        if out.unknown:
            message = out.missed("that the answer does not know", out.unknown, out.n_unknown_pairs)
            warnings.warn(message, stacklevel=outside())
        return out

    @classmethod
    def placed(cls, Y: sp.csr_matrix, place: np.ndarray, names: Sequence[str], n_known: int) -> Relevance:
        """The columns of Y, of these names, at their places among known labels; those whose place is -1 and
        that some row has are unknown labels. Columns of one place are united by the greatest relevance."""
        target = place.copy()
        used = np.unique(Y.indices)
        unknown = used[target[used] < 0]
        target[unknown] = n_known + np.arange(len(unknown))
        Y = relabeled(Y, target, n_known + len(unknown))
        return cls(Y, [names[i] or f"column {i}" for i in unknown])

    def merged(self, pairs: np.ndarray) -> Relevance:
        """With the first label of each pair counted as the second."""
        now = np.arange(self.Y.shape[1])
        now[pairs[:, 0]] = pairs[:, 1]
        return replace(self, Y=relabeled(self.Y, now, len(now)))

    @property
    def n_known(self) -> int:
        """L."""
        return int(self.Y.shape[1]) - len(self.unknown)

    @property
    def n_unknown_pairs(self) -> int:
        """Number of relevant pairs with an unknown label."""
        return int(np.count_nonzero(self.Y.indices >= self.n_known))

    @property
    def n_removed_pairs(self) -> int:
        """Number of relevant pairs with a removed label."""
        return int(np.isin(self.Y.indices, list(self.removed)).sum())

    @property
    def said(self) -> str:
        """The message about labels that count as missed; "" if there are none."""
        of_removed = list(self.removed.values())
        return "; ".join(
            self.missed(what, names, n_pairs)
            for what, names, n_pairs in (
                ("that the model does not know", self.unknown, self.n_unknown_pairs),
                ("removed from the model", of_removed, self.n_removed_pairs),
            )
            if names
        )

    def missed(self, what: str, names: Sequence[str], n_pairs: int) -> str:
        """The message about such labels."""
        return (
            f"labels {what}: {len(names)} ({first_few(names)}), in {n_pairs} of {self.Y.nnz} relevant pairs, "
            "which count as missed"
        )


def in_order(table: Any, names: Sequence[str]) -> Any:
    """A table whose columns have these names, in their order; anything else as it is."""
    columns = dict(table_columns(table) or ())
    return np.column_stack([columns[n] for n in names]) if columns and columns.keys() == {*names} else table


def named_sets(Y_pred: Any, Y_true: Any, known: LabelTable | None) -> tuple[Any, LabelTable | None]:
    """Label sets, lists of names as a matrix, and the labels of its columns where they are known.

    `known` are the labels of a ranking that is judged beside them.

    Raises
    ------
    ValueError
        If labels can be matched neither by name nor by place.
    """
    names = getattr(Y_true, "label_names", None)
    if _holds_names(Y_pred):
        if known is None and names is None:
            raise ValueError("Y_pred holds names, so Y_true must be a data set whose labels have names")
        table = LabelTable(len(names or ()), names) if known is None else known
        n, found = table.n_labels, sorted({str(name) for row in Y_pred for name in row})
        place = table.places(found, "Y_pred", range(len(found)), are_columns=False)
        new = np.flatnonzero(place < 0)
        if len(new) == len(found):
            warnings.warn(
                f"Y_pred must hold names of labels, got none, such as {found[0]!r:.80}; the matrix from "
                "`predict` is matched by ids too",
                stacklevel=outside(),
            )
        place[new] = n + np.arange(len(new))
        more, at = [found[i] for i in new], dict(zip(found, place.tolist()))
        columns = [[at[name] for name in {*map(str, row)}] for row in Y_pred]
        ids = np.array([label for row in columns for label in row], np.int64)
        out = LabelTable(
            n + len(more), [*(table.names or [""] * n), *more], ids=table.ids and [*table.ids, *more]
        )
        indptr = np.cumsum([0, *map(len, columns)])
        return sp.csr_matrix((np.ones(len(ids)), ids, indptr), (len(columns), out.n_labels)), out
    if (own := getattr(Y_pred, "label_names", None)) is not None:
        known = LabelTable(Y_pred.shape[1], own, ids=getattr(Y_pred, "label_ids", None))
    if Y_pred is not None and known is None and names is not None:
        raise ValueError(
            "Y_pred must have label_names, as from `predict`, or be lists of names, to match a data set by "
            "name; for matrices in the same order pass Y_true as Y"
        )
    return Y_pred, known


def _holds_names(Y_pred: Any) -> bool:
    rows = Y_pred if isinstance(Y_pred, (list, tuple)) or getattr(Y_pred, "ndim", 0) == 1 else ()
    return any(isinstance(name, str) for row in rows if isinstance(row, (list, tuple, set)) for name in row)
