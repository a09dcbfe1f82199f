"""A process of `test_isolation`: imports libraries in the order given, uses them, forks, uses them again.

Arguments: the order, commas between; a way to start a process, fork, spawn or forkserver; the seconds it
may take. Prints the digests of what was computed, here and there, which must be the same. With jobs=N for a
way it says when it is ready, and uses the libraries with so many threads once a line comes in; it ends when
there is no more to read.
"""

from __future__ import annotations

import faulthandler
import hashlib
import importlib
import multiprocessing
import signal
import sys

import numpy as np

LIBRARIES = ("faiss", "lightgbm", "metarank", "sklearn", "torch")


def use(n_jobs: int = 2) -> str:
    """A fit with threads of every library, a ranking, an explanation; the digest of their bytes."""
    from metarank import MetaRanker
    from metarank.data import make_multilabel
    from metarank.ranker.boosted_ranker import BoostedRanker
    from metarank.scorers.classical.forest import ExtraTrees
    from metarank.scorers.neighbors.voting import NeighborShortlister

    data = make_multilabel(80, n_features=8, n_labels=4, seed=0)
    votes = NeighborShortlister(ks=(5,), index="hnsw")
    model = MetaRanker(
        features=["neighbors", "rbf-ridge", ExtraTrees(n_trees=20), votes],
        ranker=BoostedRanker(n_rounds=5),
        n_folds=2,
        n_jobs=n_jobs,
    )
    model.fit(data)
    found = [model.rank(data).scores, str(model.explain(data.take([0]), 0))]
    if "torch" in sys.modules:
        found += embedded(n_jobs)
    digest = hashlib.sha256()
    for part in found:
        digest.update(part.encode() if isinstance(part, str) else np.ascontiguousarray(part).tobytes())
    return digest.hexdigest()


def embedded(n_jobs: int) -> list[np.ndarray]:
    from metarank.text import LabelEmbedder

    texts = [f"word{i % 7} word{i % 3} word{i % 5}" for i in range(40)]
    labels = [[i % 3] for i in range(40)]
    model = LabelEmbedder(
        "lale", vocabulary_size=50, subword_dim=8, hidden_dim=8, embedding_dim=8, n_epochs=1, n_jobs=n_jobs
    ).fit(texts, labels, ["word0", "word1", "word2"])
    return [model.rank(texts[:5], k=2).scores]


def end_after(seconds: int) -> None:
    """Tell where this process stands, and end it; a timer of its own in every process."""
    faulthandler.register(signal.SIGALRM, chain=True)
    signal.alarm(seconds)


def answer(queue: multiprocessing.Queue, seconds: int) -> None:
    end_after(seconds)
    queue.put((use(), use(1)))


if __name__ == "__main__":
    end_after(int(sys.argv[3]))
    for library in sys.argv[1].split(","):
        importlib.import_module(library)
    if "metarank" in sys.argv[1]:
        importlib.import_module("metarank.model.estimator")
    if sys.argv[2].startswith("jobs="):
        # Once before, so that what libraries start at their first use is there.
        use(1)
        print("ready", flush=True)
        sys.stdin.readline()
        use(int(sys.argv[2].removeprefix("jobs=")))
        print("done", flush=True)
        sys.stdin.read()
        sys.exit()
    print(use())
    context = multiprocessing.get_context(sys.argv[2])
    queue = context.Queue()
    process = context.Process(target=answer, args=(queue, int(sys.argv[3]) // 2))
    process.start()
    print(*queue.get(timeout=int(sys.argv[3])), sep="\n")
    process.join()
    print(use())
