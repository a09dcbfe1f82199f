"""What a project says of metarank in `projects.cfg`, as parameters of `MetaRanker`."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

# Settings of a project that are Annif's own, or of Annif's base classes.
_OF_ANNIF = {"name", "language", "backend", "analyzer", "transform", "vocab", "access", "allow_learn"}


def _integer(value: Any) -> int:
    return int(str(value))


def _number_or_auto(value: Any) -> float | str:
    return "auto" if str(value).strip() == "auto" else float(value)


def _names(value: Any) -> Any:
    """ "auto", None, one name, or several with commas between them."""
    if value is None or str(value).strip().lower() == "none":
        return None
    names = [name.strip() for name in str(value).split(",") if name.strip()]
    return "auto" if names == ["auto"] else names


# Settings that are parameters of MetaRanker, and how their text is read.
OF_METARANKER: dict[str, Callable[[Any], Any]] = {
    "effort": str,
    "ranker": str,
    "shortlister": _names,
    "features": _names,
    "n_folds": _integer,
    "shortlist_size": _integer,
    "propensity_weight": _number_or_auto,
    "random_state": _integer,
}
_READ = OF_METARANKER | {"min_df": _integer, "limit": _integer}


def metaranker_parameters(params: Mapping[str, Any], jobs: int) -> dict[str, Any]:
    """Parameters of `MetaRanker` from the settings of a project. `jobs` 0 means all cores.

    Raises
    ------
    ValueError
        If the text of a setting cannot be read. The message names it.
    """
    of_settings = {setting: read(params, setting) for setting in OF_METARANKER if setting in params}
    return {"n_jobs": jobs if jobs > 0 else -1} | of_settings


# The least of settings that are numbers of something.
_LEAST = {"min_df": 1, "limit": 0}


def read(params: Mapping[str, Any], setting: str) -> Any:
    """The value of a setting.

    Raises
    ------
    ValueError
        If its text cannot be read, or the number is too small. The message names it.
    """
    try:
        value = _READ[setting](params[setting])
    except ValueError:
        raise ValueError(f"{setting} must be a number, got {params[setting]!r:.80}") from None
    if setting in _LEAST and value < _LEAST[setting]:
        raise ValueError(f"{setting} must be at least {_LEAST[setting]}, got {value}")
    return value


def unknown_settings(params: Mapping[str, Any], known: Iterable[str]) -> list[str]:
    """Settings that nothing reads, such as those of the backend that a project had before."""
    return sorted(set(params) - _OF_ANNIF - set(known) - set(_READ))
