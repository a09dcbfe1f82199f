"""Progress: what is reported, how it is shown, and that no result depends on it."""

from __future__ import annotations

import io
import logging
import sys
import types

import makers
import numpy as np
import pytest

from metarank import MetaRanker, MultiObjectiveRanker
from metarank._util.progress import ProgressLine, listening, report, side_by_side
from metarank.scorers.crossfit import over_folds
from metarank.text import LabelEmbedder

BOW = {"encoder": "bow", "subword_dim": 8, "hidden_dim": 8, "embedding_dim": 8, "n_epochs": 2, "n_jobs": 1}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def fit(make, verbose: int):
    ds = makers.dense() if make is MultiObjectiveRanker else makers.texts()
    if make is MultiObjectiveRanker:
        model = MultiObjectiveRanker(n_rounds=4, n_jobs=1, verbose=verbose)
        return model.fit(ds.X, ds.Y.toarray()[:, :2]).predict(ds.X).tobytes()
    if make is LabelEmbedder:
        return LabelEmbedder(**BOW, verbose=verbose).fit(ds).decision_function(ds).tobytes()
    params = makers.QUICK | {"ranker": "pointwise", "features": ["prior", "parabel", "one-vs-all"]}
    return MetaRanker(**params, verbose=verbose).fit(ds).decision_function(ds).tobytes()


@pytest.mark.parametrize("make", [MetaRanker, MultiObjectiveRanker, LabelEmbedder])
def test_verbose_shows_and_changes_nothing(make, capsys, monkeypatch):
    silent = fit(make, 0)
    assert capsys.readouterr() == ("", "")
    assert fit(make, 1) == silent
    out, err = capsys.readouterr()
    assert out == ""
    assert "\r" not in err  # no terminal: plain lines
    lines = err.splitlines()
    assert lines[-1].startswith("100 %  done")
    shares = [int(line.partition("%")[0]) for line in lines]
    assert shares == sorted(shares)
    terminal = Terminal()
    monkeypatch.setattr(sys, "stderr", terminal)
    assert fit(make, 1) == silent
    shown = terminal.getvalue()
    assert "%|" in shown
    assert "<" in shown
    assert shown.rstrip(" ").endswith("\r")  # taken away at the end


def test_a_line_is_rewritten_where_a_notebook_shows_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "ipykernel", types.ModuleType("ipykernel"))
    plain, shown = io.StringIO(), type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    for stream in (plain, shown):
        ProgressLine(stream)("done", 1.0)
    assert plain.getvalue().startswith("100 %  done")
    assert "\r" not in plain.getvalue()
    assert "\r" in shown.getvalue()


def test_a_fit_reports_inside_its_long_steps():
    ds = makers.sparse()
    params = makers.QUICK | {"ranker": "pointwise", "features": ["prior", "parabel", "one-vs-all"]}
    seen: dict[int, list[tuple[str, float]]] = {1: [], 2: []}
    for n_jobs, reports in seen.items():
        with listening(lambda stage, done, reports=reports: reports.append((stage, done))):
            MetaRanker(**params | {"n_jobs": n_jobs}).fit(ds)
        shares = [done for _, done in reports]
        assert min(np.diff(shares)) > -1e-9
        assert (shares[0], reports[-1]) == (0.0, ("done", 1.0))
        assert max(np.diff(shares)) < 0.21  # nobody is asked for a shortlist
    stages = {stage for stage, _ in seen[1]}
    assert "describing: Parabel: fold 2 of 2: clustering labels for tree 3 of 3" in stages
    assert "describing: Parabel: fold 2 of 2: learning the classifiers of all trees" in stages
    assert "ranking: learning: on all folds: model 1 of 2: round 120 of 120" in stages
    assert "thresholds: macro-f1" in stages
    assert "fitting on all rows: OneVsAll: label 0 of 4" in stages
    assert {stage.partition(":")[0] for stage, _ in seen[1]} == {
        stage.partition(":")[0] for stage, _ in seen[2]
    }


