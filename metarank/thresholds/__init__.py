"""From ranked lists to label sets: calibrated probabilities and learned cuts."""

from metarank.thresholds.calibration import Calibrator
from metarank.thresholds.learned_cuts import THRESHOLDS, LearnedCuts
from metarank.thresholds.learner import ThresholdLearner
from metarank.thresholds.set_metrics import METRICS, check_metric

__all__ = ["METRICS", "THRESHOLDS", "Calibrator", "LearnedCuts", "ThresholdLearner", "check_metric"]
