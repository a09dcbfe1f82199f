"""A model of time, memory and network at sizes that were not run, from runs of several sizes.

Each quantity is a power law of the number of rows, ``a n^b``, fitted on the logarithms of what was
measured with one worker; labels and features grow with the rows, as in the runs. The ranker learns from a
bounded number of rows, and what is asked for them is counted by such a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Cluster:
    """What is asked about.

    Parameters
    ----------
    nodes, cores : int
        Machines, and cores of each.
    memory : int
        Bytes of a machine.
    bandwidth : float
        Bytes a second into one machine.
    efficiency : float
        Share of a core's work that is left where all cores of a machine work on one task.
    """

    nodes: int = 32
    cores: int = 32
    memory: int = 512 * 2**30
    bandwidth: float = 1.25e9
    efficiency: float = 0.6


@dataclass(frozen=True)
class Law:
    """``factor * n ** exponent``."""

    factor: float
    exponent: float

    @classmethod
    def fitted(cls, sizes: Sequence[float], values: Sequence[float]) -> Law:
        """By least squares on the logarithms.

        Examples
        --------
        >>> law = Law.fitted([1, 10, 100], [2, 20, 200])
        >>> round(law.exponent, 6), round(law(1000))
        (1.0, 2000)
        """
        logs = np.log(np.maximum(values, 1e-9))
        if len(set(sizes)) < 2:
            raise ValueError("sizes must hold at least two different ones")
        exponent, shift = np.polyfit(np.log(sizes), logs, 1)
        return cls(float(np.exp(shift)), float(exponent))

    def __call__(self, n: float) -> float:
        return float(self.factor * n**self.exponent)


# Rows that the ranker learns from where there are many: 2,000,000 pairs, of four or five shortlists of 50.
RANKED_ROWS = 10_000
# Kinds of tasks whose number is that of the fits, or of their blocks of trees, and those that are asked for
# each ranked row.
FITS, ASKED = ("fit_without_fold", "fit_on_all", "fit_trees"), ("propose", "describe", "rank")


def laws(runs: Sequence[dict[str, Any]]) -> dict[str, Law]:
    """CPU seconds of a fit or a block of trees, of a ranked training row by kind of task and of the client,
    and of a row to be ranked; bytes of the training set and of the model.
    """
    runs = [run for run in runs if run["n_workers"] == 1]
    sizes = [run["n_rows"] for run in runs]

    fits = [kind for kind in FITS if all(kind in run["tasks"] for run in runs)]  # none of quick scorers alone
    values = {kind: [run["task_cpu_s"][kind] / run["tasks"][kind] for run in runs] for kind in fits}
    values |= {kind: [run["task_cpu_s"][kind] / run["ranked_rows"] for run in runs] for kind in ASKED}
    values["client"] = [run["client_cpu_s"] / run["ranked_rows"] for run in runs]
    values["row"] = [run["predict_cpu_s"] / run["test_rows"] for run in runs]
    values["data"] = [run["training_set_bytes"] for run in runs]
    values["model"] = [run["model_bytes"] for run in runs]
    return {name: Law.fitted(sizes, of_runs) for name, of_runs in values.items()}


def bounded_bytes(runs: Sequence[dict[str, Any]]) -> float:
    """Memory that does not grow with the rows: the ranker's table, LightGBM's copy, libraries at work."""
    return max(
        0.0,
        *(
            max(run["peak_bytes"]) - 2.0 * run["training_set_bytes"] - run["model_bytes"]
            for run in runs
            if run["n_workers"] == 1
        ),
    )


def forecast(runs: Sequence[dict[str, Any]], n_rows: int, cluster: Cluster) -> dict[str, float]:
    """Seconds of each stage, bytes of memory and network, for a fit of `n_rows` and a ranking of as many.

    One fit without a fold and one on all rows, each on a machine of its own, or each of their blocks of trees
    on one, side by side; proposing and describing are spread over all cores; the ranker works on one machine.
    The training set goes from the scheduler to one machine and from there to all others, along a tree of
    transfers. A worker holds the training set, an index of as many bytes, the model, and what is bounded.
    """
    found = laws(runs)
    one, all_cores = cluster.cores * cluster.efficiency, cluster.nodes * cluster.cores * cluster.efficiency
    asked = min(n_rows, RANKED_ROWS)
    seconds = {kind: found[kind](n_rows) / one if kind in found else 0.0 for kind in FITS}
    seconds |= {kind: asked * found[kind](n_rows) / all_cores for kind in ("propose", "describe")}
    # Neither the ranker nor the client looks at more than its rows, however many there are.
    seconds["rank"] = asked * found["rank"](max(run["n_rows"] for run in runs)) / one
    seconds["client"] = asked * found["client"](max(run["n_rows"] for run in runs))
    data, model = found["data"](n_rows), found["model"](n_rows)
    hops = 1 + np.ceil(np.log2(cluster.nodes))
    network = float((hops * data + 2 * model) / cluster.bandwidth)
    held_out = max(seconds["fit_without_fold"], seconds["fit_trees"]) + sum(seconds[kind] for kind in ASKED)
    on_all = max(seconds["fit_on_all"], seconds["fit_trees"])
    return {
        **{f"{kind}_s": value for kind, value in seconds.items()},
        "network_s": network,
        "fit_s": max(held_out + seconds["client"], on_all) + network,
        "rank_all_rows_s": found["row"](n_rows) * n_rows / all_cores,
        "memory_bytes": 2 * data + model + bounded_bytes(runs),
        "data_bytes": data,
        "model_bytes": model,
        "moved_bytes": cluster.nodes * data + 2 * model,
    }
