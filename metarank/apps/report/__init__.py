"""Reports a person would look at: self-contained HTML with inline SVG."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from metarank.apps.report.content import Report, measure_report
from metarank.apps.report.page import to_html, write_report
from metarank.data.dataset import Dataset
from metarank.model.estimator import MetaRanker
from metarank.persist import read_manifest
from metarank.persist.folder import sha256_of
from metarank.types.ranking import Ranking

__all__ = ["Report", "dated", "evaluation_report", "measure_report", "to_html", "write_report"]


def evaluation_report(
    model: MetaRanker,
    dataset: Dataset,
    path: str | os.PathLike[str],
    baselines: Mapping[str, Ranking] | None = None,
    *,
    slices: Mapping[str, Any] | None = None,
    model_folder: str | os.PathLike[str] | None = None,
    data_file: str | os.PathLike[str] | None = None,
) -> Report:
    """Measure a fitted model on labelled rows and write the page.

    The figures are those of `metarank evaluate`.

    Parameters
    ----------
    model : fitted MetaRanker
    dataset : Dataset
        Rows as in `MetaRanker.rank`, labels in the model's ids.
    path : path of the HTML file
    baselines : dict of name to Ranking, optional
        By default each scorer of the model that can propose labels, alone.
    slices : dict of name to n values, optional
        Columns, such as a date or a source, by whose values figures are shown apart; `metrics.few_values`
        makes few values of many.
    model_folder, data_file : paths, optional
        Where model and rows were read from: the page then tells their digests.

    Returns
    -------
    Report
        What the page shows, as numbers.

    Raises
    ------
    ValueError
        If the data set is empty or has another number of labels than the model, or a column of `slices` has
        another number of values.
    OSError
        If the file cannot be written.

    Examples
    --------
    >>> import tempfile, pathlib
    >>> from metarank import MetaRanker, data
    >>> both = data.make_multilabel(120, n_features=8, n_labels=4, seed=0)
    >>> model = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(both.take(slice(0, 80)))
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "report.html"
    >>> report = evaluation_report(model, both.take(slice(80, 120)), path)
    >>> list(report.metrics), path.stat().st_size > 5000
    (['metarank', 'most frequent', 'nearest neighbours'], True)
    """
    report = measure_report(model, dataset, baselines=baselines, slices=slices)
    report = dated(report, model_folder, data_file)
    write_report(path, report)
    return report


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
