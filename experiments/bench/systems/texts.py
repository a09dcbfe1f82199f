"""metarank on raw texts (`named_texts.py`): `MetaRanker`, and a `table` of labels.

That has the columns of `read_labels` by the columns of the set's table that they are, one or several;
without it labels have the set's names. Labels never seen are added by their names after the fit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from sets import excluded, matrix

import metarank
from metarank import MetaRanker, Ranking
from metarank.data import Dataset, read_labels


class System:
    def __init__(self, params: dict[str, Any], threads: int) -> None:
        self.version = metarank.__version__
        self.table, self.weights = params.get("table"), params.get("weights", [])
        self.make({key: value for key, value in params.items() if key not in ("table", "weights")}, threads)

    def read(self, folder: Path) -> None:
        read = json.loads((folder / "texts.json").read_text())
        self.texts, names = read["train"], read["names"]
        hidden = json.loads((folder / "set.json").read_text())["unseen"]
        seen = np.setdiff1d(np.arange(len(names)), hidden)
        self.to_set = np.concatenate([seen, hidden]).astype(np.int32)
        self.names, self.added = [names[label] for label in seen], [names[label] for label in hidden]
        self.Y, out = matrix(folder, "Y")[:, seen], excluded(folder, "exclude")
        self.exclude = None if out is None else out[:, seen]
        self.rows = json.loads((folder / "table.json").read_text()) if self.table else None

    def test_rows(self, folder: Path) -> np.ndarray:
        return np.array(json.loads((folder / "texts.json").read_text())["test"], object)

    def prepare(self, texts: str | np.ndarray) -> list[str]:
        return [texts] if isinstance(texts, str) else list(texts)

    def save(self, folder: Path) -> None:
        self.model.save(folder)
        self.model = metarank.load(folder)

    def top(self, predicted: Ranking, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The lists with ids of the set."""
        labels = predicted.labels
        return np.where(labels >= 0, self.to_set[np.maximum(labels, 0)], -1), predicted.scores

    def lists(self, texts: list[str], k: int) -> dict[str, tuple[np.ndarray, np.ndarray]]:
        """By other weights of rare labels."""
        ranked = {w: self.model.rank(texts, k=k, propensity_weight=w) for w in self.weights}
        return {f"weight {weight}": self.top(found, k) for weight, found in ranked.items()}

    # --- what differs between models of texts ---------------------------------------------

    def make(self, params: dict[str, Any], threads: int) -> None:
        self.model = MetaRanker(n_jobs=threads, **params)

    def train(self) -> None:
        named = {} if self.table else {"label_names": self.names}
        of_table = read_labels([self._described(row) for row in self.rows]) if self.table else None
        self.model.fit(Dataset(texts=self.texts, Y=self.Y, labels=of_table, **named), exclude=self.exclude)
        # The model tells labels apart by their names, some sets do not.
        taken, new = set(self.names), []
        for name in self.added:
            new.append(f"{name} [{len(taken)}]" if name in taken else name)
            taken.add(new[-1])
        if new:
            self.model.update_labels(add=new)

    def predict(self, texts: list[str], k: int) -> Ranking:
        return self.model.rank(texts, k=k)

    def _described(self, row: dict[str, Any]) -> dict[str, Any]:
        of = {role: columns for role, columns in self.table.items() if isinstance(columns, str)}
        out = {"id": row["id"], **{role: row[column] for role, column in of.items()}}
        for role in self.table.keys() - of.keys():
            several = [row[column] for column in self.table[role]]
            out[role] = [name for part in several for name in ([part] if isinstance(part, str) else part)]
        return out
