"""metarank without Annif: a model of the training records, asked for the test records.

python alone.py VOCABULARY TRAIN TEST LANGUAGE OUT.npz
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np

from metarank import MetaRanker, data

LIMIT = 100


def main(vocabulary: str, train: str, test: str, language: str, out: str) -> None:
    # Subjects that the vocabulary lacks become labels without a name, and a warning tells so.
    records = data.read_corpus(train, data.read_vocabulary(vocabulary, language))
    model = MetaRanker(language=language, n_jobs=1, random_state=0).fit(records)
    trained = time.process_time()
    texts = data.read_corpus(test).texts
    before = time.process_time()
    ranking = model.rank(texts, k=LIMIT)
    suggested = time.process_time() - before
    uris = np.array(model.label_table_.ids)
    np.savez_compressed(out, labels=ranking.labels, scores=ranking.scores, uris=uris)
    print(json.dumps({"train CPU s": trained, "CPU s": suggested, "choices": model.choices_}))


if __name__ == "__main__":
    main(*sys.argv[1:])
