"""What a release consists of: one version everywhere, workflows that name what is there, lean imports."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from wheels.versions import table

import metarank

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def test_one_version():
    """In one file, which is in an sdist and in a clone without tags; the build reads it there."""
    provider = PROJECT["tool"]["scikit-build"]["metadata"]["version"]
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert "version" not in PROJECT["project"]
    (version,) = re.findall(r'^__version__ = "(.+)"$', (ROOT / provider["input"]).read_text(), re.MULTILINE)
    cited = yaml.safe_load((ROOT / "CITATION.cff").read_text(encoding="utf-8"))
    assert metarank.__version__ == version == cited["version"]
    assert f"\n## {version}" in (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert cited["license"] == PROJECT["project"]["license"]


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_workflows_are_whole(path):
    workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert workflow["permissions"] == {"contents": "read"}
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    for name, job in workflow["jobs"].items():
        needs = job.get("needs", [])
        assert {needs} if isinstance(needs, str) else set(needs) <= workflow["jobs"].keys(), name
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step), (name, step)
            if "uses" in step:
                assert re.fullmatch(r"[\w-]+/[\w-]+@[\w./-]+", step["uses"])
            for command in step.get("run", "").splitlines():
                words = command.split()
                assert words[0] != "make" or words[1] in targets
                assert all((ROOT / word).exists() for word in words if word.startswith("tests/"))


def test_only_a_tag_is_published_and_without_a_token():
    jobs = yaml.safe_load((ROOT / ".github" / "workflows" / "wheels.yml").read_text(encoding="utf-8"))["jobs"]
    assert jobs["publish"]["if"] == "startsWith(github.ref, 'refs/tags/v')"
    assert jobs["publish"]["environment"]["name"] == "pypi"
    assert jobs["publish"]["permissions"] == {"contents": "read", "id-token": "write"}
    assert set(jobs["publish"]["needs"]) == jobs.keys() - {"publish"}
    assert "secrets." not in str(jobs)


def test_the_table_of_versions_is_what_is_required_and_tested():
    """Printed by `python tests/wheels/versions.py`."""
    assert table() in (ROOT / "docs" / "platforms.md").read_text(encoding="utf-8")


def test_wheels_are_those_of_the_stable_abi():
    """A component that is not named makes nanobind bind to one version, and say nothing."""
    assert PROJECT["tool"]["scikit-build"]["wheel"]["py-api"] == "cp312"
    cmake = (ROOT / "metarank" / "_core" / "CMakeLists.txt").read_text(encoding="utf-8")
    assert re.search(r"find_package\(Python .*SKBUILD_SABI_COMPONENT", cmake)
    assert re.search(r"nanobind_add_module\(_core STABLE_ABI", cmake)
    assert (ROOT / PROJECT["tool"]["cibuildwheel"]["test-command"].partition("{project}/")[2]).exists()


def said(code: str) -> str:
    """What a fresh process prints."""
    command = [sys.executable, "-c", f"import sys; {code}"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def test_what_is_not_used_is_not_imported():
    unused = "{'faiss', 'torch', 'matplotlib', 'fastapi', 'dask'}"
    assert said(f"import metarank.apps.cli; print({unused} & set(sys.modules))") == "set()"


def test_a_ranker_is_imported_with_what_scikit_learn_s_base_needs():
    """LightGBM, faiss and the other parts of scikit-learn and SciPy are imported where they are used."""
    code = "import sklearn.base; before = set(sys.modules); from metarank import MetaRanker"
    new = said(f"{code}; print(*{{m.split('.')[0] for m in set(sys.modules) - before}})").split()
    assert set(new) <= {"metarank", *sys.stdlib_module_names}


def test_the_smoke_test_of_wheels_passes_here():
    run = subprocess.run(
        [sys.executable, str(ROOT / "tests" / "wheels" / "smoke.py")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stderr
