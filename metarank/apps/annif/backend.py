"""The backend `metarank`: a model of texts, labels and their names."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np
import scipy.sparse as sp
from annif.backend.backend import AnnifLearningBackend
from annif.exception import NotInitializedException, NotSupportedException

from metarank.apps.annif.fitted import FittedInProject
from metarank.apps.annif.settings import positive
from metarank.apps.annif.suggestions import suggested
from metarank.apps.annif.vocabulary import label_table, words_of
from metarank.types.label_descriptions import LabelDescriptions


class MetarankBackend(FittedInProject, AnnifLearningBackend):
    """Annif's backend type `metarank`."""

    name = "metarank"

    # A line a document: the analyzer's words, a tab, the URIs of its subjects; Annif's own TSV.
    TRAIN_FILE = "metarank-train.txt"

    DEFAULT_PARAMETERS: ClassVar[dict[str, Any]] = {
        "min_df": 1,
        "effort": "medium",
        "shortlist_size": 50,
        "n_folds": 5,
        "propensity_weight": 0.0,
        "random_state": 0,
    }

    def initialize(self, parallel: bool = False) -> None:
        """Load the model; after a fork it serves each process."""
        self._initialize_model()

    # --- training ----------------------------------------------------------------

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        if corpus == "cached":
            self.info("Reusing cached training data from previous run.")
        elif corpus.is_empty():
            raise NotSupportedException(
                f"Cannot train {self.name} project with no documents", backend_id=self.backend_id
            )
        with self._settings():
            least = positive(params, "min_df")
        model = self._new_model(params, jobs)
        if corpus != "cached":
            self._write_training(corpus)
        texts, subjects = self._read_training()
        self.info(f"training on {len(texts)} documents")
        table = label_table(self.project, self.warning)
        with self._settings():
            model.fit(_frequent(texts, least), _relevances(subjects, table), labels=table)
        self._keep(model)

    def _learn(self, corpus: Any, params: dict[str, Any]) -> None:
        self.initialize()
        words = words_of(self.project)
        documents = [(words(doc.text), self._uris(doc)) for doc in corpus.documents]
        documents = [(text, uris) for text, uris in documents if text and uris]
        if not documents:
            raise NotSupportedException(
                "Cannot learn from no documents with subjects", backend_id=self.backend_id
            )
        texts, subjects = zip(*documents)
        with self._settings():
            self._model.partial_fit(list(texts), _relevances(subjects, self._model.labels_))
        self._keep(self._model)

    def _write_training(self, corpus: Any) -> None:
        """Words and subjects of the documents that have both."""
        import annif.util

        words, n = words_of(self.project), 0

        def write(documents: Iterator[Any], path: str) -> None:
            nonlocal n
            with open(path, "w", encoding="utf-8", newline="") as file:
                for doc in documents:
                    text, uris = words(doc.text), self._uris(doc)
                    if text and uris:
                        file.write(f"{text}\t{' '.join(uris)}\n")
                        n += 1

        self.info("creating train file")
        annif.util.atomic_save(corpus.documents, self.datadir, self.TRAIN_FILE, method=write)
        if n == 0:
            raise NotSupportedException(
                f"Cannot train {self.name} project with no documents that have words and subjects",
                backend_id=self.backend_id,
            )

    def _read_training(self) -> tuple[list[str], list[list[str]]]:
        path = os.path.join(self.datadir, self.TRAIN_FILE)
        if not os.path.exists(path):
            raise NotInitializedException(
                f"training data {path} not found; train with a corpus first", backend_id=self.backend_id
            )
        with open(path, encoding="utf-8", newline="") as file:
            pairs = [line.rstrip("\n").split("\t") for line in file]
        return [text for text, _ in pairs], [uris.split(" ") for _, uris in pairs]

    def _uris(self, doc: Any) -> list[str]:
        """The subjects of a document that may be suggested."""
        found = []
        for number in sorted(doc.subject_set):
            try:
                found.append(self.project.subjects[number].uri)
            except IndexError:  # deprecated or excluded
                continue
        return found

    # --- suggestions -------------------------------------------------------------

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> Any:
        with self._settings():
            limit = positive(params, "limit", 0)
        words = words_of(self.project)
        texts = [words(doc.text) for doc in documents]
        hidden = np.flatnonzero(self._subject_of < 0)
        limits: dict[str, Any] = {"exclude": hidden.tolist()} if len(hidden) else {}
        ranking, probabilities, _ = self._model._answers(texts, max(1, limit), None, True, None, limits)
        return suggested(ranking, probabilities, self._subject_of, len(self.project.subjects), limit)


def _frequent(texts: list[str], least: int) -> list[str]:
    """Texts without the words that fewer than `least` of them hold."""
    if least == 1:
        return texts
    counts = Counter(word for text in texts for word in set(text.split(" ")))
    return [" ".join(word for word in text.split(" ") if counts[word] >= least) for text in texts]


def _relevances(subjects: Any, table: LabelDescriptions) -> sp.csr_matrix:
    """CSR (n, L); subjects that the table lacks are left out."""
    number = {uri: i for i, uri in enumerate(table.ids)}
    found = [[number[uri] for uri in uris if uri in number] for uris in subjects]
    indptr = np.cumsum([0, *map(len, found)])
    indices = np.array([label for row in found for label in row], np.int64)
    return sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(found), len(table)))
