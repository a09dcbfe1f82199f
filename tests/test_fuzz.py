"""A short run of the fuzzers of `fuzz/`; `make fuzz` does the long one, and that of the compiled core."""

from __future__ import annotations

import random

import makers
import pytest

from fuzz import mutate, native
from fuzz.readers import CORPUS, reader_targets
from fuzz.targets import ModelTarget

# Of each reader; what a mutant is depends on its number alone.
N_MUTANTS = 125
# They need an extra, or take seconds before the first mutant.
LEFT_OUT = {f"reader: {name}" for name in ("checkpoint", "requests", "partitions", "parquet", "subwords")}
READERS = [target for target in reader_targets() if target.name not in LEFT_OUT]


@pytest.mark.parametrize("target", READERS, ids=lambda target: target.name)
@pytest.mark.filterwarnings("ignore")
def test_mutants_of_files(target, tmp_path):
    """Read, or refused by a ValueError of one line; anything else is raised here."""
    outcomes = {target.run(random.Random(f"test {target.name} {i}"), tmp_path) for i in range(N_MUTANTS)}
    assert len(outcomes) > 1


@pytest.mark.parametrize("model", ["texts", "dense"])
@pytest.mark.filterwarnings("ignore")
def test_mutants_of_models(model, tmp_path):
    """Refused by a ModelError, or loaded and then used without a crash."""
    makers.fitted(model).save(tmp_path / "original")
    target = ModelTarget(model, tmp_path / "original")
    outcomes = {target.run(random.Random(f"test {model} {i}"), tmp_path) for i in range(50)}
    assert "ok" in outcomes
    assert any(outcome.startswith("load: ModelError") for outcome in outcomes)


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
