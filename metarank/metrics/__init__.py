"""Metrics of rankings, predicted relevances and label sets, by name; intervals, and tests of significance.

`known_names` lists the names, and `Metric.parse(name).meaning` explains one in a sentence. The
modules of this folder define them, each with formula, ties and an example: `ranking_metrics`,
`gains`, `regression`, `sets` and `areas`.
"""

from metarank.metrics.areas import auc_per_label, precision_recall_curve
from metarank.metrics.evaluation import evaluate, per_row
from metarank.metrics.names import Metric, known_names
from metarank.metrics.resampling import Interval, bootstrap
from metarank.metrics.sets import f1_per_label
from metarank.metrics.significance_tests import sign_test, significance, significance_mark, wilcoxon_rows
from metarank.metrics.slices import FrequencyBin, few_values, frequency_bins

__all__ = [
    "FrequencyBin",
    "Interval",
    "Metric",
    "auc_per_label",
    "bootstrap",
    "evaluate",
    "f1_per_label",
    "few_values",
    "frequency_bins",
    "known_names",
    "per_row",
    "precision_recall_curve",
    "sign_test",
    "significance",
    "significance_mark",
    "wilcoxon_rows",
]
