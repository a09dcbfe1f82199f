"""Progress of long work, and notes on what was chosen. The library reports; listeners show it.

Every report goes to the log and to the listener, such as the `ProgressLine` that the command line and
`verbose=1` show.
"""

from __future__ import annotations

import functools
import logging
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from contextvars import ContextVar
from numbers import Integral
from threading import Lock
from typing import IO, Any, ParamSpec, TypeVar

import numpy as np

from metarank._util.printable import printable

P = ParamSpec("P")
R = TypeVar("R")
T = TypeVar("T")

logger: logging.Logger = logging.getLogger("metarank")

Listener = Callable[[str, float], None]
_listener: ContextVar[Listener | None] = ContextVar("metarank_progress", default=None)
# Between a stage and the stage within it.
_WITHIN = ": "
# Seconds after which a plain line tells of the same stage again.
_PATIENCE = 30.0


def report(stage: str, done: float) -> None:
    """Report that `stage` is reached and the share `done` in [0, 1] of the work is complete: of all work, or
    of the current part (`as_part`, `side_by_side`). It costs microseconds, and no result depends on it.
    """
    listener = _listener.get()
    level = logging.DEBUG if isinstance(listener, _Part) else logging.INFO
    logger.log(level, "%3.0f %% %s", 100 * done, stage)
    if listener is not None:
        listener(stage, done)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call `listener(stage, done)` at every report inside the block."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


class _Part:
    """Listens to the reports of a part of the work, and passes them on as reports of the work around it.

    `share_done` tells from the share of the part that is done the share of that work.
    """

    def __init__(self, stage: str, share_done: Callable[[float], float], lock: Lock) -> None:
        self.outer, self.stage, self.share_done, self.lock = _listener.get(), stage, share_done, lock

    def __call__(self, stage: str, done: float) -> None:
        if self.outer is not None:
            with self.lock:
                within = f"{self.stage}{_WITHIN}{stage}" if stage else self.stage
                self.outer(within, min(1.0, self.share_done(done)))


@contextmanager
def as_part(stage: str, start: float, share: float) -> Iterator[None]:
    """Reports inside the block are of a part of the work, which fills `share` of the whole from `start` on.

    Listeners get `stage` at once, and before the part's own stages.

    Examples
    --------
    >>> with listening(lambda stage, done: print(stage, done)):
    ...     with as_part("second of two", 0.5, 0.5):
    ...         report("boosting", 0.5)
    second of two 0.5
    second of two: boosting 0.75
    """
    report(stage, start)
    with listening(_Part(stage, lambda done: start + share * done, Lock())):
        yield


def side_by_side(stages: Sequence[str]) -> list[AbstractContextManager[None]]:
    """A context for each of several parts of equal length, to be entered in any order and in any threads.

    Examples
    --------
    >>> with listening(lambda stage, done: print(stage, done)):
    ...     first, second = side_by_side(["fold 1 of 2", "fold 2 of 2"])
    ...     with second:
    ...         report("trees", 0.5)
    ...     with first:
    ...         pass
    fold 2 of 2 0.0
    fold 2 of 2: trees 0.25
    fold 2 of 2 0.5
    fold 1 of 2 0.5
    fold 1 of 2 1.0
    """
    lock, behind = Lock(), [0.0] * len(stages)

    def share_done(number: int, done: float) -> float:
        behind[number] = max(behind[number], done)
        return sum(behind) / len(behind)

    @contextmanager
    def entered(part: _Part) -> Iterator[None]:
        part("", 0.0)
        with listening(part):
            yield
        part("", 1.0)

    # Made here, where the listener is known: threads begin without one.
    return [
        entered(_Part(stage, functools.partial(share_done, number), lock))
        for number, stage in enumerate(stages)
    ]


def in_turn(work: Callable[[T], R], items: Sequence[T], stage: Callable[[T], str]) -> list[R]:
    """`work` on one item after another, each a part of the whole of equal length.

    Examples
    --------
    >>> with listening(lambda stage, done: print(stage, done)):
    ...     in_turn(abs, [-1, 1], str)
    -1 0.0
    -1 0.5
    1 0.5
    1 1.0
    [1, 1]
    """
    out = []
    for item, part in zip(items, side_by_side([stage(item) for item in items])):
        with part:
            out.append(work(item))
    return out


