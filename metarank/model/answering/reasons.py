"""`told`: the meta-features of a pair in words a person understands."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from metarank.scorers.neighbors.voting import NEAREST
from metarank.types.feature_table import RELATIVE, source_of, unqualified

# The rare-label boost among the columns.
BOOST = "rare-label boost"
# Decimal places of scores and their parts, wherever they are printed.
DIGITS = 3


class Reason(NamedTuple):
    """The evidence of a source for a pair, and what it adds to the score, as printed."""

    text: str
    contribution: float


# What the value of a column says. A pair without such a column is told the source alone.
_SENTENCES = {
    "label's nearest rows: 1st cosine distance": lambda v: (
        f"similarity of the nearest row that carries it: {1 - v:.2f}"
    ),
    "label's nearest rows: 1st L2 distance": lambda v: (
        f"distance of the nearest row that carries it: {v:.2f}"
    ),
    "neighbors: vote of 10": lambda v: f"{round(10 * v) or 'none'} of the 10 most similar rows carry it",
    "label centroid: cosine distance": lambda v: (
        f"similarity of the average row that carries it: {1 - v:.2f}"
    ),
    "label name in training: log-odds of words": lambda v: (
        f"what the words of its name say: log-odds {v:.1f}"
    ),
    "label name: share of words": lambda v: (
        f"{100 * v:.0f} % of the words that describe it occur in the text"
    ),
    "label name: spelling share": lambda v: (
        f"{100 * v:.0f} % of the words spelled like its name's occur in the text"
    ),
    "label name: number of names found": lambda v: f"{round(v) or 'none'} of its names occur in the text",
    "label vector: cosine": lambda v: f"similarity of the row and the label's vector: {v:.2f}",
    "label mention: count": lambda v: f"mentions of its name in the text: {v:.0f}",
}


def told(
    contributions: Sequence[tuple[str, float, float]], base: float, score: float, nearest: str, n: int
) -> list[Reason]:
    """What a score is made of, in words, rounded so that it adds up to the score as it is printed.

    The n sources that moved it most, standardised columns counted with their source, and the boost of rare
    labels, strongest first; then all others together, and where the score starts.

    `contributions` are (column, value, contribution), `nearest` is the nearest row with the label.

    Examples
    --------
    >>> columns = [("neighbors: vote of 10", 0.3, 0.8), ("neighbors: vote of 10 (relative)", 2.1, 0.5)]
    >>> columns += [("label frequency: log share", -4.0, -0.2), ("kernel SVM: margin", 1.0, 0.1)]
    >>> for reason in told(columns, 0.8, 2.0, "", 2):
    ...     print(f"{reason.contribution:+.3f} {reason.text}")
    +1.300 3 of the 10 most similar rows carry it
    -0.200 label frequency
    +0.100 1 other source
    +0.800 where the score starts
    """
    totals: dict[str, float] = defaultdict(float)
    of_columns: dict[str, float] = defaultdict(float)
    for column, _, contribution in contributions:
        totals[source_of(column)] += contribution
        of_columns[column.removesuffix(RELATIVE)] += contribution
    # A source is told by the column that moved the score most.
    strongest: dict[str, float] = {}
    sentences: dict[str, str] = {}
    for column, value, _ in contributions:
        source, moved = source_of(column), abs(of_columns[column])
        if sentence := _SENTENCES.get(unqualified(column)):
            # No evidence is no reason for a label: such a source is told by its name.
            if (value or totals[source] < 0) and moved > strongest.get(source, -1.0):
                part = source[len(source.partition(" (")[0]) :]
                strongest[source], sentences[source] = moved, sentence(value) + part
        elif column == source != BOOST:
            sentences[source] = f"{column} = {value:.3g}"
    order = sorted(totals, key=lambda source: (-abs(totals[source]), source))
    shown = {BOOST, *[source for source in order if source != BOOST][:n]}
    parts = []
    for source in order:
        if source in shown:
            text = sentences.get(source, source)
            parts.append((f"{text} ({nearest})" if source == NEAREST and nearest else text, totals[source]))
    others = [totals[source] for source in order if source not in shown]
    if others:
        parts.append((f"{len(others)} other source{'s' * (len(others) > 1)}", math.fsum(others)))
    parts.append(("where the score starts", base))
    rounded = rounded_to_sum([effect for _, effect in parts], score)
    return [Reason(text, effect) for (text, _), effect in zip(parts, rounded)]


def rounded_to_sum(parts: Sequence[float], total: float, digits: int = DIGITS) -> list[float]:
    """Parts of a total, rounded so that the printed parts add up to the rounded total.

    Each part is within one unit of its last digit (largest remainder method).

    Examples
    --------
    >>> rounded_to_sum([0.4444, 0.4444, 0.4444], 1.3332), rounded_to_sum([], 0.0)
    ([0.445, 0.444, 0.444], [])
    """
    unit = 10.0**digits
    scaled = np.array(parts, np.float64) * unit
    units = np.floor(scaled)
    missing = int(round(round(total, digits) * unit) - units.sum())
    order = np.argsort(units - scaled, kind="stable")
    if len(parts):
        for_each, some = divmod(missing, len(parts))
        units += for_each
        units[order[:some]] += 1
    return [float(u) / unit for u in units]
