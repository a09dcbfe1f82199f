"""What Annif's `http` backend asks and is told: a form with a text in, subjects with scores out."""

from __future__ import annotations

import json
from typing import Annotated, Any
from urllib.parse import parse_qsl

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from metarank.apps.annif.suggestions import scores_in_order
from metarank.apps.serve.errors import invalid
from metarank.apps.serve.schema import refusal
from metarank.types.label_table import LabelTable

FORM = "application/x-www-form-urlencoded"
# Fields of a form, which are read before it is known whether they serve.
_MOST_FIELDS = 100
_METADATA = "metadata_"


class SuggestRequest(BaseModel):
    """What `POST /v1/projects/{id}/suggest` takes: the fields of a form."""

    model_config = ConfigDict(extra="forbid")

    text: str
    limit: Annotated[int, Field(ge=1)] = 10
    threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0
    project: Annotated[str | None, Field(description="the id of the path, where it is sent too")] = None


def read_form(body: bytes) -> tuple[SuggestRequest, dict[str, str]]:
    """The request in a form, and the fields of the document's metadata, by their names without "metadata_".

    Raises
    ------
    Refused
        422, naming the field and its rule.

    Examples
    --------
    >>> read_form(b"text=a+text&limit=3&metadata_title=one")
    (SuggestRequest(text='a text', limit=3, threshold=0.0, project=None), {'title': 'one'})
    >>> read_form(b"limit=3")
    Traceback (most recent call last):
        ...
    metarank.apps.serve.errors.Refused: text is required
    """
    how: dict[str, Any] = {"keep_blank_values": True, "strict_parsing": True, "errors": "strict"}
    try:
        fields = parse_qsl(body.decode(), max_num_fields=_MOST_FIELDS, **how)
    except ValueError:  # of the encoding too
        rule = f"the body must be a form in UTF-8 of at most {_MOST_FIELDS} fields, name=value joined by &"
        raise invalid("body", rule) from None
    given = dict(fields)
    if len(given) < len(fields):
        names = [name for name, _ in fields]
        twice = next(name for name in names if names.count(name) > 1)[:60]
        raise invalid(twice, f"{twice} must be given once")
    metadata = {name[len(_METADATA) :]: given.pop(name) for name in list(given) if name.startswith(_METADATA)}
    try:
        return SuggestRequest.model_validate(given), metadata
    except ValidationError as error:
        raise refusal(error) from None


def suggestions(entries: list[dict[str, Any]], table: LabelTable, threshold: float) -> bytes:
    """The reply to a request, from the ranked labels of its text with their probabilities."""
    scores = scores_in_order(np.array([entry["probability"] for entry in entries])).tolist()
    results = [
        {"uri": _uri(table, entry["label"]), "label": _name(table, entry["label"]), "score": score}
        for entry, score in zip(entries, scores)
        if score >= threshold
    ]
    return json.dumps({"results": results}).encode()


def _name(table: LabelTable, label: int) -> str:
    return "" if table.names is None else table.names[label]


def _uri(table: LabelTable, label: int) -> str:
    """The identifier of a label; its name, or its number, where it has none."""
    return table.ids[label] if table.ids is not None else _name(table, label) or str(label)
