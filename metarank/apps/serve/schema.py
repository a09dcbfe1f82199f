"""The shapes of requests, as pydantic models, and the messages about requests that do not fit."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from typing import Annotated, Any, ClassVar, Literal, TypeVar
from urllib.parse import parse_qsl

from fastapi import HTTPException
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from metarank._util.json import first_repeated, parse_json
from metarank.thresholds.set_metrics import METRICS

JSON, FORM = "application/json", "application/x-www-form-urlencoded"
# Instances of a request, labels ranked for each, labels explained.
MOST_ROWS, MOST_LABELS, MOST_EXPLAINED = 256, 1_000, 10
# Fields of a form, which are read before it is known whether they serve.
_MOST_FIELDS = 100
_METADATA = "metadata_"

_Count = Annotated[int, Field(ge=1, le=MOST_LABELS)]


class _Body(BaseModel):
    """What every request may hold: arguments of `MetaRanker.rank`."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)

    allowed: Any = Field(None, description="one list of labels, ids or names, or one for each instance")
    exclude: Any = Field(None, description="as allowed")
    known: Any = Field(None, description="as exclude: labels you already know")
    candidates: dict[str, list[Any]] | None = Field(
        None,
        description="by source: pairs [label, score] of the instance, or a list of them for each instance",
    )
    pair_features: dict[str, list[Any]] | None = Field(None, description="as candidates")
    propensity_weight: float | Literal["auto"] | None = None


class RankRequest(_Body):
    """What `POST /rank` takes: one instance or several, and options."""

    instance: Any = Field(None, description="a text, features {name: value} or [value], or {block: value}")
    instances: Annotated[list[Any], Field(min_length=1, max_length=MOST_ROWS)] | None = None
    k: _Count = 10
    optimize: str | dict[str, Any] | None = Field(
        None, description=f"one of {', '.join(METRICS)}, 'recall>=0.9', or the costs of mistakes"
    )
    at_least: Annotated[int, Field(ge=0, le=MOST_LABELS)] = 0
    at_most: _Count | None = None
    probabilities: bool = False
    quality: bool = Field(False, description="also return expected precision, recall and F1 of the label set")


class ExplainRequest(_Body):
    """What `POST /explain` takes: an instance, and the labels to explain; by default the k best."""

    instance: Any = Field(description="as in RankRequest")
    labels: Annotated[list[Any], Field(min_length=1, max_length=MOST_EXPLAINED)] | None = None
    k: Annotated[int, Field(ge=1, le=MOST_EXPLAINED)] = 3
    n_neighbors: _Count = 3


class SuggestRequest(BaseModel):
    """What `POST /v1/projects/{project}/suggest` takes: the fields of a form of Annif's `http` backend."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid")

    text: str
    limit: _Count = 10
    threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)] = 0.0
    project: str | None = Field(None, description="not used: the path names the project")


Body = TypeVar("Body", RankRequest, ExplainRequest)


def read_json(kind: type[Body], body: bytes) -> Body:
    """The request in a body of JSON.

    Raises
    ------
    HTTPException
        422, naming the field and its rule.

    Examples
    --------
    >>> read_json(RankRequest, b'{"instance": "a text", "k": 3}').k
    3
    >>> try:
    ...     read_json(RankRequest, b'{"instance": "a text", "k": "3"}')
    ... except HTTPException as refused:
    ...     print(refused.status_code, refused.detail)
    422 k must be a valid integer, got "3"
    """
    try:
        return kind.model_validate(parse_json(body))
    except ValidationError as error:
        raise refusal(error) from None
    except ValueError as error:  # of the encoding and of endless numbers too
        reason = getattr(error, "msg", _shortened(str(error)))
        raise HTTPException(422, f"the body must be JSON of distinct keys: {reason}") from None


def read_form(body: bytes) -> tuple[SuggestRequest, dict[str, str]]:
    """The request in a form, and the fields of the document's metadata, by their names without "metadata_".

    Raises
    ------
    HTTPException
        422, naming the field and its rule.

    Examples
    --------
    >>> read_form(b"text=a+text&limit=3&metadata_title=one")
    (SuggestRequest(text='a text', limit=3, threshold=0.0, project=None), {'title': 'one'})
    """
    how: dict[str, Any] = {"keep_blank_values": True, "strict_parsing": True, "errors": "strict"}
    try:
        fields = parse_qsl(body.decode(), max_num_fields=_MOST_FIELDS, **how)
    except ValueError:  # of the encoding too
        rule = f"the body must be a form in UTF-8 of at most {_MOST_FIELDS} fields, name=value joined by &"
        raise HTTPException(422, rule) from None
    twice = first_repeated(name for name, _ in fields)
    if twice is not None:
        raise HTTPException(422, f"{_shortened(twice)} must be given once")
    given = dict(fields)
    metadata = {name[len(_METADATA) :]: given.pop(name) for name in list(given) if name.startswith(_METADATA)}
    try:
        return SuggestRequest.model_validate(given), metadata
    except ValidationError as error:
        raise refusal(error) from None


def refusal(error: ValidationError, field: Sequence[str | int] = ()) -> HTTPException:
    """422, with the first thing that is wrong in words; `field` is where the checked value stands."""
    first = error.errors(include_url=False, include_context=False)[0]
    place = [*field, *first["loc"]] or ["body"]
    where = _shortened(str(place[0])) + "".join(f"[{_shortened(repr(part))}]" for part in place[1:])
    rules = {"missing": "is required", "extra_forbidden": "is not a field of this request"}
    if first["type"] in rules:
        return HTTPException(422, f"{where} {rules[first['type']]}")
    rule = re.sub(r"^\w+ should", "must", first["msg"].removeprefix("Value error, "))
    rule = re.sub(r" after validation, not .*| or instance of .*", "", rule)
    return HTTPException(422, f"{where} {rule}, got {_shown(first['input'])}")


def _shown(value: Any) -> str:
    """A value of the request in as few characters as tell it."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return _shortened(json.dumps(value))


def _shortened(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
