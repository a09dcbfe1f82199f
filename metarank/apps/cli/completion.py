"""Print a script by which a shell completes commands, options and choices."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator
from typing import Any

SHELLS = ("bash", "zsh", "fish")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument(
        "shell",
        choices=SHELLS,
        help="shell that reads the script: source <(metarank completion bash), likewise zsh; of fish "
        "metarank completion fish | source",
    )


def run(args: argparse.Namespace) -> None:
    """The command."""
    from metarank.apps.cli import build_parser

    print((_fish if args.shell == "fish" else _bash)(build_parser(), args.shell == "zsh"))


def _commands(parser: argparse.ArgumentParser) -> dict[str, tuple[str, argparse.ArgumentParser]]:
    """The help and the parser of each command below a parser."""
    for action in parser._actions:
        if isinstance(action, argparse._SubParsersAction):
            said = {choice.dest: choice.help or "" for choice in action._choices_actions}
            return {name: (said.get(name, ""), sub) for name, sub in action.choices.items()}
    return {}


def _options(parser: argparse.ArgumentParser) -> Iterator[argparse.Action]:
    """The options of a command, those of the commands below it among them."""
    yield from (action for action in parser._actions if action.option_strings)
    for _, sub in _commands(parser).values():
        yield from _options(sub)


def _values(action: argparse.Action) -> list[str]:
    """What may be the value of an option: its choices, or words of its own."""
    known = action.choices if action.choices is not None else getattr(action, "words", ())
    return list(map(str, known))


def _words(parser: argparse.ArgumentParser) -> list[str]:
    """What may stand in the place of the first argument: commands, or choices."""
    found = list(_commands(parser))
    for action in parser._actions:
        if not (action.option_strings or isinstance(action, argparse._SubParsersAction)):
            found += map(str, action.choices or ())
    return found


def _bash(parser: argparse.ArgumentParser, zsh: bool) -> str:
    commands = _commands(parser)
    values, options, arguments = [], [], []
    for name, (_, sub) in commands.items():
        named: dict[str, None] = {}
        for action in _options(sub):
            named |= dict.fromkeys(action.option_strings)
            if action.option_strings and (known := _values(action)):
                of = "|".join(f'"{name} {option}"' for option in action.option_strings)
                values.append(f"{of}) words={_quoted(known)};;")
        options.append(f"{name}) words={_quoted(named)};;")
        below = [(part, parser) for part, (_, parser) in _commands(sub).items()]
        for part, own in [(name, sub), *below]:
            if words := _words(own):
                arguments.append(f'"{name} {part}") words={_quoted(words)};;')
    indent = "\n    "
    return f"""{"autoload -U +X bashcompinit && bashcompinit" if zsh else "# metarank, for bash"}
_metarank() {{
  local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}
  local command=${{COMP_WORDS[1]}} words=
  if [ "$COMP_CWORD" -eq 1 ]; then
    words={_quoted([*commands, "--help", "--version"])}
  else
    case "$command $before" in
    {indent.join(values)}
    esac
    if [ -z "$words" ]; then case "$word" in
    -*) case "$command" in
    {indent.join(options)}
    esac;;
    *) case "$command $before" in
    {indent.join(arguments)}
    esac;;
    esac; fi
  fi
  COMPREPLY=($(compgen -W "$words" -- "$word"))
}}
complete -o default -F _metarank metarank"""


def _fish(parser: argparse.ArgumentParser, _: bool) -> str:
    lines = []
    for name, (said, sub) in _commands(parser).items():
        start = "complete -c metarank -n"
        lines.append(f"{start} __fish_use_subcommand -f -a {name} -d {shlex.quote(said)}")
        here = f"{start} '__fish_seen_subcommand_from {name}'"
        for action in _options(sub):
            long = action.option_strings[-1].removeprefix("--")
            known = _values(action)
            value = f" -x -a {_quoted(known)}" if known else "" if action.nargs == 0 else " -r"
            text = " ".join((action.help or "").replace("%%", "%").split())
            lines.append(f"{here} -l {long}{value} -d {shlex.quote(text)}")
        below = {part: own for part, (_, own) in _commands(sub).items()}
        unless = f"; and not __fish_seen_subcommand_from {' '.join(below)}" if below else ""
        if first := _words(sub):
            lines.append(f"{start} '__fish_seen_subcommand_from {name}{unless}' -a {_quoted(first)}")
        for part, own in below.items():
            if words := _words(own):
                both = f"__fish_seen_subcommand_from {name}; and __fish_seen_subcommand_from {part}"
                lines.append(f"{start} '{both}' -a {_quoted(words)}")
    return "\n".join(lines)


def _quoted(words: Any) -> str:
    return shlex.quote(" ".join(map(str, words)))
