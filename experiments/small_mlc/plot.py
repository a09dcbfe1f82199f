"""Fig. 2 as a picture, where matplotlib is there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from tables import Results, figure2_values


def draw_figure2(results: Results, path: Path) -> Path | None:
    """Bars of the averages of `figure2_values` in an SVG file; None without matplotlib or results."""
    try:
        import matplotlib
    except ImportError:
        return None
    matplotlib.use("svg")
    import matplotlib.pyplot as plt

    sets, values = figure2_values(results)
    if not sets:
        return None
    matplotlib.rcParams["svg.hashsalt"] = "metarank"  # the same picture in the same bytes
    figure, axes = plt.subplots(2, 1, figsize=(8, 6), layout="constrained")
    places = np.arange(len(values))
    for axis, title, column in zip(axes, ("Micro-F1", "MAP"), (0, 1)):
        original = [v[column][0] if len(v[column]) == 2 else np.nan for v in values.values()]
        meta = [v[column][-1] for v in values.values()]
        axis.bar(places - 0.2, original, 0.4, label="original features", color="#9aa5b1")
        axis.bar(places + 0.2, meta, 0.4, label="meta-features", color="#2f6db5")
        axis.set_xticks(places, list(values), rotation=20, ha="right", fontsize=8)
        axis.set_ylabel(title)
        if np.isfinite(meta).any():
            axis.set_ylim(bottom=max(0.0, float(np.nanmin(original + meta)) - 0.05))
    axes[0].legend(fontsize=8)
    figure.savefig(path, metadata={"Date": None})
    plt.close(figure)
    return path
