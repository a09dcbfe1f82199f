"""The documentation site: it builds without a warning, and has the pages of the repository."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    out = tmp_path_factory.mktemp("site")
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(out)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"NO_MKDOCS_2_WARNING": "1"},
    )
    assert done.returncode == 0, done.stderr
    return out


def test_every_page_of_the_repository_is_on_the_site(site):
    for path in [*(ROOT / "docs").glob("*.md"), *(ROOT / "experiments").glob("*/*.md")]:
        name = path.relative_to(ROOT).with_suffix(".html").as_posix().removeprefix("docs/")
        assert (site / name.replace("README", "pages")).is_file(), name


def test_the_reference_has_signatures_and_docstrings(site):
    text = (site / "reference" / "MetaRanker.html").read_text(encoding="utf-8")
    assert "shortlister" in text
    assert 'id="metarank.model.estimator.MetaRanker.rank"' in text
    # The parameters of a class that `with_parameters` makes an estimator of.
    assert "max_leaf" in (site / "reference" / "metarank.shortlist.html").read_text(encoding="utf-8")
