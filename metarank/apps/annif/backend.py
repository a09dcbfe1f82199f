"""The backend `metarank`: a model of texts, labels and their names."""

from __future__ import annotations

from typing import Any, ClassVar

import annif.backend.hyperopt  # noqa: F401, by which a project tells whether a backend has it
import numpy as np
from annif.backend.backend import AnnifLearningBackend

from metarank.apps.annif.fitted import FittedInProject, table_of
from metarank.apps.annif.settings import positive
from metarank.apps.annif.suggestions import suggested
from metarank.apps.annif.training import Documents, subject_uris
from metarank.apps.annif.vocabulary import label_table, words_of


class MetarankBackend(FittedInProject, AnnifLearningBackend):
    """Annif's backend type `metarank`."""

    name = "metarank"

    DEFAULT_PARAMETERS: ClassVar[dict[str, Any]] = {
        "min_df": 1,
        "effort": "medium",
        "shortlist_size": 50,
        "n_folds": 5,
        "propensity_weight": "auto",
        "random_state": 0,
    }

    def initialize(self, parallel: bool = False) -> None:
        """Load the model; after a fork it serves each process."""
        self._initialize_model()

    # --- training ----------------------------------------------------------------

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        with self._settings():
            least = positive(params, "min_df")
        model = self._new_model(params, jobs)
        documents = self._documents(corpus)
        self.info(f"training on {len(documents.texts)} documents")
        table = label_table(self.project, self.warning)
        with self._settings():
            model.fit(documents.with_frequent_words(least), documents.relevances(table), labels=table)
        self._keep(model)

    def _documents(self, corpus: Any) -> Documents:
        """The training documents, which are kept; those of the training before if `corpus` is "cached"."""
        if corpus == "cached":
            self.info("Reusing cached training data from previous run.")
            return self._cached_documents()
        if corpus.is_empty():
            raise self._no("Cannot train a project with no documents")
        self.info("creating train file")
        documents = self._read(corpus)
        if not documents.texts:
            raise self._no("Cannot train a project with no documents that have words and subjects")
        documents.write(self._train_path)
        return documents

    def _read(self, corpus: Any) -> Documents:
        """The documents of a corpus that have words and subjects."""
        words = words_of(self.project)
        read = ((words(doc.text), subject_uris(self.project, doc)) for doc in corpus.documents)
        kept = [(text, uris) for text, uris in read if text and uris]
        return Documents([text for text, _ in kept], [uris for _, uris in kept])

    def _learn(self, corpus: Any, params: dict[str, Any]) -> None:
        self.initialize()
        assert self._model is not None
        documents = self._read(corpus)
        if not documents.texts:
            raise self._no("Cannot learn from no documents that have words and subjects")
        with self._settings():
            self._model.partial_fit(documents.texts, documents.relevances(table_of(self._model)))
        self._keep(self._model)
        kept = self._cached_documents()
        Documents(kept.texts + documents.texts, kept.subjects + documents.subjects).write(self._train_path)

    # --- suggestions -------------------------------------------------------------

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> Any:
        assert self._model is not None
        with self._settings():
            limit = positive(params, "limit", 0)
        words = words_of(self.project)
        texts = [words(doc.text) for doc in documents]
        hidden = np.flatnonzero(self._subject_of < 0)
        limits: dict[str, Any] = {"exclude": hidden.tolist()} if len(hidden) else {}
        ranking, probabilities, _ = self._model._answers(texts, max(1, limit), None, True, None, limits)
        return suggested(ranking, probabilities, self._subject_of, len(self.project.subjects), limit)
