"""metarank without Annif: a model of the training records, asked for the test records."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

import metarank
from metarank import MetaRanker, data

LIMIT = 100


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version, self.threads, self.seed = metarank.__version__, threads, params["random_state"]

    def experiment(self, folder: Path) -> tuple[dict[str, Any], dict[str, np.ndarray]]:
        subjects = json.loads((folder / "subjects.json").read_text())
        names = next(file for name in ("names.tsv", "vocabulary.ttl") if (file := folder / name).is_file())
        # Subjects that the vocabulary lacks become labels without a name, and a warning tells so.
        records = data.read_corpus(folder / "train.tsv", data.read_vocabulary(names, subjects["language"]))
        model = MetaRanker(language=subjects["language"], n_jobs=self.threads, random_state=self.seed)
        model.fit(records)
        trained = time.process_time()  # with imports, as of Annif's processes
        texts = data.read_corpus(folder / "test.tsv").texts
        before = time.process_time()
        ranking = model.rank(texts, k=min(LIMIT, model.n_labels_))
        asked = time.process_time() - before
        place = {uri: i for i, uri in enumerate(subjects["uris"])}
        at = np.array([place[uri] for uri in model.label_table_.ids], np.int32)
        labels = np.where(ranking.labels < 0, -1, at[ranking.labels]).astype(np.int32)
        figures = {"train_s": trained, "batch_ms": 1000 * asked / len(texts), "said": ""}
        return figures, {"labels": labels, "scores": ranking.scores}
