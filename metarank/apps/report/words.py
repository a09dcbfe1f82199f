"""Meta-features in words a person understands."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

from metarank.model.answering.explain import BOOST, Explanation, rounded_to_sum


class Reason(NamedTuple):
    """The evidence of a source for a pair, and what it adds to the score, as printed."""

    text: str
    contribution: float


_NEAREST = "nearest rows with the label"
# Sources, and the columns of the feature table that belong to them; the first match counts.
WORDS_OF_COLUMNS = {
    _NEAREST: r"(?:l1|l2|cosine)_(?:nn|mean)\d+",
    "votes of similar rows": r"vote\d+(?:_weighted)?",
    "names of similar rows' labels": r"vote_names",
    "average row of the label": r"centroid_\w+",
    "tail classifier": r"tail_\w+",
    "record of label names": r"name_(?:odds|rows|precision|recall)",
    "mentions of label names": r"mention_\w+",
    "label description": r"(?:best_)?name_\w+|names_matched",
    "spelling of label names": r"(?:best_)?spelling_\w+",
    "vectors of labels": r"vector_cosine",
    "related labels": r"(?:parent|child|sibling|related)\(.+\)|label_(?:depth|specificity)",
    BOOST: BOOST,
    "label frequency": r"prior",
    "label trees": r"(?:parabel|xreg|fastxml|pfastxml|pfastrexml)\d*",
    "classifiers of each label": r"linear|svm|extra_trees|\w+_ridge|ova_\w+",
}
# The meaning of a column's value. For other columns only the source is named.
_SENTENCES = {
    "cosine_nn1": lambda v: f"similarity of the nearest row that carries it: {1 - v:.2f}",
    "l2_nn1": lambda v: f"distance of the nearest row that carries it: {v:.2f}",
    "vote10": lambda v: f"{round(10 * v) or 'none'} of the 10 most similar rows carry it",
    "centroid_cosine": lambda v: f"similarity of the average row that carries it: {1 - v:.2f}",
    "name_odds": lambda v: f"the words of its name are evidence {'for' if v > 0 else 'against'} it",
    "name_share": lambda v: f"{100 * v:.0f} % of the words of its description occur in the text",
    "spelling_share": lambda v: f"{100 * v:.0f} % of the words spelled like its name's occur in the text",
    "names_matched": lambda v: f"{round(v) or 'none'} of its names occur in the text",
    "vector_cosine": lambda v: f"similarity of the row and the label's vector: {v:.2f}",
    "mention_count": lambda v: f"the text mentions its name {'once' if v == 1 else f'{v:.0f} times'}",
}


def source_of(column: str) -> str:
    """The source a column of the feature table belongs to; an unknown column is its own source.

    A standardised or renamed column, "z(vote10)" or "vote10#2", belongs to the source of "vote10".

    Examples
    --------
    >>> source_of("z(l2_nn3)"), source_of("my_score"), source_of("z(clicks: prior)")
    ('nearest rows with the label', 'my_score', 'label frequency (clicks)')
    """
    name = column.removeprefix("z(").removesuffix(")") if column.startswith("z(") else column
    # The column that is passed on in "parent(title: name_cosine)" is no objective's.
    before, bracket, within = name.partition("#")[0].partition("(")
    objective, _, of_model = f"{before}{bracket}".rpartition(": ")
    for source, columns in WORDS_OF_COLUMNS.items():
        if re.fullmatch(columns, f"{of_model}{within}"):
            return f"{source} ({objective})" if objective else source
    return name


def reasons(explanation: Explanation, n: int = 3) -> list[Reason]:
    """What the score is made of, in words, rounded so that it adds up to the score as it is printed.

    The n sources that moved it most, standardised columns counted with their source, and the boost of rare
    labels, strongest first; then all others together, and where the score starts.

    Examples
    --------
    >>> columns = [("vote10", 0.3, 0.8), ("z(vote10)", 2.1, 0.5), ("prior", -4.0, -0.2), ("svm", 1.0, 0.1)]
    >>> e = Explanation(0, "tea", 1, 9, 2.0, 0.9, [], columns, base=0.8)
    >>> for reason in reasons(e, 2):
    ...     print(f"{reason.contribution:+.3f} {reason.text}")
    +1.300 3 of the 10 most similar rows carry it
    -0.200 label frequency
    +0.100 1 other source
    +0.800 where the score starts
    """
    totals: dict[str, float] = {}
    sentences: dict[str, str] = {}
    for column, value, contribution in explanation.contributions:
        source = source_of(column)
        totals[source] = totals.get(source, 0.0) + contribution
        if sentence := _SENTENCES.get(column.rpartition(": ")[2]):
            sentences.setdefault(source, sentence(value))
        elif column == source != BOOST:
            sentences[source] = f"{column} = {value:.3g}"
    order = sorted(totals, key=lambda source: (-abs(totals[source]), source))
    shown = {BOOST, *[source for source in order if source != BOOST][:n]}
    parts = []
    for source in order:
        if source in shown:
            text = sentences.get(source, source)
            if source == _NEAREST and explanation.neighbors and explanation.neighbors[0].name:
                text += f" ({explanation.neighbors[0].name.split()[0]} …)"
            parts.append((text, totals[source]))
    others = [totals[source] for source in order if source not in shown]
    if others:
        parts.append((f"{len(others)} other source{'s' * (len(others) > 1)}", math.fsum(others)))
    parts.append(("where the score starts", explanation.base))
    rounded = rounded_to_sum([effect for _, effect in parts], explanation.score)
    return [Reason(text, effect) for (text, _), effect in zip(parts, rounded)]