def is_heard() -> bool:
    """Whether progress is shown: work may then be split into more parts, with the same result."""
    listener = _listener.get()
    while isinstance(listener, _Part):
        listener = listener.outer
    return listener is not None


class ProgressLine:
    """A listener that shows progress to a person. On a terminal or in a notebook it rewrites one line with
    the stage, the share done and the time left. Elsewhere it prints a line a stage, and one each half minute.

    Parameters
    ----------
    stream : text file, optional
        Standard error by default; None where that is closed.
    """

    def __init__(self, stream: IO[str] | None = None) -> None:
        self.stream: IO[str] | None = stream if stream is not None else sys.stderr
        self.started = time.monotonic()
        self.last, self.told = "", 0.0
        self._bar: Any = None

    def __call__(self, stage: str, done: float) -> None:
        if self.stream is None:
            return
        try:
            # A notebook shows what is written to a stream of its own; an imported `ipykernel` alone does not.
            in_notebook = type(self.stream).__module__.partition(".")[0] == "ipykernel"
            if in_notebook or self.stream.isatty():
                self._show_bar(self.stream, printable(stage), done)
            else:
                self._show_line(self.stream, printable(stage), done)
        except OSError:  # nobody reads it any more; the work goes on
            self.stream = None

    def _show_bar(self, stream: IO[str], stage: str, done: float) -> None:
        if self._bar is None:
            self._bar = _new_bar(stream)
        shown = self._bar.update(done - self._bar.n)
        if stage != self.last:
            self._bar.set_description_str(stage, refresh=not shown)
        self.last = stage

    def _show_line(self, stream: IO[str], stage: str, done: float) -> None:
        outer_stage, seconds = stage.partition(_WITHIN)[0], time.monotonic() - self.started
        if outer_stage != self.last or seconds - self.told >= _PATIENCE:
            stream.write(f"{100 * done:3.0f} %  {stage}  ({seconds:.1f} s)\n")
            stream.flush()
            self.told = seconds
        self.last = outer_stage

    def clear(self) -> None:
        """Take the line away."""
        if self._bar is not None:
            with suppress(OSError):
                self._bar.close()


def _new_bar(stream: IO[str]) -> Any:
    from tqdm.auto import tqdm

    class Bar(tqdm):  # type: ignore[misc,type-arg]
        monitor_interval = 0  # no thread beside the work, which may be forked

    return Bar(
        total=1.0,
        file=stream,
        leave=False,
        dynamic_ncols=True,
        mininterval=0.1,
        miniters=0,
        smoothing=0,
        bar_format="{desc}: {percentage:3.0f}%|{bar}| {elapsed}<{remaining}",
    )


def check_verbose(verbose: Any) -> None:
    """Raise unless `verbose` is a bool or an integer >= 0."""
    if not isinstance(verbose, Integral) or int(verbose) < 0:
        raise ValueError(f"verbose must be 0 (silent) or 1 (a line of progress), got {verbose!r}")


@contextmanager
def showing_progress(stream: IO[str] | None = None) -> Iterator[None]:
    """Show the reports inside the block to a person, unless there is a listener already."""
    if _listener.get() is not None:
        yield
        return
    line = ProgressLine(stream)
    try:
        with listening(line):
            yield
    finally:
        line.clear()


def shows_progress(fit: Callable[P, R]) -> Callable[P, R]:
    """A `fit` that shows its progress if the estimator's `verbose` says so.

    Underflow is not an error inside, whatever `np.seterr` says: a number that is too small is 0.
    """

    @functools.wraps(fit)
    def shown(*args: P.args, **kwargs: P.kwargs) -> R:
        verbose = getattr(args[0], "verbose", 0)
        check_verbose(verbose)
        with showing_progress() if verbose else nullcontext(), np.errstate(under="ignore"):
            return fit(*args, **kwargs)

    return shown


_notes: ContextVar[list[str] | None] = ContextVar("metarank_notes", default=None)


def note(text: str) -> None:
    """Report what was chosen, and why, to the log and to `taking_notes`."""
    logger.info("%s", text)
    kept = _notes.get()
    if kept is not None:
        kept.append(text)


@contextmanager
def taking_notes() -> Iterator[list[str]]:
    """The list to which every `note` inside the block is added."""
    kept: list[str] = []
    token = _notes.set(kept)
    try:
        yield kept
    finally:
        _notes.reset(token)
