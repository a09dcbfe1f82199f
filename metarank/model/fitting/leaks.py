"""`leaks`: given candidates whose scores must come from models that have seen the rows."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import scipy.sparse as sp

from metarank import _core
from metarank.scorers.given.given_scorer import column_of
from metarank.scorers.neighbors.voting import NEIGHBORS
from metarank.types.candidates import Candidates
from metarank.types.feature_table import Columns

# A source is suspect if it errs in fewer than this share of the rows in which neighbors err, among the same
# candidates; or in fewer than half, and it finds this share of the labels that no other row has.
_SUSPECT, _HALF, _FOUND = 0.1, 0.5, 0.4
# Rows with a relevant candidate, and labels of a single row, that are enough to tell.
_LEAST_HOPEFUL, _LEAST_SINGLE = 100, 20


def leaks(
    columns: list[Columns], pairs: Candidates, Y: sp.csr_matrix, relevant: np.ndarray, given: Iterable[str]
) -> list[str]:
    """What to say of each `given` source that must come from a model that has seen the rows.

    Such scores teach a ranker to trust them, and its held-out rows show nothing of it. `relevant` bool (m,)
    are the pairs of Y (n, L), the labels of all training rows, that the sources tell of.
    """
    by_name = {name: values for of in columns for name, values in of.items()}
    row, rows_of_label = pairs.row_of_pair, np.bincount(Y.indices, minlength=pairs.n_labels)
    of_row = np.bincount(row[relevant], minlength=pairs.n_rows)
    n_rows, single = np.count_nonzero(of_row), relevant & (rows_of_label[pairs.labels] == 1)

    def errors_and_finds(name: str) -> tuple[float, float]:
        values = np.nan_to_num(by_name[name].astype(np.float64), nan=-1e30)
        rank = _core.list_ranks(values, pairs.indptr)
        n_found = np.count_nonzero(rank[single] < of_row[row[single]])
        return 1 - np.sum(rank[relevant] == 0) / n_rows, n_found / max(_LEAST_SINGLE, single.sum())

    if n_rows < _LEAST_HOPEFUL:
        return []
    votes = [errors_and_finds(name)[0] for name in by_name if name.startswith(f"{NEIGHBORS}: ")]
    warned = []
    for source in given if votes else ():
        name = column_of(source, "score")
        errors, found = errors_and_finds(name) if name in by_name else (1.0, 0.0)
        if errors < (_HALF if found > _FOUND else _SUSPECT) * min(votes):
            warned.append(
                f"candidates of {source!r} have a relevant first label in {1 - errors:.1%} of the rows, "
                f"neighbours in {1 - min(votes):.1%}: was their model trained on these rows? Scores of a row "
                "must be from models that did not see it (out-of-fold)"
            )
    return warned
