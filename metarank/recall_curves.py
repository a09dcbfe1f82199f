"""Which source finds what: recall at k of each shortlister and of their union, by how rare the label is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.candidates import Candidates

# Training points of a label: (least, most) of each band.
BANDS = ((1, 1), (2, 5), (6, 20), (21, None))
UNION = "union"


@dataclass(frozen=True)
class RecallCurves:
    """Recall at 1 to K, by source and by label frequency.

    Attributes
    ----------
    recall : dict of source to float64 array (bands + 1, K)
        Share of the relevant pairs of a band among the k best of the source; the last row is of all
        pairs. NaN for a band without any. The last source is the union of all.
    bands : list of str
        Training points of the labels of each row, and "all".
    n_relevant : int64 array (bands + 1,)
        Relevant pairs of each.
    """

    recall: dict[str, np.ndarray]
    bands: list[str]
    n_relevant: np.ndarray

    def table(self, ks: Sequence[int] = (1, 5, 10, 20, 50)) -> list[list[str]]:
        """Rows of text, the head first: source, k, and recall in percent by band."""
        longest = next(iter(self.recall.values())).shape[1]
        head = ["source", "k", *(f"{b} ({n})" for b, n in zip(self.bands, self.n_relevant))]
        return [head] + [
            [source, str(k), *("-" if np.isnan(v) else f"{100 * v:.1f}" for v in curve[:, k - 1])]
            for source, curve in self.recall.items()
            for k in ks
            if k <= longest
        ]


def recall_curves(
    sources: Mapping[str, Candidates], Y: Any, label_counts: np.ndarray, k: int | None = None
) -> RecallCurves:
    """Recall at 1 to k of several sources of candidates, and of their union, by label frequency.

    At k the union holds the k best of each source, and so up to k labels for each of them.

    Parameters
    ----------
    sources : mapping of name to Candidates (n, L), with scores
        As from `shortlist(X, k)` of each source. Equal scores go to the smaller label id.
    Y : (n, L) matrix
        Relevances of the rows; relevant means > 0.
    label_counts : int array (L,)
        Training points of each label. Labels without any count in the band "0", where relevant.
    k : int, optional
        The longest list of any source by default.

    Raises
    ------
    ValueError
        If there is no source, one is called "union" or carries no scores, or shapes do not agree.

    Examples
    --------
    >>> near = Candidates(np.array([0, 2]), np.array([0, 2]), 3, {"vote": np.array([0.9, 0.1])})
    >>> tree = Candidates(np.array([0, 1]), np.array([1]), 3, {"tree": np.array([0.5])})
    >>> curves = recall_curves({"near": near, "tree": tree}, [[0, 1, 1]], np.array([4, 1, 30]))
    >>> for row in curves.table(ks=(1, 2)):
    ...     print(*row)
    source k 0 (0) 1 (1) 2-5 (0) 6-20 (0) >20 (1) all (2)
    near 1 - 0.0 - - 0.0 0.0
    near 2 - 0.0 - - 100.0 50.0
    tree 1 - 100.0 - - 0.0 50.0
    tree 2 - 100.0 - - 0.0 50.0
    union 1 - 100.0 - - 0.0 50.0
    union 2 - 100.0 - - 100.0 100.0
    """
    if not sources:
        raise ValueError("sources must name at least one source of candidates, got none")
    if UNION in sources:
        raise ValueError(f"sources must not be called {UNION!r}, which is what all of them make together")
    relevant = sp.csr_matrix(Y)
    n, n_labels = relevant.shape
    counts = np.asarray(label_counts)
    if counts.shape != (n_labels,):
        raise ValueError(f"label_counts must have shape {(n_labels,)}, one a label, got {counts.shape}")
    for name, source in sources.items():
        if (source.n_rows, source.n_labels) != (n, n_labels):
            raise ValueError(
                f"sources[{name!r}] must be of the {n} rows and {n_labels} labels of Y, "
                f"got {(source.n_rows, source.n_labels)}"
            )
    longest = k or max(1, *(int(np.diff(source.indptr).max(initial=0)) for source in sources.values()))
    pairs = relevant.tocoo()
    held = pairs.data > 0
    row, label = pairs.row[held], pairs.col[held]
    places = {name: _place(source, row, label) for name, source in sources.items()}
    places[UNION] = np.min(list(places.values()), axis=0)

    band = np.searchsorted([low for low, _ in BANDS], counts[label], side="right")
    n_bands = len(BANDS) + 1
    n_relevant = np.bincount(band, minlength=n_bands)
    n_relevant = np.append(n_relevant, n_relevant.sum())
    recall = {}
    for name, place in places.items():
        found = place < longest
        hits = np.zeros((n_bands + 1, longest))
        np.add.at(hits, (band[found], place[found]), 1)
        hits[-1] = hits[:-1].sum(axis=0)
        with np.errstate(invalid="ignore"):
            recall[name] = np.cumsum(hits, axis=1) / n_relevant[:, None]
    names = ["0", *(str(a) if a == b else f">{a - 1}" if b is None else f"{a}-{b}" for a, b in BANDS), "all"]
    return RecallCurves(recall, names, n_relevant)


def _place(source: Candidates, row: np.ndarray, label: np.ndarray) -> np.ndarray:
    """Place from 0 of pairs in lists of a source, best first; a large number where they are not listed."""
    if not source.scores:
        raise ValueError("sources must carry scores, to be cut at k")
    score = next(iter(source.scores.values()))
    listed = source.row_of_pair
    order = np.lexsort((source.labels, -score, listed))
    place = np.empty(source.n_pairs, np.int64)
    place[order] = np.arange(source.n_pairs) - source.indptr[listed[order]]
    width = np.int64(source.n_labels)
    keys, wanted = listed * width + source.labels, row * width + label
    if len(keys) == 0:
        return np.full(len(wanted), np.iinfo(np.int64).max)
    at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[at] == wanted, place[at], np.iinfo(np.int64).max)
