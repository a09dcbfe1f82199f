"""The backend `metarank_ensemble`: scores of other projects, fused by a ranker that learns whom to trust."""

from __future__ import annotations

import os
from typing import Any, ClassVar

import annif.parallel
import annif.util
import numpy as np
import scipy.sparse as sp
from annif.backend.backend import AnnifLearningBackend
from annif.backend.ensemble import BaseEnsembleBackend
from annif.exception import ConfigurationException, NotInitializedException

from metarank.apps.annif.fitted import FittedInProject, table_of
from metarank.apps.annif.settings import positive, truth
from metarank.apps.annif.suggestions import suggested
from metarank.apps.annif.training import Documents, subject_uris
from metarank.apps.annif.vocabulary import active_subjects, label_table, words_of
from metarank.model.estimator import MetaRanker

# Scores of the sources, CSR (n, subjects of Annif), by project.
Scores = dict[str, sp.csr_matrix]


class MetarankEnsembleBackend(FittedInProject, AnnifLearningBackend, BaseEnsembleBackend):
    """Annif's backend type `metarank_ensemble`."""

    name = "metarank_ensemble"

    SCORES_FILE = "metarank-train-scores.npz"

    READS = ("sources",)

    DEFAULT_PARAMETERS: ClassVar[dict[str, Any]] = {
        "texts": True,
        "candidates_mode": "union",
        "effort": "medium",
        "shortlist_size": 50,
        "n_folds": 5,
        "propensity_weight": 0.0,
        "random_state": 0,
    }

    def initialize(self, parallel: bool = False) -> None:
        """Load the source projects and the model."""
        super().initialize(parallel)
        self._initialize_model()

    @property
    def _sources(self) -> list[str]:
        """The source projects, in order."""
        params = self._get_backend_params(None)
        if "sources" not in params:
            raise ConfigurationException("sources setting is missing", backend_id=self.backend_id)
        found = annif.util.parse_sources(params["sources"])
        if len({weight for _, weight in found}) > 1:
            self.warning("weights of sources are learned; those in sources= are not used")
        return [project for project, _ in found]

    # --- training ----------------------------------------------------------------

    def _train(self, corpus: Any, params: dict[str, Any], jobs: int = 0) -> None:
        model = self._new_model(params, jobs)
        with self._settings():
            truth(params, "texts")
        if corpus == "cached":
            self.info("Reusing cached training data from previous run.")
            documents, scores = self._cached_documents(), self._cached_scores()
        elif corpus.is_empty():
            raise self._no("Cannot train an ensemble project with no documents")
        else:
            documents, scores = self._scored(corpus, jobs)
            self._keep_training(documents, scores)
        self._fit(model, documents, scores, params)

    def _learn(self, corpus: Any, params: dict[str, Any]) -> None:
        """A model with scores of sources takes no more rows: it is fitted anew, on those of before too."""
        documents, scores = self._cached_documents(), self._cached_scores()
        more, more_scores = self._scored(corpus, 1)
        documents = Documents(documents.texts + more.texts, documents.subjects + more.subjects)
        scores = {
            source: sp.vstack([_of_width(own, more_scores[source].shape[1]), more_scores[source]], "csr")
            for source, own in scores.items()
        }
        self._fit(self._new_model(params, 1), documents, scores, params)
        self._keep_training(documents, scores)

    def _fit(self, model: MetaRanker, documents: Documents, scores: Scores, params: dict[str, Any]) -> None:
        self.info(f"training on the scores of {len(documents.texts)} documents by {', '.join(scores)}")
        table = label_table(self.project, self.warning)
        own = active_subjects(self.project)
        subject_of = np.array([own[uri][0] for uri in table.ids], np.int64)
        with self._settings():
            model.fit(
                documents.texts if truth(params, "texts") else None,
                documents.relevances(table),
                labels=table,
                candidates={source: of_labels(found, subject_of) for source, found in scores.items()},
                candidates_mode=params["candidates_mode"],
            )
        self._keep(model)

    def _scored(self, corpus: Any, jobs: int) -> tuple[Documents, Scores]:
        """The documents with subjects, and what the sources suggest for them."""
        sources = self._sources
        self.info(f"Initializing source projects: {', '.join(sources)}")
        for source in sources:  # before processes are forked
            self.project.registry.get_project(source).initialize(parallel=True)
        asked = annif.parallel.ProjectSuggestMap(
            self.project.registry, sources, backend_params=None, limit=None, threshold=0.0
        )
        words, n = words_of(self.project), len(self.project.subjects)
        documents, found = (
            Documents([], []),
            {source: [sp.csr_matrix((0, n), dtype=np.float32)] for source in sources},
        )
        processes, pool_class = annif.parallel.get_pool(jobs)
        batches = list(_labelled(self.project, corpus))
        self.info("Processing training documents...")
        with pool_class(processes) as pool:
            answers = pool.imap(asked.suggest_batch, batches)
            for batch, (suggestions, _) in zip(batches, answers):
                documents.texts.extend(words(doc.text) for doc in batch)
                documents.subjects.extend(subject_uris(self.project, doc) for doc in batch)
                for source, own in suggestions.items():
                    found[source].append(_of_width(sp.csr_matrix(own.array, dtype=np.float32), n))
        if not documents.texts:
            raise self._no("Cannot train an ensemble project with no documents that have subjects")
        return documents, {source: sp.vstack(parts, "csr") for source, parts in found.items()}

    def _keep_training(self, documents: Documents, scores: Scores) -> None:
        parts: dict[str, Any] = {
            "sources": np.array(list(scores)),
            "uris": np.array(list(active_subjects(self.project))),
        }
        numbers = [number for number, _ in active_subjects(self.project).values()]
        for i, found in enumerate(scores.values()):
            own = of_labels(found, np.array(numbers))
            parts |= {f"data{i}": own.data, f"indices{i}": own.indices, f"indptr{i}": own.indptr}

        def write(values: dict[str, Any], path: str) -> None:
            with open(path, "wb") as file:
                np.savez_compressed(file, **values)

        annif.util.atomic_save(parts, self.datadir, self.SCORES_FILE, method=write)
        documents.write(self._train_path)

    def _cached_scores(self) -> Scores:
        path = os.path.join(self.datadir, self.SCORES_FILE)
        try:
            with np.load(path, allow_pickle=False) as file:
                parts = dict(file)
        except OSError as error:
            raise NotInitializedException(
                f"no scores in {path}; train with a corpus first", backend_id=self.backend_id
            ) from error
        sources, subjects = parts["sources"].tolist(), active_subjects(self.project)
        if sorted(sources) != sorted(self._sources):
            raise ConfigurationException(
                f"sources are those of the last training, {', '.join(sources)}, without a corpus to train on",
                backend_id=self.backend_id,
            )
        number = np.array([subjects.get(uri, (-1, ""))[0] for uri in parts["uris"].tolist()])
        out: Scores = {}
        for i, source in enumerate(sources):
            own = sp.csr_matrix(
                (parts[f"data{i}"], parts[f"indices{i}"], parts[f"indptr{i}"]),
                (len(parts[f"indptr{i}"]) - 1, len(number)),
            ).tocoo()
            column = number[own.col]
            kept = column >= 0
            shape = (own.shape[0], len(self.project.subjects))
            out[source] = sp.csr_matrix((own.data[kept], (own.row[kept], column[kept])), shape)
        return out

    # --- suggestions -------------------------------------------------------------

    def _update(self, model: MetaRanker, subjects: dict[str, tuple[int, str]]) -> None:
        new = len(subjects.keys() - set(table_of(model).ids))
        if new:
            self.warning(f"{new} subjects are new since the training, and suggested after the next one")

    def _suggest_batch(self, documents: list[Any], params: dict[str, Any]) -> Any:
        assert self._model is not None
        with self._settings():
            limit = positive(params, "limit", 0)
        sources = annif.util.parse_sources(params["sources"])
        found = self._suggest_with_sources(documents, sources)
        with self._settings():
            ranking, probabilities, _ = self._model._answers(
                self._features(documents), max(1, limit), None, True, None, self._limits(found)
            )
        return suggested(ranking, probabilities, self._subject_of, len(self.project.subjects), limit)

    def _features(self, documents: list[Any]) -> list[str] | None:
        if self._model is None or self._model.encoder_.n_features == 0:
            return None
        words = words_of(self.project)
        return [words(doc.text) for doc in documents]

    def _limits(self, found: dict[str, Any]) -> dict[str, Any]:
        scores = {source: sp.csr_matrix(own.array, dtype=np.float32) for source, own in found.items()}
        return {"candidates": {source: of_labels(own, self._subject_of) for source, own in scores.items()}}


def of_labels(scores: sp.csr_matrix, subject_of: np.ndarray) -> sp.csr_matrix:
    """Scores of subjects (n, subjects) as scores of labels (n, L): label l is the subject ``subject_of[l]``,
    or none at -1."""
    label_of = np.full(scores.shape[1], -1, np.int64)
    known = np.flatnonzero((subject_of >= 0) & (subject_of < scores.shape[1]))
    label_of[subject_of[known]] = known
    pairs = scores.tocoo()
    column = label_of[pairs.col]
    kept = (column >= 0) & (pairs.data > 0)
    shape = (scores.shape[0], len(subject_of))
    return sp.csr_matrix((pairs.data[kept], (pairs.row[kept], column[kept])), shape, dtype=np.float32)


def _labelled(project: Any, corpus: Any) -> Any:
    """Batches of the documents that have subjects."""
    for batch in corpus.doc_batches:
        kept = [doc for doc in batch if subject_uris(project, doc)]
        if kept:
            yield kept


def _of_width(matrix: sp.csr_matrix, n: int) -> sp.csr_matrix:
    """A matrix with columns up to n, of zeros where it had none."""
    return sp.csr_matrix((matrix.data, matrix.indices, matrix.indptr), (matrix.shape[0], n))
