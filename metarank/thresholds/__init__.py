"""From ranked lists to label sets: calibrated probabilities and learned thresholds."""

from metarank.thresholds.calibration import Calibrator
from metarank.thresholds.learned_thresholds import THRESHOLDS, LearnedThresholds
from metarank.thresholds.learner import ThresholdLearner
from metarank.thresholds.set_metrics import METRICS, check_metric

__all__ = ["METRICS", "THRESHOLDS", "Calibrator", "LearnedThresholds", "ThresholdLearner", "check_metric"]
