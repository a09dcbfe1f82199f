"""Reports a person would look at: self-contained HTML with inline SVG.

Examples
--------
>>> import tempfile, pathlib
>>> from metarank import MetaRanker, data
>>> both = data.make_multilabel(120, n_features=8, n_labels=4, seed=0)
>>> model = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(both.take(slice(0, 80)))
>>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
>>> report = measure_report(model, both.take(slice(80, 120)))
>>> write_report(path, report)
>>> list(report.metrics), path.stat().st_size > 5000
(['metarank', 'most frequent', 'nearest neighbours'], True)
"""

from __future__ import annotations

import os
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from metarank.apps.report.content import Report, measure_report
from metarank.apps.report.page import to_html, write_report
from metarank.persist import read_manifest
from metarank.persist.folder import sha256_of

__all__ = ["Report", "dated", "measure_report", "to_html", "write_report"]


def dated(
    report: Report,
    model_folder: str | os.PathLike[str] | None = None,
    data_file: str | os.PathLike[str] | None = None,
) -> Report:
    """The report, which tells when it was made, and of which model and file: with their digests, SHA-256.

    The digest of a model is that of its manifest, which lists those of its files.
    """
    facts = [("date", f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC")]
    if model_folder is not None:
        digest = read_manifest(model_folder, verify=False)["digest"]
        facts.append(("model", f"{Path(model_folder).resolve().name}, SHA-256 {digest}"))
    if data_file is not None and Path(data_file).is_file():
        facts.append(("data", f"{Path(data_file).name}, SHA-256 {sha256_of(Path(data_file))}"))
    return replace(report, settings=[*facts, *report.settings])
