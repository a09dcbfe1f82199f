"""`Request`: what is asked of a fitted model, checked and encoded."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from metarank.data.encoder import texts_of
from metarank.model.fitted import FittedModel
from metarank.types.candidates import Candidates
from metarank.types.given import Given, read_given
from metarank.types.restrict import LabelLimits, check_shortlist
from metarank.types.view import Features
from metarank.types.word_rows import WordRows


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
    check_rows(model, X)
    rows: Features | None = None if X is None else model.encoder.encode(X)
    return encoded_request(
        model,
        rows,
        exclude=exclude,
        allowed=allowed,
        candidates=candidates,
        pair_features=pair_features,
        words=words_in(model, X),
    )


def encoded_request(
    model: FittedModel,
    rows: Features | None,
    *,
    exclude: Any = None,
    allowed: Any = None,
    candidates: Any = None,
    pair_features: Any = None,
    words: WordRows | None = None,
) -> Request:
    """`read_request` of rows that are encoded already; None for a model without features. `words` are those
    of the rows in their order, see `words_in`."""
    table = model.label_table
    given = given_to(model, None if rows is None else rows.shape[0], candidates, pair_features)
    if words is not None:
        given = replace(given or Given(len(words), model.n_labels), words=words)
    if rows is None:
        assert given is not None
        rows = np.zeros((given.n_rows, 0), np.float32)
    own = (
        None
        if model.given_sources or candidates is None
        else check_shortlist(candidates, rows.shape[0], table)
    )
    return Request(rows, LabelLimits.checked(exclude, allowed, rows.shape[0], table), own, given)


def words_in(model: FittedModel, X: Any) -> WordRows | None:
    """The words of texts in their order, if a source of the model looks at them."""
    return words_of_texts(model, X) if model.reads_word_order else None


def words_of_texts(model: FittedModel, X: Any) -> WordRows:
    """The words of texts in their order."""
    assert model.encoder.vectorizer is not None
    return model.encoder.vectorizer.in_order(texts_of(X) or [])


def check_rows(model: FittedModel, X: Any) -> None:
    """Raise ValueError if X is None though the fit had rows, or the reverse."""
    without_rows = bool(model.given_sources) and model.encoder.n_features == 0
    if X is None and not without_rows:
        raise ValueError("X is required, since the model was fitted with it, got None")
    if X is not None and without_rows:
        raise ValueError(f"X must be None, since the model was fitted without, got {type(X).__name__}")


def given_to(model: FittedModel, n_rows: int | None, candidates: Any, pair_features: Any) -> Given | None:
    """What is given of the pairs of n rows to the sources of a model, checked; None if no source reads any.

    `n_rows` None: as many as it tells. Candidates of a model without given sources are a shortlist, which is
    not read here.
    """
    sources, features = model.given_sources, model.given_features
    if not sources and not features:
        if pair_features is not None:
            raise ValueError("pair_features must be None, since the model was fitted without")
        return None
    own = candidates if sources else None
    given = read_given(own, pair_features, n_rows, model.label_table, sources, features)
    model.check_given(given)
    return given
