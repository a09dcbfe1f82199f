"""What others say of pairs, at the doors of a fit and of an answer; see `metarank.types.given`."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from metarank._util.progress import note
from metarank.model.fitted import FittedModel
from metarank.model.inputs import FitOptions
from metarank.scorers.given.pair_features import PairFeatures
from metarank.scorers.given.source import GivenScorer
from metarank.scorers.given.together import GivenTogether
from metarank.scorers.source import Source, proposers
from metarank.types.candidates import Candidates
from metarank.types.given import Given, read_given
from metarank.types.label_table import LabelTable
from metarank.types.restrict import check_shortlist
from metarank.types.view import Features, TrainingSet

MODES = ("only", "union")
# A source is far worse on later rows if it is right at the first place so much less often.
_FAR, _LEAST_ROWS = 0.1, 30


def with_given(own: list[Source], pairs: Given | None, mode: str) -> list[Source]:
    """The sources of a fit: its own and, if candidates or features of pairs are given, a source for each.

    By the mode "only" the candidates given are the only ones, and the model's own sources describe alone.
    """
    if pairs is None:
        return own
    alone = mode == "only" and bool(pairs.scores)
    if alone:
        note(f"candidates: those given by {', '.join(pairs.scores)}, and no others")
    # Where all labels are ranked, nothing needs to be proposed.
    proposes = alone or bool(proposers(own))
    sources = [
        replace(source, proposes=source.proposes and not alone)
        for source in own
        if source.describes or not alone
    ]
    sources += [Source(GivenScorer(given=name), proposes, describes=True) for name in pairs.scores]
    if len(pairs.scores) > 1:
        sources.append(Source(GivenTogether(given=list(pairs.scores)), proposes=False, describes=True))
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
    if mode == "union":
        raise ValueError("candidates_mode='union' needs X, by which other candidates are found, got None")
    for name, value in (("features", options.features), ("label_text", options.label_text)):
        if not (value is None or (isinstance(value, str) and value == "auto")):
            raise ValueError(f"{name} must be 'auto' where X is None, got {value!r:.80}")


class Asked(NamedTuple):
    """What is asked of a fitted model.

    Attributes
    ----------
    X : features (n, d), encoded
    own : Candidates or None
        A shortlist to be ranked instead of the model's own.
    given : Given or None
        What the model's sources read of pairs.
    """

    X: Features
    own: Candidates | None
    given: Given | None


def asked(model: FittedModel, X: Any, candidates: Any = None, pair_features: Any = None) -> Asked:
    """Check and encode the rows of an answer and what is given of their pairs.

    Raises
    ------
    ValueError, TypeError
        A source or feature of the fit is missing, or another is given; X is None though the fit had features,
        or the reverse; see `read_given` and `check_shortlist`.
    """
    sources, features = model.given_sources, model.given_features
    without_rows = bool(sources) and model.encoder.n_features == 0
    if X is None and not without_rows:
        raise ValueError("X is required, since the model was fitted with it, got None")
    if X is not None and without_rows:
        raise ValueError(f"X must be None, since the model was fitted without, got {type(X).__name__}")
    rows: Features | None = None if X is None else model.encoder.encode(X)
    n_rows, table = None if rows is None else rows.shape[0], model.label_table
    if not sources and not features:
        if pair_features is not None:
            raise ValueError("pair_features must be None, since the model was fitted without")
        assert rows is not None
        return Asked(rows, _shortlist(candidates, rows.shape[0], table), None)
    of_sources = candidates if sources else None
    pairs = read_given(of_sources, pair_features, n_rows, table)
    model.check_given(pairs)
    assert pairs is not None
    if rows is None:
        rows = np.zeros((pairs.n_rows, 0), np.float32)
    return Asked(rows, None if sources else _shortlist(candidates, rows.shape[0], table), pairs)


def warn_of_a_leak(model: FittedModel, candidates: Any, Y: sp.csr_matrix) -> None:
    """Warn about given sources that are far worse on these labelled rows than on the training rows.

    The best pair of a row must be relevant in .1 less of the rows, and by three standard errors. Y (n, L) or
    wider. Fewer than 30 rows with labels say too little.
    """
    records = [record for scorer in model.scorers if (record := scorer.training_record()) is not None]
    labelled = np.flatnonzero(np.diff(Y.indptr))
    if candidates is None or not records or len(labelled) < _LEAST_ROWS:
        return
    given = read_given(candidates, None, Y.shape[0], model.label_table)
    assert given is not None
    for name, before, n_before in records:
        top = given.candidates(name).rows(labelled).top(1)
        now = float((top.values_of(Y[labelled][:, : model.n_labels]) > 0).mean()) if top.n_pairs else 0.0
        pooled = (before * n_before + now * top.n_pairs) / max(1, n_before + top.n_pairs)
        error = np.sqrt(pooled * (1 - pooled) * (1 / max(1, n_before) + 1 / max(1, top.n_pairs)))
        if before - now > max(_FAR, 3 * error):
            warnings.warn(
                f"candidates[{name!r}] are right in {before:.0%} of the training rows at place 1, and "
                f"in {now:.0%} of these: were the scores of the training rows made by a model that had seen "
                "their labels? See candidates_fold of MetaRanker.fit",
                stacklevel=3,
            )


def _shortlist(candidates: Any, n_rows: int, table: LabelTable) -> Candidates | None:
    return None if candidates is None else check_shortlist(candidates, n_rows, table)


def pairs_per_row(data: TrainingSet, sources: list[Source], size: int) -> int:
    """The number of candidates of a training row: `size` for each source of the model's own, and the mean
    number that are given; all labels if no source proposes."""
    n, n_labels = data.Y.shape
    own = sum(not scorer.reads_given for scorer in proposers(sources))
    names = [name for scorer in proposers(sources) for name in scorer.given_read()[0]]
    stored = 0 if data.given is None else sum(data.given.scores[name].nnz for name in names)
    return min(n_labels, size * own + -(-stored // max(1, n))) or n_labels
