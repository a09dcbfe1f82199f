"""`FeatureTable`: the meta-features of candidate pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from metarank.types.candidates import Candidates

# Columns of pairs, by name.
Columns = dict[str, np.ndarray]
# A column is named "source: what", such as "neighbors: vote of 10". Ends the name of one whose values are
# standardised within the row's candidates.
RELATIVE = " (relative)"


def qualified(name: str, part: str) -> str:
    """The name of a column of which the source sees a part of the data alone.

    Examples
    --------
    >>> qualified("label name: cosine", "title"), qualified("my_score", "title")
    ('label name (title): cosine', 'my_score (title)')
    """
    source, colon, what = name.rpartition(": ")
    return f"{source} ({part}){colon}{what}" if colon else f"{name} ({part})"


def unqualified(name: str) -> str:
    """The name of a column as of a source that sees all of the data.

    Examples
    --------
    >>> unqualified("label name (title): cosine")
    'label name: cosine'
    """
    source, colon, what = name.rpartition(": ")
    return f"{source.partition(' (')[0]}{colon}{what}"


def source_of(name: str) -> str:
    """The source of a column; a column without one is a source of its own.

    Examples
    --------
    >>> source_of("label name (title): cosine (relative)"), source_of("my_score (relative)")
    ('label name (title)', 'my_score')
    """
    name = name.removesuffix(RELATIVE)
    return name.rpartition(": ")[0] or name


@dataclass(frozen=True)
class FeatureTable:
    """One row of named values for each pair of some `Candidates`.

    Parameters
    ----------
    values : float32 array (m, F), C-contiguous
    names : list of F column names
    candidates : Candidates with m pairs
    """

    values: np.ndarray
    names: list[str]
    candidates: Candidates

    def __post_init__(self) -> None:
        if self.values.shape != (self.candidates.n_pairs, len(self.names)):
            raise ValueError(
                f"values must have shape {(self.candidates.n_pairs, len(self.names))}, "
                f"got {self.values.shape}"
            )

    def pairs(self, kept: np.ndarray) -> FeatureTable:
        """Some of the pairs (ascending positions); every list stays, perhaps shorter."""
        candidates = Candidates(
            np.searchsorted(kept, self.indptr), self.labels[kept], self.candidates.n_labels
        )
        return FeatureTable(self.values[kept], self.names, candidates)

    def select(self, names: list[str]) -> FeatureTable:
        """Some of the columns, in the order of `names`; ValueError if one is not there."""
        place = {name: j for j, name in enumerate(self.names)}
        missing = next((name for name in names if name not in place), None)
        if missing is not None:  # a saved model may list what its sources do not give
            raise ValueError(f"names must be columns of the table, got {missing!r}")
        values = np.ascontiguousarray(self.values[:, [place[name] for name in names]])
        return FeatureTable(values, list(names), self.candidates)

    @property
    def indptr(self) -> np.ndarray:
        return self.candidates.indptr

    @property
    def labels(self) -> np.ndarray:
        return self.candidates.labels
