"""`ParetoFront`: the metrics that each model of a sweep attains, and which models are best."""

from __future__ import annotations

import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from metarank._util.files import whole_file
from metarank._util.tables import frame_of, plain_table
from metarank.objectives.bitmap import write_bitmap
from metarank.objectives.front import hypervolume, knee, non_dominated
from metarank.objectives.front_drawing import draw_front
from metarank.objectives.multi_objective import MultiObjectiveRanker


@dataclass(frozen=True, eq=False)
class ParetoFront:
    """Result of `pareto_front`: a point for each model, a coordinate for each objective, on held-out rows.

    Attributes
    ----------
    objective_names : list of str
        K of them.
    metric : "auc" or "ndcg@10"
    weights : float64 array (m, K)
        Weights of each point, summing to 1.
    aggregation : list of str (m)
        The method of each point.
    points : float64 array (m, K)
        The metric of each objective; greater is better.
    models : list of MultiObjectiveRanker (m)
        Fitted, one a point. Those of a plug-in method share their probability models.
    alone : dict of str to MultiObjectiveRanker
        For each objective the model trained on it alone.
    alone_points : float64 array (K, K)
        Metrics of these models: row j is the model of objective j.
    reference : float64 array (K,)
        The corner from which volumes are measured.
    n_rows, n_queries : int
        Rows and queries of the measurement; n_queries is 0 without queries.
    """

    objective_names: list[str]
    metric: str
    weights: NDArray[np.float64]
    aggregation: list[str]
    points: NDArray[np.float64]
    models: list[MultiObjectiveRanker]
    alone: dict[str, MultiObjectiveRanker]
    alone_points: NDArray[np.float64]
    reference: NDArray[np.float64]
    n_rows: int
    n_queries: int

    @cached_property
    def on_front(self) -> NDArray[np.bool_]:
        """bool array (m,): the points that no other point dominates."""
        return non_dominated(self.points)

    @cached_property
    def knee(self) -> int:
        """Index of the knee, where a gain in one objective begins to cost most; see `objectives.knee`."""
        return knee(self.points)

    @cached_property
    def hypervolume(self) -> float:
        """Hypervolume of all points above the reference."""
        return hypervolume(self.points, self.reference)

    @cached_property
    def hypervolumes(self) -> dict[str, float]:
        """Hypervolume of the points of each method."""
        of = np.array(self.aggregation)
        return {
            method: hypervolume(self.points[of == method], self.reference)
            for method in dict.fromkeys(self.aggregation)
        }

    def to_dict(self) -> dict[str, Any]:
        """Plain lists, numbers and texts, ready for JSON, without the models."""
        return {
            "objectives": list(self.objective_names),
            "metric": self.metric,
            "n_rows": self.n_rows,
            "n_queries": self.n_queries,
            "reference": self.reference.tolist(),
            "hypervolume": self.hypervolume,
            "hypervolumes": dict(self.hypervolumes),
            "knee": self.knee,
            "points": [
                {
                    "aggregation": method,
                    "weights": weights.tolist(),
                    "values": values.tolist(),
                    "on_front": bool(on_front),
                }
                for method, weights, values, on_front in zip(
                    self.aggregation, self.weights, self.points, self.on_front
                )
            ],
            "alone": {name: values.tolist() for name, values in zip(self.objective_names, self.alone_points)},
        }

    def __str__(self) -> str:
        names = self.objective_names
        metric = {"auc": "AUC", "ndcg@10": "nDCG@10"}[self.metric]
        rows = [
            [
                self.aggregation[i] + (" (knee)" if i == self.knee else ""),
                *(f"{w:.3g}" for w in self.weights[i]),
                *(f"{value:.4f}" for value in self.points[i]),
            ]
            for i in self.front_order()
        ]
        rows += [
            [f"{name} alone", *("" for _ in names), *(f"{value:.4f}" for value in values)]
            for name, values in zip(names, self.alone_points)
        ]
        head = ["on the front", *(f"w {name}" for name in names), *(f"{metric} {name}" for name in names)]
        volumes = [
            [method, str(self.aggregation.count(method)), f"{volume:.6f}"]
            for method, volume in self.hypervolumes.items()
        ]
        if len(volumes) > 1:
            volumes.append(["all", str(len(self.points)), f"{self.hypervolume:.6f}"])
        where = f"{self.n_rows:,} held-out rows" + (f", {self.n_queries:,} queries" if self.n_queries else "")
        corner = ", ".join(f"{value:g}" for value in self.reference)
        return "\n".join(
            [
                f"{len(self.points)} points, {self.on_front.sum()} on the front; {metric} on {where}",
                "",
                plain_table(head, rows),
                "",
                plain_table(["method", "points", f"hypervolume above ({corner})"], volumes),
            ]
        )

    def front_order(self) -> np.ndarray:
        """int array: the points on the front, by descending first objective, then the second, and so on."""
        on_front = np.flatnonzero(self.on_front)
        return on_front[np.lexsort(-self.points[on_front].T[::-1])]

    def to_frame(self) -> Any:
        """One record a point, in the order of `points`: aggregation, "weight NAME" and "METRIC NAME" of each
        objective, on_front, knee.

        Returns
        -------
        pandas.DataFrame, or a dict of the columns as arrays where pandas is not installed.
        """
        names = self.objective_names
        return frame_of(
            {"aggregation": np.array(self.aggregation, dtype=object)}
            | {f"weight {name}": of for name, of in zip(names, self.weights.T)}
            | {f"{self.metric} {name}": of for name, of in zip(names, self.points.T)}
            | {"on_front": self.on_front, "knee": np.arange(len(self.points)) == self.knee}
        )

    def _repr_svg_(self) -> str:
        """For notebooks: the picture."""
        return self.to_svg()

    def to_svg(self) -> str:
        """The picture as one `<svg>` element.

        Two objectives: a point a model, the front as a line. More: parallel coordinates, a line a model. The
        knee and the models of one objective alone are marked and named.
        """
        return draw_front(self)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write the picture to a file, whole or not at all; the ending decides the format.

        Parameters
        ----------
        path : path
            ``.svg``: as `to_svg`. ``.png``, ``.pdf``: by matplotlib (extra ``plot``).

        Raises
        ------
        ValueError
            If the name has another ending.
        ImportError
            If matplotlib is asked for and missing.
        OSError
            If the file cannot be written.
        """
        kind = Path(path).suffix.lower()
        if kind not in (".svg", ".png", ".pdf"):
            raise ValueError(f"path must end in .svg, .png or .pdf, got {os.fspath(path)!r}")
        if kind == ".svg":
            with whole_file(path) as f:
                f.write(self.to_svg() + "\n")
            return
        with whole_file(path, "wb") as f:
            write_bitmap(self, f, kind[1:])
