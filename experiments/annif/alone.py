"""metarank without Annif: a model of the training records, asked for the test records.

python alone.py LABELS TRAIN TEST LANGUAGE OUT.npz
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from metarank import MetaRanker
from metarank.types.label_descriptions import LabelDescriptions

LIMIT = 100


def records(path: str) -> tuple[list[str], list[list[str]]]:
    """Texts, and the subjects of each."""
    with open(path, encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t") for line in file]
    return [text for text, _ in pairs], [[uri.strip("<>") for uri in of.split()] for _, of in pairs]


def main(labels: str, train: str, test: str, language: str, out: str) -> None:
    with open(labels, encoding="utf-8") as file:
        table = LabelDescriptions(**json.load(file))
    texts, subjects = records(train)
    model = MetaRanker(language=language, n_jobs=1, random_state=0).fit(texts, subjects, labels=table)
    trained = time.process_time()
    asked, _ = records(test)
    before = time.process_time()
    ranking = model.rank(asked, k=LIMIT)
    suggested = time.process_time() - before
    np.savez_compressed(out, labels=ranking.labels, scores=ranking.scores, uris=np.array(table.ids))
    print(json.dumps({"train CPU s": trained, "CPU s": suggested, "choices": model.choices_}))


if __name__ == "__main__":
    main(*sys.argv[1:])
