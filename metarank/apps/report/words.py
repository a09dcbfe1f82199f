"""Meta-features in words a person understands."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from metarank.model.explain import LEAN, Explanation, rounded_to_sum

Values = Mapping[str, float]


class Block(NamedTuple):
    """Columns of one source of evidence: what it is called, and what its values say."""

    title: str
    columns: str
    sentence: Callable[[Values], str] | str

    def said_of(self, values: Values) -> str:
        """The sentence for a pair of these values."""
        return self.sentence if isinstance(self.sentence, str) else self.sentence(values)


class Reason(NamedTuple):
    """What a source of evidence says about a pair, and what that adds to the score, as it is printed."""

    text: str
    contribution: float


def _near(values: Values) -> str:
    if "cosine_nn1" in values:
        similarity = 1 - values["cosine_nn1"]
        if similarity < 0.005:
            return "no similar row carries it"
        return f"similarity of the nearest row that carries it: {similarity:.2f}"
    if "l2_nn1" in values:
        return f"distance of the nearest row that carries it: {values['l2_nn1']:.2f}"
    return "nearness of the rows that carry it"


def _votes(values: Values) -> str:
    found = next(((n, v) for n, v in values.items() if re.fullmatch(r"vote\d+", n)), None)
    if found is None:
        return "votes of the most similar rows"
    k = int(found[0].removeprefix("vote"))
    return f"{round(found[1] * k) or 'none'} of the {k} most similar rows carry it"


def _centre(values: Values) -> str:
    if "centroid_cosine" not in values:
        return "nearness of the average row that carries it"
    similarity = 1 - values["centroid_cosine"]
    return f"similarity of the average row that carries it: {similarity:.2f}"


def _names(values: Values) -> str:
    if "name_share" not in values:
        return "words shared with its description"
    return f"{100 * values['name_share']:.0f} % of the words of its description occur in the text"


def _spelling(values: Values) -> str:
    if "spelling_share" not in values:
        return "words spelled like those of its name"
    return f"{100 * values['spelling_share']:.0f} % of the words spelled like its name's occur in the text"


def _record(values: Values) -> str:
    if "name_odds" not in values:
        return "how far rows bear its name out"
    side = "for" if values["name_odds"] > 0 else "against"
    return f"the words of its name, present and missing, speak {side} it"


def _mentions(values: Values) -> str:
    count = values.get("mention_count")
    if count is None:
        return "where the text mentions its name"
    if count == 0:
        return "the text does not mention its name"
    times = {1: "once", 2: "twice"}.get(round(count), f"{round(count)} times")
    within = ", within longer names" if values.get("mention_alone") == 0 else ""
    return f"the text mentions its name {times}{within}"


_NEAREST = "nearest rows with the label"
BLOCKS = (
    Block(_NEAREST, r"(?:l1|l2|cosine)_(?:nn|mean)\d+", _near),
    Block("votes of similar rows", r"vote\d+(?:_weighted)?", _votes),
    Block("names of similar rows' labels", "vote_names", "names of the labels that similar rows carry"),
    Block("average row of the label", r"centroid_\w+", _centre),
    Block("tail classifier", r"tail_\w+", "nearness of the average row that carries it, as a probability"),
    Block("record of label names", r"name_(?:odds|rows|precision|recall)", _record),
    Block("mentions of label names", r"mention_\w+", _mentions),
    Block("label description", r"name_\w+", _names),
    Block("spelling of label names", r"spelling_\w+", _spelling),
    Block("learned label names", r"embedder_\w+", "what was learned of words and label names"),
    Block(LEAN, LEAN, "lean towards rare labels"),
    Block("label frequency", r"prior", "how frequent the label is"),
    Block("label trees", r"(?:parabel|xreg|fastxml|pfastxml|pfastrexml)\d*", "way through the label trees"),
    Block(
        "classifiers",
        r"linear|svm|extra_trees|boosted_trees|\w+_ridge|ova_\w+",
        "opinion of classifiers trained for each label",
    ),
)


def raw_name(column: str) -> str:
    """The column that was standardised or renamed: "vote10" of "z(vote10)" and of "vote10#2".

    Examples
    --------
    >>> raw_name("z(vote10)"), raw_name("prior")
    ('vote10', 'prior')
    """
    column = column[2:-1] if column.startswith("z(") and column.endswith(")") else column
    return column.partition("#")[0]


def block_of(column: str) -> Block:
    """The source a column of the feature table belongs to; an unknown column is a source of its own.

    Examples
    --------
    >>> block_of("z(l2_nn3)").title, block_of("my_score").title
    ('nearest rows with the label', 'my_score')
    >>> block_of("z(clicks: prior)").title  # of one of several objectives
    'label frequency (clicks)'
    """
    name = raw_name(column)
    objective, _, own = name.rpartition(": ")
    for block in BLOCKS:
        if re.fullmatch(block.columns, own):
            return _of_objective(block, objective) if objective else block
    return Block(name, ".*", lambda values: name + (f" = {values[name]:.3g}" if name in values else ""))


def _of_objective(block: Block, objective: str) -> Block:
    prefix = f"{objective}: "

    def sentence(values: Values) -> str:
        own = {n.removeprefix(prefix): v for n, v in values.items() if n.startswith(prefix)}
        return f"{block.said_of(own)} ({objective})"

    return Block(f"{block.title} ({objective})", block.columns, sentence)


def reasons(explanation: Explanation, n: int = 3) -> list[Reason]:
    """What the score is made of, in words, rounded so that it adds up to the score as it is printed.

    The n sources that moved it most, standardised columns counted with their source, and the lean towards
    rare labels, strongest first; then all others together, and where the score starts.

    Examples
    --------
    >>> columns = [("vote10", 0.3, 0.8), ("z(vote10)", 2.1, 0.5), ("prior", -4.0, -0.2), ("svm", 1.0, 0.1)]
    >>> e = Explanation(0, "tea", 1, 9, 2.0, 0.9, [], columns, base=0.8)
    >>> for reason in reasons(e, 2):
    ...     print(f"{reason.contribution:+.3f} {reason.text}")
    +1.300 3 of the 10 most similar rows carry it
    -0.200 how frequent the label is
    +0.100 1 other source
    +0.800 where the score starts
    """
    totals: dict[str, float] = {}
    blocks: dict[str, Block] = {}
    for column, _, contribution in explanation.contributions:
        block = block_of(column)
        blocks[block.title] = block
        totals[block.title] = totals.get(block.title, 0.0) + contribution
    values = {column: value for column, value, _ in explanation.contributions}
    order = sorted(totals, key=lambda title: (-abs(totals[title]), title))
    shown = [title for title in order if title != LEAN][:n]
    parts = []
    for title in order:
        if title in shown or title == LEAN:
            text = blocks[title].said_of(values)
            if title == _NEAREST and explanation.neighbors and explanation.neighbors[0].name:
                text += f" ({explanation.neighbors[0].name.split()[0]} …)"
            parts.append((text, totals[title]))
    others = [totals[title] for title in order if title not in shown and title != LEAN]
    if others:
        parts.append((f"{len(others)} other source{'s' * (len(others) > 1)}", math.fsum(others)))
    parts.append(("where the score starts", explanation.base))
    rounded = rounded_to_sum([effect for _, effect in parts], explanation.score)
    return [Reason(text, effect) for (text, _), effect in zip(parts, rounded)]