def test_parts_of_the_work_may_run_in_threads():
    seen = []
    with listening(lambda stage, done: seen.append((stage, done))):
        over_folds(lambda fold, threads: report("inside", 0.5), np.arange(8), 4)
        report("after", 1.0)
    assert seen[-1] == ("after", 1.0)
    assert {f"fold {i} of 8: inside" for i in range(1, 9)} < {stage for stage, _ in seen}
    assert (np.diff([done for _, done in seen]) >= 0).all()


def test_a_failure_within_a_part_leaves_the_listener_as_it_was():
    seen = []
    with listening(lambda stage, done: seen.append(stage)):
        for part in side_by_side(["a", "b"]):
            with pytest.raises(ZeroDivisionError), part:
                1 / 0  # noqa: B018
        report("after", 1.0)
    assert seen == ["a", "b", "after"]


def test_the_log_has_stages_and_only_debugging_what_is_within(caplog):
    with caplog.at_level(logging.DEBUG, "metarank"):
        MetaRanker(**makers.QUICK).fit(makers.dense())
    stages = [r for r in caplog.records if "%" in str(r.msg) and r.name == "metarank"]
    said = [r.getMessage().partition(" % ")[2] for r in stages if r.levelno == logging.INFO]
    top = [stage for stage in said if stage]  # others are notes
    assert top[0] == "reading"
    assert top[-3:] == ["thresholds", "fitting on all rows", "done"]
    assert any("fold" in r.getMessage() or "micro-f1" in r.getMessage() for r in stages if r.levelno < 20)


@pytest.mark.parametrize("kind", [Terminal, io.StringIO])
def test_names_within_a_stage_are_made_printable(kind):
    stream = kind()
    line = ProgressLine(stream)
    line("\x1b]0;name\x07 alone", 0.5)
    assert "\x1b]" not in stream.getvalue()
    assert "alone" in stream.getvalue()


class Leaving(io.StringIO):
    """A reader who goes after the first lines: whatever is written then is an error."""

    def __init__(self, *, is_terminal: bool, patience: int) -> None:
        super().__init__()
        self.is_terminal, self.patience, self.refused = is_terminal, patience, 0

    def isatty(self) -> bool:
        return self.is_terminal

    def write(self, text: str) -> int:
        if len(self.getvalue()) >= self.patience:
            self.refused += 1
            raise OSError("gone")
        return super().write(text)


@pytest.mark.parametrize("is_terminal", [True, False])
@pytest.mark.parametrize("patience", [0, 1, 100])
def test_a_reader_who_goes_stops_nothing(is_terminal, patience, monkeypatch):
    """The work goes on to the same end, and nobody tries to tell again."""
    silent = fit(MetaRanker, 0)
    stream = Leaving(is_terminal=is_terminal, patience=patience)
    monkeypatch.setattr(sys, "stderr", stream)
    assert fit(MetaRanker, 1) == silent
    assert 1 <= stream.refused <= 2  # at a report, and at the end where a terminal's line is taken away
    written = stream.getvalue()
    assert bool(written) == (patience > 0)


def test_a_stream_that_is_closed_from_the_start_stops_nothing(monkeypatch):
    silent = fit(MetaRanker, 0)
    monkeypatch.setattr(sys, "stderr", None)
    assert fit(MetaRanker, 1) == silent


@pytest.mark.parametrize("verbose", [-1, 1.0, "1", None])
def test_other_verbose_is_refused(verbose):
    ds = makers.dense()
    with pytest.raises(ValueError, match="verbose must be 0"):
        MetaRanker(verbose=verbose).fit(ds)


def test_classifiers_of_small_sets_report_inside_a_fit():
    """Those that take the longest."""
    ds = makers.dense()
    stages = set()
    with listening(lambda stage, done: stages.add(stage)):
        features = ["rbf-svm", "laplacian-ridge"]
        MetaRanker(**makers.QUICK | {"features": features}).fit(ds)
    for within in ("KernelSVM: label 3 of 4", "KernelRidge: solving"):
        assert f"fitting on all rows: {within}" in stages
