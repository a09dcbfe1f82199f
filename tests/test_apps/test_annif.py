"""metarank within Annif: what needs no Annif here, and the rest by a Python that has it.

METARANK_ANNIF names that Python; `make annif` makes one. Without, and without Annif here, tests are skipped.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest

from metarank.apps import annif
from metarank.apps.annif.documents import Documents
from metarank.apps.annif.settings import metaranker_parameters, read, unknown_settings
from metarank.apps.annif.suggestions import scores_in_order
from metarank.apps.cli import main
from metarank.types.label_descriptions import LabelDescriptions

ROOT = Path(__file__).parents[2]
WITH_ANNIF = os.environ.get("METARANK_ANNIF") or (sys.executable if find_spec("annif") else None)
needs_annif = pytest.mark.skipif(
    WITH_ANNIF is None, reason="Annif is not here; METARANK_ANNIF names a Python"
)
without_annif = pytest.mark.skipif(find_spec("annif") is not None, reason="Annif is here")
# What Annif 1.4 pins, which metarank's own ranges must hold.
PINS = {"numpy": "2.2.6", "scipy": "1.15.3", "scikit-learn": "1.7.2"}


@without_annif
@pytest.mark.parametrize("arguments", [[], ["--version"], ["train", "--cached", "p"]])
def test_without_annif_the_command_says_what_to_install(arguments, capsys):
    assert main(["annif", *arguments]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.count("\n") == 1
    assert "metarank-ltr[annif]" in error


def test_the_entry_point_leads_to_the_backend():
    entries = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["entry-points"]
    assert entries["annif.backends"] == {"metarank": "metarank.apps.annif:metarank"}
    assert callable(annif.metarank)


def test_the_ranges_of_what_metarank_needs_hold_the_pins_of_annif():
    from packaging.requirements import Requirement

    needed = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    ranges = {requirement.name: requirement.specifier for requirement in map(Requirement, needed)}
    assert {name: version in ranges[name] for name, version in PINS.items()} == dict.fromkeys(PINS, True)


@pytest.mark.parametrize(
    ("probabilities", "scores"),
    [
        ([], []),
        ([0.9, 0.5, 0.1], [0.9, 0.5, 0.1]),
        ([0.2, 0.4], [0.3, 0.3]),
        ([0.9, 0.1, 0.3, 0.2], [0.9, 0.2, 0.2, 0.2]),
        ([0.5, 0.0], [0.5, 1e-6]),
    ],
)
def test_scores_are_the_nearest_that_do_not_rise(probabilities, scores):
    found = scores_in_order(np.array(probabilities))
    assert found == pytest.approx(scores, abs=1e-6)
    assert found.dtype == np.float32
    assert np.all(np.diff(found) < 0)


def test_settings_become_parameters():
    params = {"effort": "low", "ranker": "auto", "features": "auto", "propensity_weight": "auto"}
    typed = {"shortlister": "parabel, names", "n_folds": "3", "random_state": "7", "limit": "10"}
    expected = {"n_jobs": -1, "shortlister": ["parabel", "names"], "n_folds": 3, "random_state": 7}
    assert metaranker_parameters(params | typed, 0) == params | expected
    assert metaranker_parameters({"shortlister": "none"}, 2) == {"n_jobs": 2, "shortlister": None}


@pytest.mark.parametrize(
    ("read", "message"),
    [
        (lambda: metaranker_parameters({"n_folds": "many"}, 1), "n_folds must be a number, got 'many'"),
        (lambda: metaranker_parameters({"n_folds": "2.5"}, 1), "n_folds must be a number, got '2.5'"),
        (lambda: read({"limit": "x"}, "limit"), "limit must be a number, got 'x'"),
        (lambda: read({"limit": "-1"}, "limit"), "limit must be at least 0, got -1"),
        (lambda: read({"min_df": 0}, "min_df"), "min_df must be at least 1, got 0"),
    ],
)
def test_wrong_settings_are_named(read, message):
    with pytest.raises(ValueError, match=message):
        read()


def test_settings_of_another_backend_are_unknown():
    project = {"name": "P", "language": "en", "backend": "metarank", "vocab": "v"}
    project |= {"limit": "5", "min_df": "1"}
    assert unknown_settings(project | {"cluster_k": "100", "effort": "low"}, ["min_df"]) == ["cluster_k"]


def test_documents_of_a_training():
    documents = Documents(
        ["rare steel steel", "steel bridge", "bridge"], [["u2"], ["u1", "u2"], ["u9", "u1"]]
    )
    assert documents.with_frequent_words(1) == documents.texts
    assert documents.with_frequent_words(2) == ["steel steel", "steel bridge", "bridge"]
    table = LabelDescriptions(ids=["u1", "u2", "u3"], names=["bridges", "steel", None])
    assert documents.relevances(table).toarray().tolist() == [[0, 1, 0], [1, 1, 0], [1, 0, 0]]
    assert Documents([], []).relevances(table).shape == (0, 3)


def by_annif(*arguments: str) -> str:
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([WITH_ANNIF, *arguments], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@needs_annif
@pytest.mark.slow
@pytest.mark.parametrize("script", ["backend", "commands"])
def test_on_a_stock_annif(script):
    assert by_annif(str(ROOT / "tests" / "with_annif" / f"{script}.py"))


@needs_annif
@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_the_patch_applies_to_annif_and_makes_it_find_the_backend(tmp_path):
    found = by_annif("-c", "import annif.backend; print(annif.backend.__file__)").strip()
    target = tmp_path / "annif" / "backend" / "__init__.py"
    target.parent.mkdir(parents=True)
    shutil.copy(found, target)
    subprocess.run(["git", "apply", ROOT / "docs" / "annif-plugins.patch"], cwd=tmp_path, check=True)
    by_annif(
        "-c",
        "import sys, annif.backend\n"
        f"exec(compile(open({str(target)!r}).read(), 'patched', 'exec'), vars(annif.backend))\n"
        "assert annif.backend.get_backend('metarank').name == 'metarank'\n"
        "try: annif.backend.get_backend('nobody')\n"
        "except ValueError: pass\n"
        "else: sys.exit(1)",
    )
