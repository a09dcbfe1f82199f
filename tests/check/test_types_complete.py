"""What a type checker knows of the installed package: nearly all of what its modules show."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("pyright")

ROOT = Path(__file__).parents[2]

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="pyright needs Node.js")


@pytest.fixture(scope="module")
def pyright(tmp_path_factory):
    """Runs pyright where no setting of the repository holds, with the package as it is for others."""
    folder = tmp_path_factory.mktemp("types")
    # It does not follow the hook of an editable install, and asks the first `python` on the path where other
    # packages are.
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    env = os.environ | {"PYTHONPATH": str(ROOT), "PATH": path}

    def run(*args: str) -> dict:
        command = [sys.executable, "-m", "pyright", "--outputjson", *args]
        done = subprocess.run(command, cwd=folder, env=env, capture_output=True, text=True)
        assert done.stdout.startswith("{"), done.stdout + done.stderr
        return json.loads(done.stdout)

    run.folder = folder
    return run


def test_nearly_all_types_are_known(pyright):
    found = pyright("--verifytypes", "metarank", "--ignoreexternal")["typeCompleteness"]
    unknown = [symbol["name"] for symbol in found["symbols"] if not symbol["isTypeKnown"]]
    assert found["completenessScore"] >= 0.95, "\n".join(unknown)


def test_a_user_sees_what_methods_and_fitted_attributes_are(pyright):
    code = """
from metarank import MetaRanker
from metarank.scorers import Parabel

model = MetaRanker(n_folds=3)
reveal_type(model)
reveal_type(model.fit([], []).rank([]))
reveal_type(model.n_labels_)
reveal_type(model.feature_columns_)
reveal_type(model.ranker_)
reveal_type(Parabel(n_trees=3).set_params(C=1.0).n_features_in_)
model.nothing
Parabel(trees=3)
"""
    (pyright.folder / "use.py").write_text(code, encoding="utf-8")
    said = [entry["message"].split("\n")[0] for entry in pyright("use.py")["generalDiagnostics"]]
    kinds = [message.rpartition(" is ")[2].strip('"') for message in said if message.startswith("Type of")]
    assert kinds == ["MetaRanker", "Ranking", "int", "list[str]", "Ranker", "int"]
    assert [message for message in said if not message.startswith("Type of")] == [
        'Cannot access attribute "nothing" for class "MetaRanker"',
        'No parameter named "trees"',
    ]
