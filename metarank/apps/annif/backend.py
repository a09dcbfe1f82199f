"""The backend `metarank`: a model of texts, labels and their names."""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import annif.backend.hyperopt  # noqa: F401, by which a project tells whether a backend has it
import numpy as np
from annif.backend.backend import AnnifLearningBackend
from annif.exception import (
    ConfigurationException,
    NotInitializedException,
    NotSupportedException,
    OperationFailedException,
)

from metarank import persist
from metarank.apps.annif.documents import Documents, subject_uris
from metarank.apps.annif.settings import metaranker_parameters, read, unknown_settings
from metarank.apps.annif.suggestions import suggested
from metarank.apps.annif.vocabulary import active_subjects, label_table, name_words_of, words_of
from metarank.model.estimator import MetaRanker
from metarank.types.label_descriptions import LabelDescriptions


class MetarankBackend(AnnifLearningBackend):
    """Annif's backend type `metarank`: the model is in the project's folder, and follows the vocabulary."""

    name = "metarank"

    MODEL_FILE = "metarank-model"
    # Annif does not take files with "-train" in their names for a model.
    TRAIN_FILE = "metarank-train.txt"

    DEFAULT_PARAMETERS: ClassVar[dict[str, Any]] = {
        "min_df": 1,
        "effort": "medium",
        "shortlist_size": 50,
        "n_folds": 5,
        "propensity_weight": "auto",
        "random_state": 0,
    }

    # As Annif's backends have it, None is an uninitialized instance
    _model: MetaRanker | None = None
    _subject_of: np.ndarray

    def initialize(self, parallel: bool = False) -> None:
        """Load the model; after a fork it serves each process."""
        if self._model is not None:
            return
        path = Path(self.datadir) / self.MODEL_FILE
        self.debug(f"loading model from {path}")
        if not path.exists():
            raise NotInitializedException(f"model {path} not found", backend_id=self.backend_id)
        with self._failing(f"cannot load the model {path}"):
            model = persist.load(path)
        self._take(model)

    # --- training ----------------------------------------------------------------

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        for setting in unknown_settings(params, self.default_params()):
            self.warning(f"setting {setting}={params[setting]} is not a setting of metarank, and is ignored")
        with self._settings():
            least = read(params, "min_df")
            model = MetaRanker(**metaranker_parameters(params, jobs))
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

    @property
    def _train_path(self) -> str:
        return os.path.join(self.datadir, self.TRAIN_FILE)

    def _cached_documents(self) -> Documents:
        try:
            return Documents.read(self._train_path)
        except OSError as error:
            raise NotInitializedException(
                f"no training data in {self._train_path}; train with a corpus first",
                backend_id=self.backend_id,
            ) from error

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
            self._model.partial_fit(documents.texts, documents.relevances(self._table_of(self._model)))
        self._keep(self._model)
        kept = self._cached_documents()
        Documents(kept.texts + documents.texts, kept.subjects + documents.subjects).write(self._train_path)

    # --- the model --------------------------------------------------------------

    def _take(self, model: MetaRanker) -> None:
        # Annif's processes and requests are many; what one of them asks is answered by one thread.
        model.n_jobs = 1
        self._follow_vocabulary(model)
        self._model = model

    def _keep(self, model: MetaRanker) -> None:
        """Save a model, completely or not at all, and take it."""
        path = os.path.join(self.datadir, self.MODEL_FILE)
        with self._failing(f"cannot save the model to {path}"):
            model.save(path)
        self._take(model)

    @contextmanager
    def _failing(self, what: str) -> Iterator[None]:
        """Errors of files as Annif's, which say what could not be done."""
        try:
            yield
        except (ValueError, OSError) as error:
            raise OperationFailedException(f"{what}: {error}", backend_id=self.backend_id) from error

    def _no(self, message: str) -> NotSupportedException:
        return NotSupportedException(message, backend_id=self.backend_id)

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """Errors of settings and inputs as Annif's; warnings as lines of its log."""
        with warnings.catch_warnings(record=True) as raised:
            warnings.simplefilter("always")
            try:
                yield
            except (ValueError, TypeError, ImportError) as error:
                raise ConfigurationException(str(error), backend_id=self.backend_id) from error
            finally:
                for line in dict.fromkeys(str(entry.message) for entry in raised):
                    self.warning(line)

    # --- suggestions -------------------------------------------------------------

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> Any:
        assert self._model is not None
        with self._settings():
            limit = read(params, "limit")
        words = words_of(self.project)
        texts = [words(doc.text) for doc in documents]
        hidden = np.flatnonzero(self._subject_of < 0)
        limits = {"exclude": hidden.tolist()} if len(hidden) else {}
        with self._settings():
            ranking, probabilities, *_ = self._model._answers(
                texts, max(1, limit), None, self._model.n_rows_ > 0, None, limits
            )
        return suggested(ranking, probabilities, self._subject_of, len(self.project.subjects), limit)

    # --- the vocabulary ----------------------------------------------------------

    def _follow_vocabulary(self, model: MetaRanker) -> None:
        """Subjects that are new since the fit become known to the model; those that are gone are not
        suggested. Annif may have given them other numbers."""
        subjects = active_subjects(self.project)
        self._add_subjects(model, subjects)
        known = self._table_of(model).ids
        self._subject_of = np.array([subjects.get(uri, (-1, ""))[0] for uri in known], np.int64)

    def _add_subjects(self, model: MetaRanker, subjects: dict[str, tuple[int, str]]) -> None:
        known, words = set(self._table_of(model).ids), name_words_of(self.project)
        # Words of two names may be the same; a model takes no second label of a name that it has.
        taken = {*(model.label_names_ or ()), *known}
        add: list[dict[str, Any]] = []
        for uri, (_, name) in subjects.items():
            if uri not in known:
                written = words(name)
                if written and written not in taken:
                    taken.add(written)
                    add.append({"id": uri, "name": written})
                else:
                    add.append({"id": uri, "name": uri, "alternative_names": [written] if written else []})
        if not add:
            return
        self.info(f"the vocabulary has {len(add)} new subjects since the training")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.update_labels(add=add)
        except (ValueError, TypeError) as error:
            self.warning(f"new subjects are suggested only after the next training: {error}")

    @staticmethod
    def _table_of(model: MetaRanker) -> LabelDescriptions:
        """The labels of a model of a project, which always has a table of them."""
        assert model.labels_ is not None
        return model.labels_
