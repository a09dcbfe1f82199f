"""Medians over repetitions, and which of our settings dominates one of a peer."""

from __future__ import annotations

import statistics
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from accuracy import NAMES, TAIL
from settings import Setting

if TYPE_CHECKING:
    from runs import Figures, Run

Summary = dict[str, float]
ACCURACY = (*NAMES, TAIL)
COSTS = (
    "train_cpu_s", "read_cpu_s", "read_text_cpu_s", "batch_ms", "single_cpu_ms", "single_ms", "model_mib",
    "peak_mib", "yardstick_cpu_s",
)  # fmt: skip


@dataclass(frozen=True)
class Rule:
    """When one setting dominates another.

    `loss`: points that each metric may be lower; `share`: what part of the peer's cost is allowed.
    """

    loss: Mapping[str, float]
    share: Mapping[str, float]


RULES = {
    "tree": Rule(
        {"P@5": 0.0, "PSP@5": 0.0, "R@100": 0.0},
        {"train_cpu_s": 1 / 2, "batch_ms": 1 / 2, "single_cpu_ms": 1 / 3, "model_mib": 1, "peak_mib": 1},
    ),
    # The accuracy of one-vs-all at a fifth of its training time.
    "flat": Rule(dict.fromkeys(ACCURACY, 0.2), {"train_cpu_s": 1 / 5}),
}


@dataclass(frozen=True)
class Duel:
    """A peer's setting and the one of ours that dominates it, or comes nearest: `missing` says in what."""

    peer: Setting
    ours: Setting
    gain: dict[str, float]
    ratio: dict[str, float]
    missing: tuple[str, ...]


def medians(results: Sequence[tuple[Run, Figures]]) -> dict[Setting, Summary]:
    """By setting, in the order of the runs; runs that failed are left out."""
    runs: dict[Setting, list[Figures]] = defaultdict(list)
    for run, figures in results:
        if "failed" not in figures:
            runs[run.setting].append(figures)
    return {setting: _median(kept) for setting, kept in runs.items()}


def _median(runs: list[Figures]) -> Summary:
    costs = {name: statistics.median(r[name] for r in runs) for name in COSTS if name in runs[0]}
    values = {name: statistics.median(r["accuracy"][name] for r in runs) for name in ACCURACY}
    return {**costs, **values, "runs": len(runs)}


def duels(summaries: Mapping[Setting, Summary]) -> list[Duel]:
    """For every setting of a peer, the duel with the setting of ours that leaves least to be wished."""
    ours = {s: v for s, v in summaries.items() if s.system == "metarank"}
    peers = {s: v for s, v in summaries.items() if s.system != "metarank"}
    out = []
    for peer, theirs in peers.items():
        met = [_duel(peer, theirs, setting, values) for setting, values in ours.items()]
        if met:
            out.append(min(met, key=lambda duel: (len(duel.missing), _shortfall(duel))))
    return out


def _duel(peer: Setting, theirs: Summary, setting: Setting, values: Summary) -> Duel:
    rule = RULES[peer.kind]
    gain = {name: values[name] - theirs[name] for name in rule.loss}
    ratio = {name: values[name] / theirs[name] for name in rule.share}
    missing = [name for name, loss in rule.loss.items() if gain[name] < -loss]
    missing += [name for name, share in rule.share.items() if ratio[name] > share]
    return Duel(peer, setting, gain, ratio, tuple(missing))


def _shortfall(duel: Duel) -> float:
    """How much is missing in all: points of accuracy, and costs as multiples of what is allowed."""
    rule = RULES[duel.peer.kind]
    points = sum(max(0.0, -loss - duel.gain[name]) for name, loss in rule.loss.items())
    return points + sum(max(0.0, duel.ratio[name] / share - 1) for name, share in rule.share.items())
