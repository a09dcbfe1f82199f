"""From ranked lists to label sets: calibrated probabilities and learned cuts."""

from metarank.thresholds.calibration import Calibrator
from metarank.thresholds.learner import THRESHOLDS, ThresholdLearner
from metarank.thresholds.set_metrics import METRICS, check_metric

__all__ = ["METRICS", "THRESHOLDS", "Calibrator", "ThresholdLearner", "check_metric"]
