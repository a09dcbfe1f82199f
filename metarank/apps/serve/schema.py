"""The bodies of requests, as pydantic models, and what a client is told of one that does not fit."""

from __future__ import annotations

import json
from typing import Annotated, Any, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Discriminator,
    Field,
    StrictFloat,
    StrictInt,
    StrictStr,
    Tag,
    ValidationError,
)

from metarank._util.json import parse_json
from metarank.apps.serve.errors import Refused, invalid
from metarank.thresholds.set_metrics import METRICS


def _kind(value: Any) -> str | None:
    kinds: dict[type, str] = {str: "text", dict: "sparse", list: "dense"}
    return kinds.get(type(value))


def _value_kind(value: Any) -> str | None:
    kinds: dict[type, str] = {str: "text", dict: "object", list: "vector", type(None): "number"}
    return "number" if type(value) in (int, float) else kinds.get(type(value))


# The value of a feature or of a block, which the model's kind of it decides.
Value = Annotated[
    Annotated[StrictFloat | None, Tag("number")]
    | Annotated[StrictStr, Tag("text")]
    | Annotated[list[StrictFloat | StrictStr | None], Tag("vector")]
    | Annotated[dict[str, StrictFloat], Tag("object")],
    Discriminator(
        _value_kind,
        custom_error_type="value",
        custom_error_message="must be a number, or of a block a text, a list or an object",
    ),
]

Instance = Annotated[
    Annotated[StrictStr, Tag("text")]
    | Annotated[dict[str, Value], Tag("sparse")]
    | Annotated[list[StrictFloat], Tag("dense")],
    Discriminator(
        _kind,
        custom_error_type="instance",
        custom_error_message="must be a text, an object {feature: value} or a list of numbers; of a model of "
        "blocks an object {block: value}",
    ),
]


def _label_kind(value: Any) -> str | None:
    kinds: dict[type, str] = {str: "name", int: "id"}
    return kinds.get(type(value))


Label = Annotated[
    Annotated[StrictStr, Tag("name")] | Annotated[StrictInt, Tag("id")],
    Discriminator(
        _label_kind, custom_error_type="label", custom_error_message="must be the id or the name of a label"
    ),
]


def _lists_kind(value: Any) -> str | None:
    if type(value) is not list:
        return None
    return "rows" if value and type(value[0]) is list else "one"


# One list of labels for all instances of the request, or one list for each of them.
LabelLists = Annotated[
    Annotated[list[Label], Tag("one")] | Annotated[list[list[Label]], Tag("rows")],
    Discriminator(
        _lists_kind,
        custom_error_type="labels",
        custom_error_message="must be a list of labels, or one such list for each instance",
    ),
]


# By source: the pairs [label, score] of the one instance, or such a list for each of several.
PairsOf = dict[StrictStr, list[Any]]


class _Body(BaseModel):
    model_config = ConfigDict(extra="forbid")


class RankRequest(_Body):
    """What `POST /rank` takes: one instance, or several, and what is asked of them."""

    instance: Instance | None = None
    instances: Annotated[list[Instance], Field(min_length=1)] | None = None
    k: Annotated[StrictInt, Field(ge=1)] = 10
    allowed: LabelLists | None = None
    exclude: LabelLists | None = None
    candidates: PairsOf | None = None
    pair_features: PairsOf | None = None
    propensity_weight: StrictFloat | None = None
    optimize: StrictStr | None = Field(None, description=f"one of {', '.join(METRICS)}, or 'recall>=0.9'")
    probabilities: Annotated[bool, Field(strict=True)] = False


class ExplainRequest(_Body):
    """What `POST /explain` takes: an instance, and the labels to be explained; by default the k best.

    What restricts or weighs the ranking is that of `POST /rank`.
    """

    instance: Instance
    labels: Annotated[list[Label], Field(min_length=1)] | None = None
    k: Annotated[StrictInt, Field(ge=1)] = 3
    n_neighbors: Annotated[StrictInt, Field(ge=1)] = 3
    allowed: LabelLists | None = None
    exclude: LabelLists | None = None
    candidates: PairsOf | None = None
    pair_features: PairsOf | None = None
    propensity_weight: StrictFloat | None = None


Body = TypeVar("Body", RankRequest, ExplainRequest)

# Tags of unions, which pydantic puts into the place of an error and no client knows.
_TAGS = {"text", "sparse", "dense", "name", "id", "one", "rows", "number", "vector", "object"}


def read_body(kind: type[Body], body: bytes) -> Body:
    """The request in a body of JSON.

    Raises
    ------
    Refused
        422, naming the field and its rule.

    Examples
    --------
    >>> read_body(RankRequest, b'{"instance": "a text", "k": 3}').k
    3
    >>> try:
    ...     read_body(RankRequest, b'{"instance": "a text", "k": "3"}')
    ... except Refused as refused:
    ...     print(refused.message)
    k must be a valid integer, got "3"
    """
    try:
        read = kind.model_validate_json(body)
        parse_json(body)  # pydantic keeps the last of the values of a repeated key, without a word
        return read
    except ValidationError as error:
        raise refusal(error) from None
    except json.JSONDecodeError as error:
        raise invalid("body", f"the body must be JSON of distinct keys: {error.msg}") from None


def refusal(error: ValidationError) -> Refused:
    """The first thing that is wrong with a request, in words."""
    first = error.errors(include_url=False, include_context=False)[0]
    kind, value = first["type"], first.get("input")
    if kind == "json_invalid":
        return invalid("body", f"the body must be JSON: {first['msg'].removeprefix('Invalid JSON: ')}")
    place = [part for part in first["loc"] if part not in _TAGS or part == first["loc"][0]]
    field = _cut(str(place[0])) if place else "body"
    where = field + "".join(f"[{_cut(repr(part))}]" for part in place[1:])
    if kind == "missing":
        return invalid(field, f"{where} is required")
    if kind == "extra_forbidden":
        return invalid(field, f"{where} is not a field of this request")
    if kind == "too_short":
        return invalid(field, f"{where} must hold at least 1 item, got none")
    rule = first["msg"].removeprefix("Input should").removeprefix(" be").strip()
    rule = rule if rule.startswith("must") else f"must be {rule}"
    return invalid(field, f"{where} {rule}, got {_shown(value)}")


def _shown(value: Any) -> str:
    """A value of the request in as few characters as tell it."""
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    return _cut(json.dumps(value))


def _cut(text: str) -> str:
    return text if len(text) <= 60 else text[:57] + "..."
