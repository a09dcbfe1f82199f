"""Figure 4: HelpSteer, coherence beside each other rating; run where the data is."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path

import numpy as np
from chapter import Chapter, Settings, checksum, present, table
from ranking_files import opened
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from metarank import MultiObjectiveRanker
from metarank.objectives import diff_auc

FIRST = "coherence"
OTHERS = ("helpfulness", "correctness", "complexity", "verbosity")
GREATEST = 4
_OBJECTIVES = ("label", "loss")
_DIMENSIONS = 100
_QUICK_LINES = 1000


def load(data: Path, part: str, most: int | None = None) -> tuple[list[str], dict[str, np.ndarray], Path]:
    """Prompt and response of each line of `text/helpsteer/PART.jsonl` as one text, and the labels by name.

    A label says whether the rating is the greatest there is, 4.
    """
    path = present(data / "text" / "helpsteer" / f"{part}.jsonl")
    with opened(path) as lines:
        records = [json.loads(line) for line in islice(lines, most) if line.strip()]
    texts = [f"{record['prompt']}\n{record['response']}" for record in records]
    labels = {
        name: np.array([float(record[name] == GREATEST) for record in records]) for name in (FIRST, *OTHERS)
    }
    return texts, labels, path


def features(train: list[str], test: list[str], seed: int) -> tuple[np.ndarray, np.ndarray]:
    """TF-IDF of words, its leading dimensions, and the logarithm of the length."""
    vectorizer = TfidfVectorizer(sublinear_tf=True, min_df=2 if len(train) > 1000 else 1, max_features=50_000)
    words = vectorizer.fit_transform(train)
    n_dimensions = min(_DIMENSIONS, words.shape[1] - 1)
    reduced = TruncatedSVD(n_dimensions, random_state=seed).fit(words)
    return tuple(
        np.column_stack([reduced.transform(matrix), np.log1p([len(text) for text in texts])])
        for matrix, texts in ((words, train), (vectorizer.transform(test), test))
    )


def chapter(settings: Settings) -> Chapter:
    most = _QUICK_LINES if settings.quick else None
    texts, labels, train = load(settings.data, "train", most)
    test_texts, test_labels, test = load(settings.data, "validation", most)
    X, X_test = features(texts, test_texts, settings.seed)
    out = Chapter("HelpSteer (Figure 4)", inputs=[checksum(train), checksum(test)])
    rows = []
    for other in OTHERS:
        Y, Y_test = (np.column_stack([of[FIRST], of[other]]) for of in (labels, test_labels))
        gaps = {}
        for how in _OBJECTIVES:
            ranker = MultiObjectiveRanker(how, "linear", metric="auc")
            gaps[how] = diff_auc(ranker.fit(X, Y).predict(X_test), Y_test)
        rows.append([other, f"{Y[:, 1].mean():.3f}", *(f"{gaps[how]:.3f}" for how in _OBJECTIVES)])
        out.claim(
            f"{FIRST} and {other}: Diff AUC smaller for label aggregation", gaps["label"] < gaps["loss"]
        )
    out.text = (
        f"A linear model of {X.shape[1]} features of prompt and response, {len(texts):,} rows to train and "
        f"{len(test_texts):,} to test; the first label is {FIRST}, {labels[FIRST].mean():.3f} of which are "
        "positive.\n\n" + table(["second label", "share", "Diff AUC, label", "Diff AUC, loss"], rows)
    )
    return out
