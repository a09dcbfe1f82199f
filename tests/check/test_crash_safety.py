"""A process that is killed, a full disk, Ctrl-C: what stood there or what was to come, whole.

Each law is tried at every system call by which a child process writes; `syscalls` meddles with them.
"""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import makers
import numpy as np
import pytest
from makers import contents
from syscalls import Call, Outcome, in_child, traced

from metarank import load, persist
from metarank._util import files as _files
from metarank.apps.report import Report, write_report
from metarank.data import make_multilabel, to_parquet, write_xc
from metarank.scorers.neighbors.prior import LabelPrior
from metarank.types.view import TrainingSet

Write = Callable[[Path], object]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder in memory where there is one; that content goes to the disk first has a test of its own."""
    memory = Path("/dev/shm")
    place = Path(tempfile.mkdtemp(dir=memory if os.access(memory, os.W_OK) else None))
    (place / "in").mkdir()
    yield place / "in"
    shutil.rmtree(place)


def prior(seed: int) -> LabelPrior:
    """The smallest thing that can be saved; no two are equal."""
    data = make_multilabel(30 + seed, n_features=3, n_labels=4, seed=seed)
    return LabelPrior().fit(TrainingSet(data.X, data.Y, np.zeros(30 + seed, np.int32)).view())


def save_prior(seed: int) -> Write:
    model = prior(seed)
    return lambda place: persist.save(model, place)


def hidden(folder: Path) -> list[str]:
    """What stands in a folder beside M."""
    names = sorted(p.name for p in folder.iterdir() if p.name != "M")
    assert all(name.startswith(".metarank-") for name in names)
    return names


class Trial:
    """The same write, from the same beginning, again and again; the laws of what is there afterwards."""

    def __init__(self, folder: Path, write: Write, earlier: Write | None) -> None:
        self.folder, self.target, self.write, self.earlier = folder, folder / "M", write, earlier
        self.before = None
        self.begin()
        self.before = contents(self.target)
        write(self.target)
        self.after = contents(self.target)
        assert self.after is not None
        assert self.after != self.before

    def begin(self) -> None:
        if self.before is not None and contents(self.target) == self.before:
            for left in self.folder.glob(".*"):
                shutil.rmtree(left)
            return
        shutil.rmtree(self.folder)
        self.folder.mkdir()
        if self.earlier is not None:
            self.earlier(self.target)

    def runs(self, **how: int | bool) -> Iterator[Outcome]:
        """A run for each call it makes, with "at" among `how` as its number."""
        number = 0
        while True:
            number += 1
            self.begin()
            given = {
                name: number if value is True and name.endswith("_at") else value
                for name, value in how.items()
            }
            outcome = traced(lambda: self.write(self.target), self.folder, **given)
            if outcome.n_calls < number:
                return
            yield outcome

    def check_whole(self) -> None:
        """The one or the other stands there; where a model was there before, one can be loaded."""
        content = contents(self.target)
        assert content in (self.before, self.after)
        if isinstance(content, dict) and content:
            load(self.target)

    def check_next_write(self) -> None:
        """What was left beside the target does not disturb it."""
        beside = hidden(self.folder)
        self.write(self.target)
        assert contents(self.target) == self.after
        assert hidden(self.folder) == beside


FOLDERS = {
    "replaced": (save_prior(1), save_prior(0)),
    "new": (save_prior(1), None),
    "deep": (lambda place: save_prior(1)(place / "er" / "M"), None),
    "in an empty folder": (save_prior(1), os.mkdir),
}
FILES = {
    "XC text": (lambda p: write_xc(p, makers.dense()), lambda p: p.write_bytes(b"earlier")),
    "parquet": (lambda p: to_parquet(makers.dense(), p), lambda p: p.write_bytes(b"earlier")),
    "report, new": (lambda p: write_report(p, Report("New")), None),
}


# --- killed -----------------------------------------------------------------------


@pytest.mark.parametrize(("case", "tear"), [("replaced", True), ("new", False), ("in an empty folder", True)])
def test_killed_at_every_call_of_a_save(folder, case, tear, record_property):
    trial = Trial(folder, *FOLDERS[case])
    is_new = []
    for outcome in trial.runs(kill_at=True, tear=tear):
        assert outcome.killed
        trial.check_whole()
        is_new.append(contents(trial.target) == trial.after)
        trial.check_next_write()
    assert len(is_new) > 10
    assert is_new == sorted(is_new)  # the old one up to some call, the new one from there on
    assert set(is_new) == {True, False}
    record_property("kills", len(is_new))


def test_killed_at_every_call_of_a_whole_pipeline(folder, record_property):
    trial = Trial(folder, lambda p: makers.fitted("texts").save(p), lambda p: makers.fitted("dense").save(p))
    kills = 0
    for outcome in trial.runs(kill_at=True):
        assert outcome.killed
        trial.check_whole()
        kills += 1
    assert kills > 100
    trial.check_next_write()
    record_property("kills", kills)


@pytest.mark.parametrize(("case", "tear"), zip(FILES, [True, False, True]))
def test_killed_at_every_call_of_writing_a_file(folder, case, tear, record_property):
    trial = Trial(folder, *FILES[case])
    kills = 0
    for outcome in trial.runs(kill_at=True, tear=tear):
        assert outcome.killed
        trial.check_whole()
        trial.check_next_write()
        kills += 1
    assert kills > 3
    record_property("kills", kills)


def test_content_is_on_the_disk_before_it_has_its_name(folder):
    """Else a machine that goes down may leave the name with an empty file behind it."""
    trial = Trial(folder, *FOLDERS["replaced"])
    trial.begin()
    calls = traced(lambda: trial.write(trial.target), folder).calls
    named = next(i for i, call in enumerate(calls) if call.name == "renameat2")
    place = calls[named].path
    for path in {call.path for call in calls if call.name == "write"}:
        last = max(i for i, call in enumerate(calls) if call == Call("write", path))
        assert Call("fsync", path) in calls[last:named]
    assert Call("fsync", place) in calls[:named]
    assert calls[named + 1] == Call("fsync", str(folder.resolve()))
    removed = next(i for i, call in enumerate(calls) if i > named and call.name.startswith("unlink"))
    assert removed > named + 1
    trial = Trial(folder, *FILES["XC text"])
    trial.begin()
    calls = traced(lambda: trial.write(trial.target), folder).calls
    named = next(i for i, call in enumerate(calls) if call.name == "rename")
    assert calls[named - 1] == Call("fsync", calls[named].path)
    assert calls[named + 1] == Call("fsync", str(folder.resolve()))


def test_readers_and_writers_at_the_same_time(folder):
    """Two processes replace a model again and again; whoever reads finds one of theirs, whole."""
    saves = [save_prior(0), save_prior(1)]
    expected = {prior(seed).log_prior_.tobytes() for seed in (0, 1)}
    saves[0](folder / "M")

    def keep_saving() -> None:
        for i in range(150):
            saves[i % 2](folder / "M")

    writers = [in_child(keep_saving) for _ in range(2)]
    read, seen = 0, set()
    while any(writer.is_running() for writer in writers):
        for verify in (True, False):
            seen.add(load(folder / "M", verify=verify).log_prior_.tobytes())
            read += 1
    assert [writer.error() for writer in writers] == ["", ""]
    assert seen == expected
    assert read > 10
    save_prior(0)(folder / "M")
    assert [p.name for p in folder.iterdir()] == ["M"]


def test_a_file_system_that_cannot_exchange_names(folder, monkeypatch):
    """Two renames put a folder in place; where the second fails, the earlier one is put back."""
    monkeypatch.setattr(_files, "_exchanged", lambda one, other: False)
    trial = Trial(folder, *FOLDERS["replaced"])
    trial.begin()
    calls = traced(lambda: trial.write(trial.target), folder).calls
    renames = [i + 1 for i, call in enumerate(calls) if call.name == "rename"]
    for fail_at in renames[-2:]:
        trial.begin()
        outcome = traced(lambda: trial.write(trial.target), folder, fail_at=fail_at, code=errno.EIO)
        assert os.strerror(errno.EIO) in outcome.error
        assert contents(trial.target) == trial.before
        assert hidden(folder) == []
    trial.check_next_write()


# --- the disk is full, or broken -----------------------------------------------------


@pytest.mark.parametrize(
    ("case", "code"),
    [("replaced", errno.ENOSPC), ("new", errno.EIO), ("XC text", errno.EACCES), ("parquet", errno.ENOSPC)],
)
def test_an_error_at_every_call(folder, case, code, record_property):
    trial, errors = Trial(folder, *(FOLDERS | FILES)[case]), 0
    for outcome in trial.runs(fail_at=True, code=code):
        assert not outcome.killed
        if outcome.error:
            errors += 1
            assert os.strerror(code) in outcome.error
            assert "\n" not in outcome.error
            trial.check_whole()
        else:
            assert contents(trial.target) == trial.after
        trial.check_next_write()
    assert errors > 3
    record_property("errors", errors)


# --- Ctrl-C ---------------------------------------------------------------------------


@pytest.mark.parametrize("case", ["replaced", "XC text"])
def test_ctrl_c_at_every_call(folder, case, record_property):
    trial, interrupted = Trial(folder, *(FOLDERS | FILES)[case]), 0
    for outcome in trial.runs(interrupt_at=True):
        assert not outcome.killed
        assert outcome.error in ("", "KeyboardInterrupt")
        interrupted += bool(outcome.error)
        trial.check_whole()
        # At most an empty folder is left, where the interrupt came while it was made.
        assert [os.listdir(folder / name) for name in hidden(folder)] in ([], [[]])
    assert interrupted > 3
    record_property("interrupts", interrupted)
