"""The pages of the reference: the public names of each module by their docstrings, and the command line."""

from __future__ import annotations

import argparse
import importlib
import inspect
from typing import Any

import griffe

# The classes with a page of their own, then the public modules in the order of the menu.
CLASSES = ["MetaRanker", "MultiObjectiveRanker", "ThresholdLearner"]
MODULES = [
    "metarank",
    "metarank.data",
    "metarank.shortlist",
    "metarank.scorers",
    "metarank.ranker",
    "metarank.thresholds",
    "metarank.objectives",
    "metarank.metrics",
    "metarank.metrics.propensity",
    "metarank.plot",
    "metarank.text",
    "metarank.distributed",
    "metarank.serve",
]
# What a user calls of a source or ranker. The rest of their methods is what MetaRanker asks of them, and is
# told of at the base classes.
CALLED = ["fit", "shortlist", "shortlist_points", "score", "nearest", "leaves", "save"]
BASES = {"LabelScorer", "Ranker"}


class Signatures(griffe.Extension):
    """Gives classes whose annotated attributes are their parameters the signature that they have when run."""

    def on_class(self, *, cls: griffe.Class, **_: Any) -> None:
        if "__init__" in cls.members or not any("with_parameters" in str(d.value) for d in cls.decorators):
            return
        run = getattr(importlib.import_module(cls.module.path), cls.name)
        kinds = {kind: griffe.ParameterKind(kind.description) for kind in inspect._ParameterKind}
        given = [griffe.Parameter("self", kind=griffe.ParameterKind.positional_or_keyword)]
        for name, one in inspect.signature(run).parameters.items():
            default = None if one.default is one.empty else repr(one.default)
            given.append(
                griffe.Parameter(name, annotation=one.annotation, kind=kinds[one.kind], default=default)
            )
        cls.set_member(
            "__init__", griffe.Function("__init__", parameters=griffe.Parameters(*given), lineno=cls.lineno)
        )


def shown(name: str, thing: Any) -> str:
    """The options of an entry: the name by which it is public, and those of its members that users call."""
    options = [f"heading: {name}"] if name != getattr(thing, "__name__", name) else []
    if {base.__name__ for base in getattr(thing, "__mro__", ())[1:]} & BASES:
        members = [called for called in CALLED if callable(getattr(thing, called, None))]
        options.append(f"members: {members}")
    return "".join(["\n    options:", *("\n      " + option for option in options)]) if options else ""


def menu() -> list[dict[str, str]]:
    names = [*CLASSES, *MODULES]
    return [*({name: f"reference/{name}.md"} for name in names), {"Command line": "reference/cli.md"}]


def home(module: Any, name: str) -> str | None:
    """Where a public name is defined; None for modules and what is no class and no function."""
    thing = getattr(module, name)
    place = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    return None if None in place else ".".join(map(str, place))


def pages() -> dict[str, str]:
    """The text of each page by its place. What is public by two names is told once, and named elsewhere."""
    found, told = {}, {}
    top = importlib.import_module("metarank")
    for name in CLASSES:
        path = home(top, name)
        told[path] = f"{name}.md"
        found[f"reference/{name}.md"] = f"::: {path}\n    options:\n      heading_level: 1\n"
    for place in MODULES:
        module = importlib.import_module(place)
        summary = (module.__doc__ or "").strip()
        here, elsewhere = {}, []
        for name in getattr(module, "__all__", []):
            path = home(module, name)
            if path is None:
                continue
            if path in told:
                elsewhere.append(f"[`{name}`]({told[path]}#{path})")
            else:
                told[path] = f"{place}.md"
                here[path] = name
        text = [f"# {place}", summary]
        if elsewhere:
            text.append("Told elsewhere: " + ", ".join(elsewhere) + ".")
        text += [f"::: {path}{shown(name, getattr(module, name))}" for path, name in here.items()]
        found[f"reference/{place}.md"] = "\n\n".join(text) + "\n"
    found["reference/cli.md"] = command_line()
    return found


def command_line() -> str:
    """What `metarank -h` and `-h` of each command print."""
    from metarank.apps.cli import build_parser

    parser = build_parser()
    text = ["# Command line", f"```text\n{parser.format_help()}```"]

    def below(parser: argparse.ArgumentParser, level: int) -> None:
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                for command in dict.fromkeys(action.choices.values()):
                    text.append(f"{'#' * level} {command.prog}")
                    text.append(f"```text\n{command.format_help()}```")
                    below(command, level + 1)

    below(parser, 2)
    return "\n\n".join(text) + "\n"
