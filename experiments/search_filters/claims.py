"""What the paper says of its four models, and the issue of names, held against what was measured."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

import numpy as np
from contenders import FEW_ROWS

Values = Mapping[str, Sequence[Mapping[str, float]]]

_OTHERS = ("ID-only", "Text-only", "Combined")
# Each is to be above the one before.
_PIPELINES = ("MetaRanker, no names", "MetaRanker")


def claims_of(
    values: Values, unseen: Mapping[str, Sequence[float]], chance: float
) -> list[tuple[str, bool | None]]:
    """Sentences with figures, each with whether it holds; only those whose rows are there.

    None where there is a single seed, and so no deviation. `chance` is the recall of labels in random order.
    """
    claims: list[tuple[str, bool | None]] = []
    for column in ("nDCG@5", "coverage"):
        for other in _OTHERS:
            if "LALE" in values and other in values:
                claims.append(_above("LALE", other, column, values))
    if "LALE" in values and "ID-only" in values:
        claims.append(_above("LALE", "ID-only", "F1 tail", values))
    for rows in FEW_ROWS:
        lale, other = (f"{name}, {rows:,} titles" for name in ("LALE", "ID-only"))
        if lale in values and other in values:
            claims += [_above(lale, other, column, values) for column in ("nDCG@5", "coverage", "F1 tail")]
    for before, after in pairwise(_PIPELINES):
        if before in values and after in values:
            claims += [_above(after, before, column, values) for column in ("nDCG@5", "F1 tail")]
    for name, recalls in unseen.items():
        figures = f"(recall@10 {100 * np.mean(recalls):.1f}, by chance {100 * chance:.1f})"
        holds = bool(np.mean(recalls) > chance) if len(recalls) > 1 else None
        claims.append((f"{name} finds labels never seen {figures}", holds))
    return claims


def _above(a: str, b: str, column: str, values: Values) -> tuple[str, bool | None]:
    """Whether `a` is above `b` by more than the greater of their deviations."""
    first, second = (np.array([row[column] for row in values[name]]) for name in (a, b))
    gap = first.mean() - second.mean()
    if min(len(first), len(second)) < 2:
        return f"{column} of {a} above {b} ({100 * gap:+.1f}, a single seed)", None
    deviation = max(np.std(first, ddof=1), np.std(second, ddof=1))
    figures = f"({100 * gap:+.1f}, deviation {100 * deviation:.1f})"
    return f"{column} of {a} above {b} by more than a deviation {figures}", bool(gap > deviation)
