"""Reports a person would look at: self-contained HTML with inline SVG."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import TYPE_CHECKING

from metarank.apps.report.content import Report, measure_report
from metarank.apps.report.page import to_html, write_report

if TYPE_CHECKING:
    from metarank.data.dataset import Dataset
    from metarank.model.estimator import MetaRanker
    from metarank.types.ranking import Ranking

__all__ = ["Report", "evaluation_report", "measure_report", "to_html", "write_report"]


def evaluation_report(
    model: MetaRanker,
    dataset: Dataset,
    path: str | os.PathLike[str],
    baselines: Mapping[str, Ranking] | None = None,
) -> Report:
    """Measure a fitted model on labelled rows and write the page.

    Parameters
    ----------
    model : fitted MetaRanker
    dataset : Dataset
        Rows as in `MetaRanker.rank`, labels in the model's ids.
    path : path of the HTML file
    baselines : dict of name to Ranking, optional
        By default each scorer of the model that can propose labels, alone.

    Returns
    -------
    Report
        What the page shows, as numbers.

    Raises
    ------
    ValueError
        If the data set is empty or has another number of labels than the model.
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
    report = measure_report(model, dataset, baselines=baselines)
    write_report(path, report)
    return report
