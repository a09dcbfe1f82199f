"""Metrics of rankings, predicted relevances and label sets; intervals, and tests of significance."""

from metarank.metrics.evaluation import evaluate, per_row
from metarank.metrics.graded import tau_at_k, wn_at_k, wp_at_k, wp_regret_at_k, wp_rerank_at_k
from metarank.metrics.hierarchical import hierarchical_f1, hierarchical_precision, hierarchical_recall
from metarank.metrics.missing_labels import concentration_bound, unbiased, unbiased_per_row
from metarank.metrics.names import Metric, known_names
from metarank.metrics.precision_recall import auprc, precision_recall_curve
from metarank.metrics.propensity_scored import distinct_at_k, psndcg_at_k, psp_at_k
from metarank.metrics.ranking_metrics import (
    average_discounted_gain,
    coverage,
    f1_at_k,
    mean_average_precision,
    ndcg,
    one_error,
    precision_at_k,
    ranking_loss,
    recall_at_k,
    reciprocal_rank,
    reciprocal_rank_all,
)
from metarank.metrics.regression import mad, regression_error_at_k, rmse, xmad_at_k, xreg_zero, xrmse_at_k
from metarank.metrics.resampling import Interval, bootstrap
from metarank.metrics.roc import auc, auc_per_label, micro_auc
from metarank.metrics.sets import (
    example_f1,
    f1_per_label,
    hamming_loss,
    label_coverage,
    macro_f1,
    micro_f1,
    subset_accuracy,
)
from metarank.metrics.significance_tests import (
    sign_test,
    significance,
    significance_mark,
    wilcoxon_macro_f1,
    wilcoxon_rows,
)
from metarank.metrics.slices import FrequencyBin, few_values, frequency_bins

__all__ = [
    "FrequencyBin",
    "Interval",
    "Metric",
    "auc",
    "auc_per_label",
    "auprc",
    "average_discounted_gain",
    "bootstrap",
    "concentration_bound",
    "coverage",
    "distinct_at_k",
    "evaluate",
    "example_f1",
    "f1_at_k",
    "f1_per_label",
    "few_values",
    "frequency_bins",
    "hamming_loss",
    "hierarchical_f1",
    "hierarchical_precision",
    "hierarchical_recall",
    "known_names",
    "label_coverage",
    "macro_f1",
    "mad",
    "mean_average_precision",
    "micro_auc",
    "micro_f1",
    "ndcg",
    "one_error",
    "per_row",
    "precision_at_k",
    "precision_recall_curve",
    "psndcg_at_k",
    "psp_at_k",
    "ranking_loss",
    "recall_at_k",
    "reciprocal_rank",
    "reciprocal_rank_all",
    "regression_error_at_k",
    "rmse",
    "sign_test",
    "significance",
    "significance_mark",
    "subset_accuracy",
    "tau_at_k",
    "unbiased",
    "unbiased_per_row",
    "wilcoxon_macro_f1",
    "wilcoxon_rows",
    "wn_at_k",
    "wp_at_k",
    "wp_regret_at_k",
    "wp_rerank_at_k",
    "xmad_at_k",
    "xreg_zero",
    "xrmse_at_k",
]
