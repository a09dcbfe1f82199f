"""MQ2008: relevance, and a second target drawn from what the page looks like."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from chapter import Chapter, Settings, checksum, present, table, with_error
from scipy.special import expit
from sklearn.datasets import load_svmlight_file

from metarank import MultiObjectiveRanker
from metarank.data.compressed import read_bytes
from metarank.objectives import check_groups, diagnose
from metarank.objectives.watch import Metrics

N_FEATURES = 46
NAMES = ["relevance", "engagement"]
LABEL, LOSS = "label aggregation", "loss aggregation"
OBJECTIVES = ("relevance alone", "engagement alone", LABEL, LOSS)
_AGGREGATION = {LABEL: "label", LOSS: "loss"}
TREES = {"num_leaves": 7, "min_data_in_leaf": 50}
PARAMETERS = {"n_rounds": 60, "params": TREES, "n_jobs": 1}
# PageRank, in-links, slashes in the address, length of the address, from 1 (LETOR 4.0).
_PAGERANK, _INLINKS, _SLASHES, _LENGTH = 41, 42, 44, 45
_SHIFT, _SLOPE, _RELEVANT = -2.2, 1.5, 0.5


def load(data: Path) -> tuple[list[tuple[np.ndarray, np.ndarray, np.ndarray]], list[Path]]:
    """(X, grades, query ids) of S1 to S5, and the files."""
    paths = [present(data / "ltr" / "mq2008" / f"S{i}.txt") for i in range(1, 6)]
    files = [io.BytesIO(read_bytes(path)) for path in paths]
    read = [load_svmlight_file(file, n_features=N_FEATURES, query_id=True) for file in files]
    return [(X.toarray().astype(np.float32), grades, queries) for X, grades, queries in read], paths


def engagement(X: np.ndarray, grades: np.ndarray, seed: int) -> np.ndarray:
    """A binary label that well-linked pages with short addresses have, relevant ones a little more often.

    P(1 | x) = sigmoid(-2.2 + 1.5 z + 0.5 [grade > 0]); z is the mean of PageRank, in-links, 1 - slashes and
    1 - length of the address (features 41, 42, 44, 45, scaled to [0, 1] within queries by LETOR), centred
    and divided by its standard deviation over all rows.
    """
    z = X[:, _PAGERANK - 1] + X[:, _INLINKS - 1] - X[:, _SLASHES - 1] - X[:, _LENGTH - 1]
    z = (z - z.mean()) / z.std()
    chance = expit(_SHIFT + _SLOPE * z.astype(float) + _RELEVANT * (grades > 0))
    return (np.random.default_rng([seed, 8]).random(len(X)) < chance).astype(float)


def chapter(settings: Settings) -> Chapter:
    splits, paths = load(settings.data)
    ends = np.cumsum([len(grades) for _, grades, _ in splits])[:-1]
    X, grades, queries = (np.concatenate([split[i] for split in splits]) for i in range(3))
    clicks = engagement(X, grades, settings.seed)
    Y = np.column_stack([grades, clicks])
    parts = np.split(np.arange(len(X)), ends)
    found = {name: np.empty((5, 6)) for name in OBJECTIVES}
    for fold in range(1 if settings.quick else 5):
        train = np.concatenate([parts[(fold + i) % 5] for i in range(3)])
        test = parts[(fold + 4) % 5]
        scores = {}
        for name in OBJECTIVES:
            targets = Y[train] if name in _AGGREGATION else Y[train][:, [OBJECTIVES.index(name)]]
            ranker = MultiObjectiveRanker(_AGGREGATION.get(name, "label"), metric="ndcg", **PARAMETERS)
            scores[name] = ranker.fit(X[train], targets, qid=queries[train]).predict(X[test])
        grouping = check_groups(len(test), qid=queries[test])
        metrics = Metrics(Y[test], grouping, NAMES, label_gain="linear")
        for name, values in scores.items():
            areas, gains = metrics.measure(values).T
            found[name][fold] = [*gains, abs(gains[0] - gains[1]), *areas, abs(areas[0] - areas[1])]
    if settings.quick:
        found = {name: values[:1].repeat(5, axis=0) for name, values in found.items()}

    out = Chapter("MQ2008 with a semi-synthetic second target", inputs=[checksum(path) for path in paths])
    mean = {name: values.mean(axis=0) for name, values in found.items()}
    for k, name in enumerate(NAMES):
        best = max(OBJECTIVES, key=lambda how: mean[how][k])
        out.claim(f"nDCG@10 of {name} is greatest where it alone is trained", best == f"{name} alone")
    for how in (LABEL, LOSS):
        worst = [min(mean[name][:2]) for name in OBJECTIVES[:2]]
        out.claim(
            f"{how}: the least nDCG@10 {min(mean[how][:2]):.3f} above that of either label alone "
            f"({worst[0]:.3f}, {worst[1]:.3f})",
            min(mean[how][:2]) > max(worst),
        )
    head = [*(f"nDCG@10 {name}" for name in NAMES), "Diff", *(f"AUC {name}" for name in NAMES), "Diff"]
    rows = [[name, *(with_error(column) for column in found[name].T)] for name in OBJECTIVES]
    out.text = (
        f"{len(X):,} documents of {len(np.unique(queries))} queries, the five folds of LETOR (three parts to "
        "train, one "
        "to test, the validation part unused), LambdaRank on the aggregated label or the sum of both "
        "LambdaRank "
        f"losses, {PARAMETERS['n_rounds']} rounds of {TREES['num_leaves']} leaves, none of it tuned. "
        "The second "
        f"target is made: {_told(engagement.__doc__)} It is drawn once, from the seed. Means over folds ± "
        "standard "
        "error; AUC within queries.\n\n"
        + table(["objective", *head], rows)
        + "\n\nWhat `diagnose` says of the targets before any training:\n\n```\n"
        + str(diagnose(dict(zip(NAMES, Y.T)), qid=queries))
        + "\n```"
    )
    return out


def _told(doc: str | None) -> str:
    return " ".join((doc or "").split()).rstrip()
