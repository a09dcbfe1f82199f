"""Given candidates in a fit: their sources beside the model's own; see `metarank.types.given`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from metarank._util.progress import note
from metarank.model.parameters import FitOptions
from metarank.scorers.given.given_source import GivenScorer
from metarank.scorers.given.linear import GivenLinear
from metarank.scorers.given.pair_features import PairFeatures
from metarank.scorers.given.together import GivenTogether
from metarank.scorers.source import Source, proposers
from metarank.types.given import Given
from metarank.types.view import TrainingSet

MODES = ("only", "union")
# With more rows, classifiers of rows by their candidates cost more than all else.
_MOST_ROWS = 20_000


def with_given(
    own: list[Source], pairs: Given | None, mode: str, *, has_features: bool = True, by_fold: bool = False
) -> list[Source]:
    """The sources of a fit: its own and, if candidates or features of pairs are given, a source for each.

    By the mode "only" the candidates given are the only ones, and the model's own sources describe alone.
    Rows without features are described by their candidates, and by the mode "union" labels are proposed so.
    `by_fold`: see `GivenScorer`.
    """
    if pairs is None:
        return own
    alone = mode == "only" and bool(pairs.scores)
    if alone:
        note(f"candidates: those given by {', '.join(pairs.scores)}, and no others")
    elif pairs.scores:
        note(f"candidates: those given by {', '.join(pairs.scores)}, and those that the model finds")
    # Where all labels are ranked, nothing needs to be proposed.
    proposes = alone or bool(proposers(own)) or not has_features
    sources = [
        replace(source, proposes=source.proposes and not alone)
        for source in own
        if source.describes or not alone
    ]
    sources += [
        Source(GivenScorer(given=name, by_fold=by_fold), proposes, describes=True) for name in pairs.scores
    ]
    if len(pairs.scores) > 1:
        sources.append(Source(GivenTogether(given=list(pairs.scores)), proposes=False, describes=True))
    if not has_features and (not alone or (pairs.n_rows <= _MOST_ROWS and not by_fold)):
        sources.append(Source(GivenLinear(given=list(pairs.scores)), proposes=not alone, describes=True))
    if pairs.features:
        sources.append(Source(PairFeatures(names=tuple(pairs.features)), proposes=False, describes=True))
    return sources


def check_mode(mode: Any, options: FitOptions, *, has_rows: bool, has_candidates: bool) -> None:
    """Raise ValueError if the sources that a user asks for contradict what is given."""
    if mode not in MODES:
        raise ValueError(f"candidates_mode must be one of {', '.join(MODES)}, got {mode!r:.80}")
    if not has_candidates and mode != "only":
        raise ValueError(f"candidates_mode={mode!r} needs candidates, got None")
    own = options.shortlister
    is_auto = isinstance(own, str) and own == "auto"
    if has_candidates and mode == "only" and not is_auto:
        raise ValueError(
            "shortlister must be 'auto' where candidates are given, which are then the only ones; "
            f"candidates_mode='union' has both, got {own!r:.80}"
        )
    if has_rows:
        return
    if not has_candidates:
        raise ValueError("X is required unless candidates are given, got None")
    for name in ("features", "label_text", "shortlister"):
        value = getattr(options, name)
        if not (value is None or (isinstance(value, str) and value == "auto")):
            raise ValueError(f"{name} must be 'auto' where X is None, got {value!r:.80}")


def pairs_per_row(data: TrainingSet, sources: list[Source], size: int) -> int:
    """The number of candidates of a training row: `size` for each source of the model's own, and the mean
    number that are given; all labels if no source proposes."""
    n, n_labels = data.Y.shape
    own = sum(not scorer.proposes_given for scorer in proposers(sources))
    names = [name for scorer in proposers(sources) for name in scorer.given_read()[0]]
    stored = 0 if data.given is None else sum(data.given.scores[name].nnz for name in names)
    return min(n_labels, size * own + -(-stored // max(1, n))) or n_labels
