"""A short run of the fuzzers of `fuzz/`; `make fuzz` does the long one, and that of the compiled core."""

from __future__ import annotations

import os
import random

import makers
import pytest
from fuzz import mutate, native
from fuzz.readers import CORPUS, reader_targets
from fuzz.targets import MODELS, ModelTarget
from fuzz.uses import use
from fuzz.workers import Task, run_targets

from metarank import load, persist

# Of each reader; what a mutant is depends on its number alone.
N_MUTANTS = 125
# Shortlisters by themselves.
ALONE = [f"alone: {name}" for name in ("one-vs-all", "parabel", "fastxml", "neighbors")]
# Requests take seconds before the first mutant.
READERS = [target for target in reader_targets() if target.name != "reader: requests"]


@pytest.mark.parametrize("target", READERS, ids=lambda target: target.name)
@pytest.mark.filterwarnings("ignore")
def test_mutants_of_files(target, tmp_path):
    """Read, or refused by a ValueError of one line; anything else is raised here."""
    outcomes = {target.run(random.Random(f"test {target.name} {i}"), tmp_path) for i in range(N_MUTANTS)}
    assert len(outcomes) > 1


@pytest.mark.parametrize("model", ["texts", "dense", *ALONE])
@pytest.mark.filterwarnings("ignore")
def test_mutants_of_models(model, tmp_path):
    """Refused by a ModelError, or loaded; then answers are finite, of labels each once, or a ValueError."""
    fitted = MODELS[model]() if model in ALONE else makers.fitted(model)
    persist.save(fitted, tmp_path / "original")
    target = ModelTarget(model, tmp_path / "original")
    outcomes = {target.run(random.Random(f"test {model} {i}"), tmp_path) for i in range(50)}
    assert "ok" in outcomes
    assert any(outcome.startswith("load: ModelError") for outcome in outcomes)


@pytest.mark.parametrize("model", ["texts", "dense", *ALONE])
@pytest.mark.filterwarnings("ignore")
def test_an_intact_model_answers_every_question(model, tmp_path, monkeypatch):
    """Ranked, cut, explained, served, changed, extended, saved again: none of it is refused."""
    fitted = MODELS[model]() if model in ALONE else makers.fitted(model)
    persist.save(fitted, tmp_path / "M")
    loaded = load(tmp_path / "M")
    monkeypatch.setattr("fuzz.uses._OTHERS", 100)
    if model in ("texts", "dense"):
        pytest.importorskip("fastapi")
    rng = random.Random(0)
    monkeypatch.setattr(rng, "random", lambda: 1.0)  # rows as they are
    assert use(loaded, ModelTarget(model, tmp_path / "M").rows, rng, tmp_path) == []


class _Target:
    """Mutants of every fate."""

    def run(self, rng, scratch):
        number = len(list(scratch.iterdir()))
        (scratch / str(number)).touch()
        fates = {1: lambda: os._exit(9), 2: lambda: 1 / 0, 3: lambda: "load: refused"}
        return fates.get(number, lambda: "ok")()


def test_workers_go_on_behind_what_ended_them():
    """Every mutant is counted once; a process that dies is replaced, and begins anew with the next number."""
    tasks = [Task(name, _Target, range(8)) for name in ("a", "b", "c")]
    reports = list(run_targets(tasks, 0, processes=2))
    assert sorted(report.target for report in reports) == ["a", "b", "c"]
    for report in reports:
        assert report.n_mutants == 8
        # The process that was begun anew counts its mutants from 0 and dies at its second, and so on.
        assert [f["number"] for f in report.failures] == [1, 3, 5, 7]
        assert report.outcomes == {"ok": 4}
        assert all("exit code 9" in failure["what"] for failure in report.failures)
    (stopped,) = run_targets([Task("a", _Target, range(8))], 0, most_failures=2)
    assert [f["number"] for f in stopped.failures] == [1, 3]


def test_every_reader_and_harness_has_seeds():
    folders = {path.name for path in (CORPUS / "readers").iterdir() if any(path.iterdir())}
    assert folders == {target.name.removeprefix("reader: ") for target in reader_targets()}
    sources = {path.stem for path in native.HERE.glob("*.cpp")} - {"driver"}
    seeded = {path.name for path in (CORPUS / "native").iterdir() if any(path.iterdir())}
    assert sources == seeded == set(native.HARNESSES)


def test_a_harness_names_files_of_the_core():
    for harness, parts in native.HARNESSES.items():
        text = (native.HERE / f"{harness}.cpp").read_text()
        for part in parts:
            assert (native.CORE / f"{part}.cpp").is_file()
            assert f'/{part}.cpp"' not in text  # it would be compiled twice


def test_a_mutant_depends_on_its_seed_alone():
    content = bytes(range(256))
    mutants = [mutate.mutate_bytes(content, random.Random(i)) for i in range(50)]
    assert mutants == [mutate.mutate_bytes(content, random.Random(i)) for i in range(50)]
    assert len(set(mutants)) == 50
