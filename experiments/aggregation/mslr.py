"""Table 4: MSLR-WEB30K, relevance and clicks; run where the data is."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from chapter import Chapter, Settings, checksum, present, table
from ranking_files import read

from metarank import MultiObjectiveRanker
from metarank.objectives import per_label_auc

PAPER = json.loads((Path(__file__).parent / "paper.json").read_text())["table 4"]
N_FEATURES = 136
# Query-URL click count, from 1.
CLICKS = 134
OBJECTIVES = tuple(PAPER)
_AGGREGATION = {"label aggregation": "label", "loss aggregation": "loss"}
PARAMETERS = {"metric": "auc", "n_rounds": 100}
_QUICK = {"n_rounds": 5}
_QUICK_LINES = 20_000


def load(data: Path, part: str, most: int | None = None) -> tuple[np.ndarray, np.ndarray, Path]:
    """X (n, 135) without the click count, Y (n, 2), and the file, of `ltr/mslr_web30k/Fold1/PART.txt`.

    The first label is whether the page was ever clicked for the query, the second whether its grade is
    above 0: AUC is of binary labels in the paper.
    """
    path = present(data / "ltr" / "mslr_web30k" / "Fold1" / f"{part}.txt")
    X, grades, _ = read(path, N_FEATURES, most)
    Y = np.column_stack([X[:, CLICKS - 1] > 0, grades > 0]).astype(float)
    return np.delete(X, CLICKS - 1, axis=1), Y, path


def chapter(settings: Settings) -> Chapter:
    most = _QUICK_LINES if settings.quick else None
    X, Y, train = load(settings.data, "train", most)
    X_test, Y_test, test = load(settings.data, "test", most)
    parameters = PARAMETERS | (_QUICK if settings.quick else {})
    out = Chapter("MSLR-WEB30K (Table 4)", inputs=[checksum(train), checksum(test)])
    rows, least = [], {}
    for i, name in enumerate(OBJECTIVES):
        targets = Y if name in _AGGREGATION else Y[:, [i]]
        ranker = MultiObjectiveRanker(_AGGREGATION.get(name, "label"), **parameters)
        areas = per_label_auc(ranker.fit(X, targets).predict(X_test), Y_test)
        least[name] = areas.min()
        rows.append([name, *(f"{v:.3f}" for v in (*areas, abs(areas[0] - areas[1]), areas.min()))])
        rows.append(["*paper*", *(f"*{value:.2f}*" for value in PAPER[name])])
    out.claim(
        "Min AUC of label aggregation at least loss aggregation's",
        least["label aggregation"] >= least["loss aggregation"],
    )
    out.text = (
        f"Fold 1, {len(X):,} training and {len(X_test):,} test rows, feature {CLICKS} (clicks of query and "
        "page) taken "
        "out of the features; boosted trees where the paper has a perceptron; a click is a count above 0, "
        "relevance a "
        "grade above 0.\n\n" + table(["objective", "AUC click", "AUC relevance", "Diff AUC", "Min AUC"], rows)
    )
    return out
