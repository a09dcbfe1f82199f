"""The command line: `metarank COMMAND`. One file a command; this one parses and keeps the exit codes.

0 on success, 2 on bad usage or bad input (one line on stderr), 1 on an internal fault.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

# Before anything brings an OpenMP runtime: its idle threads must sleep, not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

from metarank._version import __version__

COMMANDS = ("demo", "train", "predict", "evaluate", "explain", "inspect", "diagnose", "pareto", "data")


class _Parser(argparse.ArgumentParser):
    """Bad usage is one line on stderr."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see `{self.prog} -h`)\n")


def build_parser() -> argparse.ArgumentParser:
    """The parser of all commands."""
    parser = _Parser(
        prog="metarank",
        description="Rank the labels of an instance and decide how many of them to keep.",
        epilog="Start with `metarank demo`. `metarank COMMAND -h` shows a command's options.",
    )
    parser.add_argument("--version", action="version", version=f"metarank {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name in COMMANDS:
        module = import_module(f"metarank.cli.{name}")
        sub = commands.add_parser(
            name, help=module.HELP, description=(module.__doc__ or "").strip().splitlines()[0]
        )
        module.add_arguments(sub)
        sub.set_defaults(run=module.run)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    args = build_parser().parse_args(argv)
    debug = bool(os.environ.get("METARANK_DEBUG"))
    try:
        args.run(args)
        sys.stdout.flush()
        return 0
    except BrokenPipeError:
        # Whoever read our output (head, less) is gone; that is no fault.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("metarank: interrupted; nothing is half-written", file=sys.stderr)
        return 130
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        if debug:
            raise
        print(f"metarank: error: {_one_line(error)}", file=sys.stderr)
        return 2
    except Exception as error:
        if debug:
            raise
        print(
            f"metarank: internal fault: {type(error).__name__}: {_one_line(error)} "
            "(METARANK_DEBUG=1 shows where; please report it)",
            file=sys.stderr,
        )
        return 1


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename!r}" if error.filename is not None else ""
        return f"{error.strerror}{where}"
    return " ".join(str(error).split()) or type(error).__name__
