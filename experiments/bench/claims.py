"""Claims about systems, each judged from the figures of every set, and their table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import page_parts
from declared import Figures

NONE = "–"
PER_CENT = ("P@", "nDCG@", "PSP", "C@", "WP", "WN", "Tau")


@dataclass(frozen=True)
class Above:
    """A system is better than each of the others that were run, in all of some metrics."""

    told: str
    system: str
    others: Sequence[str]
    metrics: Sequence[str]

    def judged(self, values: Mapping[str, Figures]) -> str:
        """yes, or **no**, with ours and the best of the others where these are what is asked."""
        there = [s for s in self.others if s in values]
        if not there or self.system not in values or self.metrics[0] not in values[self.system]:
            return NONE
        pairs, lost = [], []
        for metric in self.metrics:
            sign = -1 if metric.startswith("X") else 1  # errors
            best = max(there, key=lambda other, m=metric, s=sign: s * values[other][m])
            ours, theirs = values[self.system][metric], values[best][metric]
            pairs.append(f"{shown(metric, ours)}, {best} {shown(metric, theirs)}")
            lost += [] if sign * ours > sign * theirs else [f"{metric} {pairs[-1]}"]
        if lost:
            return f"**no** ({'; '.join(lost)})"
        return f"yes ({pairs[0]})" if len(pairs) == 1 else "yes"


@dataclass(frozen=True)
class InOrder:
    """Each system is better than the one before it, in all of some metrics."""

    told: str
    systems: Sequence[str]
    metrics: Sequence[str]

    def judged(self, values: Mapping[str, Figures]) -> str:
        if any(system not in values for system in self.systems):
            return NONE
        found = {metric: [values[system][metric] for system in self.systems] for metric in self.metrics}
        lost = [
            f"{metric} {', '.join(shown(metric, value) for value in row)}"
            for metric, row in found.items()
            if not np.all(np.diff(row) > 0)
        ]
        return f"**no** ({'; '.join(lost)})" if lost else "yes"


def table(claims: Sequence[Above | InOrder], values: Mapping[str, Mapping[str, Figures]]) -> str:
    """A row a claim, a column a set."""
    rows = []
    for claim in claims:
        cells = [claim.judged(of_set) for of_set in values.values()]
        known = [cell for cell in cells if cell != NONE]
        rows.append([claim.told, f"{sum(c.startswith('yes') for c in known)} of {len(known)}", *cells])
    return page_parts.table(["", "holds on", *values], rows)


def shown(metric: str, value: float) -> str:
    if metric.startswith(PER_CENT) and "regret" not in metric:
        return f"{100 * value:.2f}"
    return f"{value:.2f}" if metric.startswith("MAD") else f"{value:.4f}"
