"""The public interface to plots by matplotlib (extra ``plot``); see `metarank.apps.plots`."""

from metarank.apps.plots import calibration, examination, front, measure, recall, recall_by_frequency

__all__ = ["calibration", "examination", "front", "measure", "recall", "recall_by_frequency"]
