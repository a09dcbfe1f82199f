"""The precision-recall figure, where matplotlib is there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from ablations import xreg_zero

from metarank import Candidates
from metarank.metrics import precision_recall_curve

COLOURS = {"XReg": "#2f6db5", "Parabel": "#d1603d", "XReg-zero": "#9aa5b1"}
_POINTS = 400  # drawn of a curve


def draw_curves(panels: dict[str, tuple[object, dict[str, Candidates]]], path: Path) -> Path | None:
    """One panel a set, one curve a system, in an SVG file; None without matplotlib or predictions.

    Parameters
    ----------
    panels : dict of name to (Y_test, dict of system to predictions)
    """
    try:
        import matplotlib
    except ImportError:
        return None
    if not panels:
        return None
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    matplotlib.rcParams["svg.hashsalt"] = "metarank"  # the same picture in the same bytes
    figure, axes = plt.subplots(1, len(panels), figsize=(4 * len(panels), 3.6), layout="constrained")
    for axis, (name, (Y_test, systems)) in zip(np.atleast_1d(axes), panels.items()):
        for system, found in systems.items():
            precision, recall, thresholds = precision_recall_curve(Y_test, found)
            listed = np.flatnonzero(np.isfinite(thresholds))
            drawn = listed[:: max(1, len(listed) // _POINTS)]
            axis.plot(recall[drawn], precision[drawn], label=system, color=COLOURS[system])
        axis.set(title=name, xlabel="recall", ylabel="precision")
    np.atleast_1d(axes)[0].legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path


def with_zero(systems: dict[str, Candidates]) -> dict[str, Candidates]:
    """The same, and XReg's ranking with all relevances almost 0."""
    return {**systems, "XReg-zero": xreg_zero(systems["XReg"])} if "XReg" in systems else systems
