"""metarank without Annif: a model of the training records, asked for the test records.

python alone.py VOCABULARY TRAIN TEST LANGUAGE OUT.npz
"""

from __future__ import annotations

import json
import sys
import time

import numpy as np
import scipy.sparse as sp

from metarank import MetaRanker

LIMIT = 100


def rows(path: str) -> tuple[list[str], list[list[str]]]:
    with open(path, encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t") for line in file]
    return [text for text, _ in pairs], [[u.strip("<>") for u in of.split()] for _, of in pairs]


def main(vocabulary: str, train: str, test: str, language: str, out: str) -> None:
    with open(vocabulary, encoding="utf-8") as file:
        pairs = [line.rstrip("\n").split("\t") for line in file]
    uris = [uri.strip("<>") for uri, _ in pairs]
    place = {uri: i for i, uri in enumerate(uris)}
    names = [
        "" if name == uri.rsplit("/", 1)[-1] else name for uri, (_, name) in zip(uris, pairs, strict=True)
    ]
    texts, subjects = rows(train)
    at = [sorted({place[uri] for uri in of}) for of in subjects]
    indptr = np.concatenate([[0], np.cumsum([len(of) for of in at])])
    indices = np.concatenate(at)
    Y = sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(texts), len(uris)))
    model = MetaRanker(label_text=names, language=language, n_jobs=1, random_state=0).fit(texts, Y)
    trained = time.process_time()
    asked, _ = rows(test)
    before = time.process_time()
    ranking = model.rank(asked, k=LIMIT)
    suggested = time.process_time() - before
    np.savez_compressed(out, labels=ranking.labels, scores=ranking.scores, uris=np.array(uris))
    print(json.dumps({"train CPU s": trained, "CPU s": suggested, "choices": model.choices_}))


if __name__ == "__main__":
    main(*sys.argv[1:])
