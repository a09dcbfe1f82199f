"""Section 5 on pydocs: a function that is named should name the other; how often does it?"""

from __future__ import annotations

from pathlib import Path

from borrowed import Figures
from curves_drawing import plot_propensities
from points import fit_propensity
from relations_estimates import propensities_from_symmetry

from metarank import data
from metarank.data.pydocs import own_labels


def estimate(figure: Path) -> Figures:
    """Propensities by symmetry, the curve fitted to them, drawn as Fig. 2."""
    dataset = data.load_pydocs()
    points = propensities_from_symmetry(dataset.Y, own_labels(dataset), min_pairs=1)
    fit = fit_propensity(points.counts, points.propensities, points.n_points, sample_weight=points.possible)
    figure.write_text(plot_propensities(points, fit) + "\n")
    bins = [(1, 1), (2, 3), (4, 7), (8, max(8, int(points.counts.max())))]
    rows = []
    for low, high in bins:
        inside = (points.counts >= low) & (points.counts <= high)
        if inside.any():
            found, possible = int(points.found[inside].sum()), int(points.possible[inside].sum())
            rows.append({"low": low, "high": high, "labels": int(inside.sum()), "found": found})
            rows[-1]["possible"] = possible
    return {"points": len(points), "n_points": points.n_points, "fit": fit._asdict(), "rows": rows}
