"""Do guaranteed sets keep their promise, and how large are they beside MAPIE's?

python experiments/guarantees/run.py [--sets emotions] [--splits 100]

MAPIE is no part of the set-up: `pip install --no-deps mapie==1.6.0` first. Without it the page would lose its
columns, and is a part.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import platform
import sys
import time
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import numpy as np
import scipy.sparse as sp
from sklearn.linear_model import LogisticRegression
from sklearn.preprocessing import StandardScaler

sys.path.append(str(Path(__file__).resolve().parent.parent))
from whole_page import WholePage, add_options

import metarank
from metarank import ThresholdLearner, data
from metarank._util.elementary import log_odds
from metarank.thresholds.guarantees import Guarantees, Wish, attained, parse_wish
from metarank.thresholds.lists import ScoredLists
from metarank.types.candidates import Candidates

_HERE = Path(__file__).parent
SETS = ("emotions", "scene", "yeast", "birds", "medical", "reuters90")
WISHES = ("recall>=0.9", "recall>=0.9 on average", "precision>=0.7", "precision>=0.8")
CONFIDENCE = 0.9
_MOST_TRAINING, _MOST_SCORED, _MOST_CALIBRATION = 1500, 1000, 200
# What becomes of a split: value attained, mean size of a set; None where nothing is promised.
Outcome = tuple[float, float] | None
Results = dict[tuple[str, str, str], list[Outcome]]


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--sets", default=",".join(SETS))
    parser.add_argument("--splits", type=int, default=100)
    add_options(parser, _HERE / "results.md")
    options = parser.parse_args(arguments)
    page = WholePage(options, parser, narrowed_by=("sets", "splits"))
    started = time.process_time()
    results: Results = {}
    digest = hashlib.sha256()
    for name in options.sets.split(","):
        probabilities, Y = scored_rows(name, digest)
        study(name, probabilities, Y, options.splits, results)
        print(name, f"{time.process_time() - started:.0f} CPU s", file=sys.stderr, flush=True)
    minutes = (time.process_time() - started) / 60
    page.write(written(results, options.splits, digest.hexdigest()[:16], minutes))
    return 0


# --- data ---------------------------------------------------------------------------


def scored_rows(name: str, digest: Any) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities (n, L) of rows that one logistic regression a label has not seen, and their relevance."""
    parts = [data.load_named(name, part) for part in ("train", "test")]
    X = sp.vstack([sp.csr_matrix(part.X) for part in parts]).tocsr()
    Y = np.vstack([part.Y.toarray() > 0 for part in parts])
    digest.update(X.data.tobytes() + X.indices.tobytes() + Y.tobytes())
    order = np.random.default_rng(0).permutation(len(Y))
    n = min(len(Y) // 4, _MOST_TRAINING)
    seen, new = order[:n], order[n : n + _MOST_SCORED]
    if X.shape[1] < 400:
        X = X.toarray()
        X = StandardScaler().fit(X[seen]).transform(X)
    model = LogisticRegression(C=1.0 if sp.issparse(X) else 0.1, solver="liblinear", max_iter=300)
    out = np.empty((len(new), Y.shape[1]))
    for label, y in enumerate(Y[seen].T):
        out[:, label] = (
            y.mean() if y.all() or not y.any() else model.fit(X[seen], y).predict_proba(X[new])[:, 1]
        )
    return np.clip(out, 1e-9, 1 - 1e-9), Y[new]


def split(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Rows to calibrate on, and all others."""
    order = np.random.default_rng(seed).permutation(n)
    size = min(n // 3, _MOST_CALIBRATION)
    return order[:size], order[size:]


# --- the systems --------------------------------------------------------------------


def study(name: str, p: np.ndarray, Y: np.ndarray, splits: int, results: Results) -> None:
    """All promises by all systems, on the same splits."""
    makers = {
        "MAPIE": np.arange(0, 1, 0.01),
        "MAPIE, fine grid": 1 / (1 + np.exp(-np.arange(-280, 121) / 20)),
    }
    peers = {label: Mapie(p, Y, grid) for label, grid in makers.items()} if find_spec("mapie") else {}
    for seed in range(splits):
        own, others = split(len(Y), seed)
        ours = metarank_sets(p, Y, own, others)
        for text in WISHES:
            wish = parse_wish(text.removesuffix(" on average"))
            assert wish is not None
            sure = "average" not in text
            found = {"metarank": ours(wish, sure)}
            for label, peer in peers.items():
                if label == "MAPIE" or wish.of == "recall":
                    found[label] = peer.sets(wish, own, others, sure)
            for label, kept in found.items():
                outcome = None if kept is None else judged(wish, kept, Y[others])
                results.setdefault((text, name, label), []).append(outcome)


def metarank_sets(
    p: np.ndarray, Y: np.ndarray, own: np.ndarray, others: np.ndarray
) -> Callable[[Wish, bool], np.ndarray | None]:
    """The sets of other rows by wish and by whether it is sure; None where nothing can be promised."""
    S, n_labels = log_odds(p), Y.shape[1]
    learner = ThresholdLearner("global", confidence=CONFIDENCE).fit(S[own], Y[own])
    sure = learner.learned_.guarantees_
    pairs = Candidates.all_labels(len(own), n_labels)
    known = ScoredLists(pairs, learner.calibrator_.cross_fitted_, Y[own].ravel())
    on_average = Guarantees(None).fit(known, np.zeros(len(own), np.int64))
    # What `predict` does, with the calibrated log-odds computed once.
    pairs = Candidates.all_labels(len(others), n_labels)
    lists = ScoredLists(pairs, learner.calibrator_.logits(pairs, S[others].ravel()))

    def sets(wish: Wish, is_sure: bool) -> np.ndarray | None:
        promises = sure if is_sure else on_average
        assert promises is not None
        if wish.level > promises.best(wish.of):
            return None
        return promises.keep(lists, wish).reshape(len(others), n_labels)

    return sets


class Mapie:
    """MAPIE's controllers. What `compute_risks` finds row by row is the same in all splits: it is computed
    once, here without its loops in Python, and compared with it on a few rows.

    Rows without a relevant label, which MAPIE refuses, are left out of its calibration.
    """

    def __init__(self, p: np.ndarray, Y: np.ndarray, grid: np.ndarray) -> None:
        from mapie.risk_control import MultiLabelClassificationController

        self.make, self.grid, self.p = MultiLabelClassificationController, grid, p
        self.counts = Y.any(axis=1)
        kept = np.stack([(p > cut).sum(axis=1) for cut in grid], axis=1)
        hits = np.stack([((p > cut) & Y).sum(axis=1) for cut in grid], axis=1)
        relevant = np.maximum(1, Y.sum(axis=1, keepdims=True))
        self.risks = {"recall": 1 - hits / relevant, "precision": 1 - hits / np.maximum(1, kept)}
        few = np.flatnonzero(self.counts)[:5]
        for of, risks in self.risks.items():
            controller = self._controller(Wish(of, 0.9), True)
            np.testing.assert_allclose(
                controller.compute_risks(p[few], Y[few].astype(int))._risks, risks[few]
            )

    def _controller(self, wish: Wish, is_sure: bool) -> Any:
        method = "ltt" if wish.of == "precision" else "rcps" if is_sure else "crc"
        return self.make(
            lambda X: X,
            risk=wish.of,
            method=method,
            target_level=wish.level,
            confidence_level=CONFIDENCE if is_sure else None,
            rcps_bound="wsr" if method == "rcps" else None,
            predict_params=self.grid,
        )

    def sets(self, wish: Wish, own: np.ndarray, others: np.ndarray, is_sure: bool) -> np.ndarray | None:
        controller = self._controller(wish, is_sure)
        controller._risks = self.risks[wish.of][own[self.counts[own]]]
        try:
            controller.compute_best_predict_param()
        except ValueError:
            return None
        cut = float(controller.best_predict_param[0])
        return self.p[others] > cut if np.isfinite(cut) else None


def judged(wish: Wish, kept: np.ndarray, Y: np.ndarray) -> Outcome:
    """What sets attain, and their mean size; sets of which all are empty promise nothing."""
    if not kept.any():
        return None
    return attained(wish, sp.csr_matrix(kept), sp.csr_matrix(Y)), float(kept.sum(axis=1).mean())


# --- the page -----------------------------------------------------------------------


def written(results: Results, splits: int, digest: str, minutes: float) -> str:
    versions = f"Python {platform.python_version()}, NumPy {np.__version__}, metarank {metarank.__version__}"
    if find_spec("mapie"):
        import mapie

        versions += f", MAPIE {mapie.__version__}"
    lines = [_HEAD.format(splits=splits, versions=versions, digest=digest, minutes=minutes)]
    systems = list(dict.fromkeys(system for _, _, system in results))
    for text in dict.fromkeys(text for text, _, _ in results):
        lines += ["", f"## {text}", ""]
        lines += table({key[1:]: value for key, value in results.items() if key[0] == text}, systems, text)
    return "\n".join(lines) + "\n"


def table(found: dict[tuple[str, str], list[Outcome]], systems: list[str], text: str) -> list[str]:
    """One line a set and system."""
    wish = parse_wish(text.removesuffix(" on average"))
    assert wish is not None
    lines = [
        "| set | system | promised in | attained, mean | holds in | set size | size, share of MAPIE's |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    shares: dict[str, list[float]] = {}
    for (name, system), outcomes in found.items():
        made = [outcome for outcome in outcomes if outcome is not None]
        cells = [f"{100 * len(made) / len(outcomes):.0f} %", "-", "-", "-", "-"]
        if made:
            values, sizes = map(np.array, zip(*made))
            holds = 100 * np.mean(values >= wish.level)
            cells[1:4] = f"{100 * values.mean():.1f}", f"{holds:.0f} %", f"{sizes.mean():.2f}"
            both = [(a[1], b[1]) for a, b in zip(outcomes, found.get((name, "MAPIE"), [])) if a and b]
            if both and system != "MAPIE":
                own, peer = np.mean(both, axis=0)
                shares.setdefault(system, []).append(own / peer)
                cells[4] = f"{own / peer:.2f}"
        lines.append(f"| {name} | {system} | {' | '.join(cells)} |")
    for system in systems:
        if shares.get(system):
            mean = f"{np.mean(shares[system]):.2f}"
            lines.append(f"| mean of {len(shares[system])} sets | {system} | - | - | - | - | {mean} |")
    return lines


_HEAD = """# Guaranteed sets: promised, attained, and how large

Written by `python experiments/guarantees/run.py`; {versions}; {minutes:.0f} CPU minutes.
Features and labels: sha256 {digest}.

One logistic regression a label is trained on a quarter of the rows of a set (at most 1,500, seed 0). It
scores up to 1,000 others, which are split {splits} times at random: a third (at most 200) to calibrate
on, the rest to judge. All systems have the same scores and splits. *metarank* is `ThresholdLearner` with
confidence 0.9. *MAPIE* is its controller of recall (`method="rcps"`, bound "wsr") and of precision
("ltt"), with confidence 0.9 too and its own grid of cuts, 0 to .99 by .01; *fine grid* has 71 cuts
in log-odds, -12 to 2, for recall alone. "On average" is the weaker promise of conformal risk control
(`confidence=None`; MAPIE's "crc").

*Promised in*: the share of splits in which a promise can be made; in the others metarank raises an error
that names the best that can be had, and MAPIE finds no cut. *Holds in*: the share of these splits whose
judged rows attain the promise, times 100. Judged rows are few, and their mean scatters too: a promise
that holds for expectations in 90 % of draws may hold for them in somewhat less. Recall and precision are
means over rows, times 100; rows without a relevant label, or without a kept one, do not count. MAPIE
counts precision 0 where nothing is kept. What is promised in few splits is promised where the draw was
lucky, and holds in fewer of them: the confidence bounds the broken promises among all splits. Sizes are
labels kept a row, for recall the fewer the better, for precision the more; shares are over the splits in
which both promise."""

if __name__ == "__main__":
    sys.exit(main())
