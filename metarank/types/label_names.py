"""`OtherNames` and `LabelVectors`: alternative names and vectors of labels in the feature space of X."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar

import numpy as np
import scipy.sparse as sp

from metarank.persist.fields import Csr, Ids, Known
from metarank.persist.spec import Saved, Spec


def _check_order(known: Known) -> None:
    if np.any(np.diff(known.label) < 0):
        raise ValueError("label of OtherNames must not decrease")


@dataclass(eq=False, repr=False)
class OtherNames(Saved):
    """M alternative names of L labels, a row each, beside the name that each label has.

    Parameters
    ----------
    text : float32 CSR (M, d), canonical
        The names as rows of the features' words, of unit length, or empty where no word is known.
    label : int32 array (M,)
        The label of each name, ascending.

    Examples
    --------
    >>> rows = sp.csr_matrix(np.eye(3, dtype=np.float32))
    >>> names = OtherNames(rows, np.array([0, 2, 2], np.int32))
    >>> len(names)
    3
    """

    text: Annotated[sp.csr_matrix, Csr("", dims=("M", "d"))]
    label: Annotated[np.ndarray, Ids("", np.int32, ("M",), below="L")]

    saved: ClassVar[Spec] = Spec(check=_check_order)

    @classmethod
    def of(
        cls, names: Sequence[Sequence[str]], rows_of: Callable[[list[str], None], sp.csr_matrix]
    ) -> OtherNames:
        """The names of each label, as rows by a function of them and of no texts, without empty rows."""
        flat = [name for own in names for name in own]
        label = np.repeat(np.arange(len(names), dtype=np.int32), [len(own) for own in names])
        text = sp.csr_matrix(rows_of(flat, None), dtype=np.float32)
        known = np.flatnonzero(np.diff(text.indptr))
        return cls(text[known], label[known])

    def __len__(self) -> int:
        return len(self.label)

    def by_label(self, n_labels: int) -> sp.csr_matrix:
        """The sum of the names of each label, CSR (L, d)."""
        ones = np.ones(len(self), np.float32)
        owner = sp.csr_matrix((ones, (self.label, np.arange(len(self)))), (n_labels, len(self)))
        return sp.csr_matrix(owner @ self.text)

    def within(self, columns: Callable[[sp.csr_matrix], sp.csr_matrix]) -> OtherNames:
        """The names in some columns of the text, without those that are empty there."""
        text = columns(self.text)
        known = np.flatnonzero(np.diff(text.indptr))
        return OtherNames(text[known], self.label[known])

    @classmethod
    def joined(cls, parts: Sequence[OtherNames]) -> OtherNames:
        """The names of several (at least one), in the order of labels."""
        label = np.concatenate([part.label for part in parts])
        order = np.argsort(label, kind="stable")
        return cls(sp.csr_matrix(sp.vstack([part.text for part in parts], "csr")[order]), label[order])


@dataclass(frozen=True, eq=False)
class LabelVectors:
    """Vectors of L labels in the space of some columns of X.

    Parameters
    ----------
    vectors : float32 array (L, dv)
        A row of zeros is not a vector.
    start : int
        The first of the dv columns of X.
    scale : float32 array (dv,) or None
        Factors that were applied to these columns; X divided by them is as the user gave it.

    Examples
    --------
    >>> own = LabelVectors(np.float32([[3, 4]]), 1, np.float32([2, 1]))
    >>> own.rows(np.float32([[9, 6, 4]]))
    array([[3., 4.]], dtype=float32)
    """

    vectors: np.ndarray
    start: int = 0
    scale: np.ndarray | None = None

    def rows(self, X: np.ndarray | sp.csr_matrix) -> np.ndarray:
        """float32 (n, dv): the rows of X in the space of the vectors."""
        part = X[:, self.start : self.start + self.vectors.shape[1]]
        part = part if isinstance(part, np.ndarray) else part.toarray()
        return np.ascontiguousarray(part if self.scale is None else part / self.scale, np.float32)
