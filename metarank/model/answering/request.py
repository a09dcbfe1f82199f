"""`Request`: what is asked of a fitted model, checked and encoded."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple, TypedDict

import numpy as np

from metarank.data.encoder import texts_of
from metarank.model.fitted import FittedModel
from metarank.scorers.base import LabelScorer
from metarank.types.candidates import Candidates
from metarank.types.given import Given, check_names_given, read_given
from metarank.types.restrict import LabelLimits, check_shortlist
from metarank.types.texts import WordRows
from metarank.types.view import Features


class Limits(TypedDict, total=False):
    """What each answer may be given of its pairs; see `MetaRanker.rank`."""

    exclude: Any
    allowed: Any
    candidates: Any
    pair_features: Any


class Request(NamedTuple):
    """Rows of an answer.

    Attributes
    ----------
    X : features (n, d), encoded
    limits : LabelLimits
        Labels that may be ranked.
    own : Candidates or None
        A shortlist to be ranked instead of the model's own.
    given : Given or None
        What the model's sources read of pairs.
    """

    X: Features
    limits: LabelLimits
    own: Candidates | None = None
    given: Given | None = None

    @property
    def n_rows(self) -> int:
        return int(self.X.shape[0])

    def read_by(self, scorer: LabelScorer) -> Any:
        """What a source reads of the rows: X, or what is given of their pairs."""
        return self.given if scorer.reads_given else self.X

    def rows(self, rows: np.ndarray | slice) -> Request:
        """The request for some of its rows."""
        return Request(
            self.X[rows],
            self.limits.rows(rows),
            None if self.own is None else self.own.rows(rows),
            None if self.given is None else self.given[rows],
        )

    def parts(self, n_rows: int) -> Iterator[Request]:
        """The request in parts of so many rows, at least one."""
        for start in range(0, max(self.n_rows, 1), n_rows):
            yield self.rows(slice(start, min(self.n_rows, start + n_rows)))


def read_request(
    model: FittedModel,
    X: Any,
    *,
    exclude: Any = None,
    allowed: Any = None,
    candidates: Any = None,
    pair_features: Any = None,
) -> Request:
    """Check and encode the rows of an answer, what is given of their pairs, and the limits of their labels.

    Raises
    ------
    ValueError, TypeError
        A source or feature of the fit is missing, or another is given; X is None though the fit had features,
        or the reverse; see `read_given`, `check_shortlist` and `LabelLimits.checked`.
    """
    sources, features, table = model.given_sources, model.given_features, model.label_table
    has_rows = model.encoder.n_features > 0 or not sources
    if X is None and has_rows:
        raise ValueError("X is required, since the model was fitted with it, got None")
    if X is not None and not has_rows:
        raise ValueError(f"X must be None, since the model was fitted without, got {type(X).__name__}")
    rows: Features | None = None if X is None else model.encoder.encode(X)
    given = shortlist = None
    if sources or features:
        n_rows = None if rows is None else rows.shape[0]  # or as many as is told of
        given = read_given(candidates if sources else None, pair_features, n_rows, table, sources, features)
        check_names_given(given, sources, features)
        assert given is not None
        for scorer in model.scorers:
            scorer.check_given(given)
    elif pair_features is not None:
        raise ValueError("pair_features must be None, since the model was fitted without")
    if (words := words_in(model, X)) is not None:
        given = replace(given or Given(len(words), model.n_labels), words=words)
    if rows is None:
        assert given is not None
        rows = np.zeros((given.n_rows, 0), np.float32)
    if candidates is not None and not sources:
        shortlist = check_shortlist(candidates, rows.shape[0], table)
    return Request(rows, LabelLimits.checked(exclude, allowed, rows.shape[0], table), shortlist, given)


def words_in(model: FittedModel, X: Any) -> WordRows | None:
    """The words of texts in their order, if a source of the model looks at them."""
    if not model.reads_word_order:
        return None
    assert model.encoder.vectorizer is not None
    return model.encoder.vectorizer.in_order(texts_of(X) or [])
