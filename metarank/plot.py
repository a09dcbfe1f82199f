"""The public door to plots by matplotlib (extra ``plot``); see `metarank.apps.plots`."""

from metarank.apps.plots import (
    calibration,
    front,
    learning_curve,
    measure,
    precision,
    precision_recall,
    recall,
    recall_by_frequency,
)

__all__ = [
    "calibration",
    "front",
    "learning_curve",
    "measure",
    "precision",
    "precision_recall",
    "recall",
    "recall_by_frequency",
]
