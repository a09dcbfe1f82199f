"""The command line: `metarank COMMAND`. One file a command; this one parses and keeps the exit codes.

0 on success, 2 on bad usage or bad input (one line on stderr), 1 on an internal fault, 130 after Ctrl-C.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from importlib import import_module
from typing import Any, NoReturn

# Before anything brings an OpenMP runtime: its idle threads must sleep, not spin.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")
# And before an encoder is loaded: its bar would stand among the lines of progress.
os.environ.setdefault("HF_HUB_DISABLE_PROGRESS_BARS", "1")

from metarank._util.extra import require_extra
from metarank._util.version import __version__
from metarank.apps.cli._printing import guarded_output, in_options, options_of, warnings_in_a_line

# What each does; its module is imported when it is asked for.
COMMANDS = {
    "demo": "train on the documentation of installed packages, compare, explain, report",
    "train": "train a model on a data file",
    "update": "change a model's labels, or add rows, without a new fit",
    "predict": "rank labels for new rows",
    "evaluate": "measure a model on a labelled file",
    "report": "write a report on a model and a labelled file",
    "explain": "show why labels are ranked where they are",
    "review": "list the pairs that a person should check first",
    "inspect": "describe a model folder or a data file",
    "card": "write the model card of a saved model",
    "diagnose": "compare several targets of one ranking",
    "pareto": "show the possible trade-offs between several targets",
    "serve": "serve a model over HTTP, with a page to try it",
    "data": "list, get or make data sets",
    "annif": "run a command of Annif, with metarank's backend",
}


class _Parser(argparse.ArgumentParser):
    """Bad usage is one line on stderr."""

    def parse_known_args(self, args: Any = None, namespace: Any = None, **how: Any) -> Any:
        if any(action.nargs == argparse.REMAINDER for action in self._actions) and args and args != ["-h"]:
            # Another program's options, which argparse would read itself.
            return argparse.Namespace(**self._defaults, rest=list(args)), []
        parsed, unknown = super().parse_known_args(args, namespace, **how)
        if unknown and self._subparsers is None:  # by the command itself, which knows its options
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: error: {message} (see `{self.prog} -h`)\n")


def build_parser(only: str | None = None) -> argparse.ArgumentParser:
    """The parser of all commands, with the options of all, or of one: they need much that others do not."""
    parser = _Parser(
        prog="metarank",
        description="Rank the labels of an instance and decide how many of them to keep.",
        epilog="Start with `metarank demo`. `metarank COMMAND -h` shows a command's options.",
    )
    parser.add_argument("--version", action="version", version=f"metarank {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, help_line in COMMANDS.items():
        sub = commands.add_parser(name, help=help_line)
        if only in (None, name):
            module = import_module(f"metarank.apps.cli.{name}")
            sub.description = (module.__doc__ or "").strip().splitlines()[0]
            module.add_arguments(sub)
            sub.set_defaults(run=module.run, options=options_of(sub))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what may come next
        require_extra("completion", "argcomplete")
        import argcomplete

        argcomplete.autocomplete(build_parser(), always_complete_options=False)
    with guarded_output():
        return _main(sys.argv[1:] if argv is None else list(argv))


def _main(argv: list[str]) -> int:
    debug = bool(os.environ.get("METARANK_DEBUG"))
    args = argparse.Namespace(options={})
    try:
        with _clear_interrupts():
            build_parser(argv[0] if argv else "").parse_args(argv, args)
            with warnings_in_a_line(args.options):
                args.run(args)
        if sys.stdout is not None:
            sys.stdout.flush()
        return 0
    except BrokenPipeError:
        # Whoever read our output (head, less) is gone; that is no fault.
        _drop_output()
        return 0
    except KeyboardInterrupt:
        _say("metarank: interrupted; no file is incomplete")
        return 130
    except (ValueError, TypeError, OSError, ImportError, MemoryError) as error:
        if debug:
            raise
        rows = {"X": "--text"} if getattr(args, "text", None) else {}
        _say(f"metarank: error: {in_options(_one_line(error), args.options | rows)}")
        return 2
    except Exception as error:
        if debug:
            raise
        _say(
            f"metarank: internal fault: {type(error).__name__}: {_one_line(error)} "
            "(METARANK_DEBUG=1 shows where; please report it)"
        )
        return 1
    finally:
        # What cannot be written (a full disk) has been told; Python need not tell it again when it ends.
        try:
            if sys.stdout is not None:
                sys.stdout.flush()
        except OSError:
            _drop_output()


@contextmanager
def _clear_interrupts() -> Iterator[None]:
    """After Ctrl-C whatever is raised is KeyboardInterrupt: a library that it hits may raise otherwise."""
    pressed = False

    def press(number: int, frame: object) -> None:
        nonlocal pressed
        pressed = True
        raise KeyboardInterrupt

    ours = threading.current_thread() is threading.main_thread()
    ours = ours and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if ours:
        signal.signal(signal.SIGINT, press)
    try:
        yield
    except Exception as error:
        if pressed:
            raise KeyboardInterrupt from error
        raise
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)


def _say(line: str) -> None:
    """A line on stderr, where it is open and read."""
    with suppress(OSError):
        print(line, file=sys.stderr, flush=True)


def _drop_output() -> None:
    with suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, sys.stdout.fileno())
        os.close(nowhere)


def _one_line(error: BaseException) -> str:
    if isinstance(error, OSError) and error.strerror:
        where = f": {error.filename!r}" if error.filename is not None else ""
        return f"{error.strerror}{where}"
    return " ".join(str(error).split()) or type(error).__name__
