"""`leaks`: given candidates whose scores must come from models that have seen the rows."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from metarank.types.candidates import Candidates
from metarank.types.feature_table import Columns

# A source is suspect if it errs in fewer than this share of the rows in which neighbors err, among the same
# candidates, and at least so many rows have a relevant one.
_SUSPECT, _LEAST_HOPEFUL = 0.1, 100


def leaks(
    columns: Sequence[Columns], pairs: Candidates, relevant: np.ndarray, given: Iterable[str]
) -> list[str]:
    """What to say of each `given` source that is right at its first place too often for one that has not seen
    the rows.

    Such scores teach a ranker to trust them, and its held-out rows show nothing of it.
    """
    by_name = {name: values for of in columns for name, values in of.items()}
    row = pairs.row_of_pair
    hopeful = np.bincount(row[relevant], minlength=pairs.n_rows) > 0

    def errors(values: np.ndarray) -> float:
        best = np.full(pairs.n_rows, -np.inf)
        np.maximum.at(best, row, np.nan_to_num(values, nan=-np.inf))
        right = np.bincount(row[relevant & (values == best[row])], minlength=pairs.n_rows) > 0
        return 1 - float(right[hopeful].mean())

    votes = [values for name, values in by_name.items() if name.startswith("vote")]
    asked = [source for source in given if f"{source}_score" in by_name]
    if not (votes and asked) or hopeful.sum() < _LEAST_HOPEFUL:
        return []
    usual = min(map(errors, votes))
    found = {source: errors(by_name[f"{source}_score"]) for source in asked}
    return [
        f"candidates of {source!r} are right at their first place in {1 - share:.1%} of the rows, the votes "
        f"of neighbours in {1 - usual:.1%}: did their model learn from these rows? Give scores by models "
        "that did not see the row (out-of-fold), or the ranker trusts them too much"
        for source, share in found.items()
        if share < _SUSPECT * usual
    ]
