"""What both backends do with a fitted model: keep it in the project's folder, and follow the vocabulary."""

from __future__ import annotations

import csv
import os
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from annif.exception import (
    ConfigurationException,
    NotInitializedException,
    NotSupportedException,
    OperationFailedException,
)

from metarank import persist
from metarank.apps.annif.settings import metaranker_parameters, unknown_settings
from metarank.apps.annif.training import Documents
from metarank.apps.annif.vocabulary import active_subjects, words_of
from metarank.model.estimator import MetaRanker
from metarank.types.label_descriptions import LabelDescriptions


class FittedInProject:
    """A mixin of Annif's backends: the model, and which subject each of its labels is."""

    MODEL_FILE = "metarank-model"
    # Annif does not take files with "-train" in their names for a model.
    NAMES_FILE = "metarank-train-names.csv"
    TRAIN_FILE = "metarank-train.txt"

    # Settings without a default.
    READS: ClassVar[tuple[str, ...]] = ()

    # Of Annif's backends.
    backend_id: str
    datadir: str
    project: Any
    default_params: Callable[[], dict[str, Any]]
    debug: Callable[[str], None]
    info: Callable[[str], None]
    warning: Callable[[str], None]

    # As Annif's backends have it, None is an uninitialized instance
    _model: MetaRanker | None = None
    _subject_of: np.ndarray

    def _initialize_model(self) -> None:
        """Load the model, and let it follow the vocabulary; nothing if that is done."""
        if self._model is not None:
            return
        path = Path(self.datadir) / self.MODEL_FILE
        self.debug(f"loading model from {path}")
        if not path.exists():
            raise NotInitializedException(f"model {path} not found", backend_id=self.backend_id)
        try:
            model = persist.load(path)
        except (ValueError, OSError) as error:
            raise OperationFailedException(
                f"cannot load the model {path}: {error}", backend_id=self.backend_id
            ) from error
        self._take(model)

    def _take(self, model: MetaRanker) -> None:
        # Annif's processes and requests are many; what one of them asks is answered by one thread.
        model.n_jobs = 1
        self._follow_vocabulary(model)
        self._model = model

    def _new_model(self, params: Mapping[str, Any], jobs: int, **given: Any) -> MetaRanker:
        """An unfitted model by the settings of the project."""
        for setting in unknown_settings(params, [*self.default_params(), *self.READS]):
            self.warning(f"setting {setting}={params[setting]} is not one of metarank, and is not used")
        with self._settings():
            return MetaRanker(**metaranker_parameters(params, jobs) | given)

    def _keep(self, model: MetaRanker) -> None:
        """Save a model, completely or not at all, and take it."""
        path = os.path.join(self.datadir, self.MODEL_FILE)
        try:
            model.save(path)
        except (ValueError, OSError) as error:
            raise OperationFailedException(
                f"cannot save the model to {path}: {error}", backend_id=self.backend_id
            ) from error
        self._keep_names()
        self._take(model)

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

    def _no(self, message: str) -> NotSupportedException:
        return NotSupportedException(message, backend_id=self.backend_id)

    @contextmanager
    def _settings(self) -> Iterator[None]:
        """Errors of settings and inputs as Annif's; warnings as lines of its log."""
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            try:
                yield
            except (ValueError, TypeError, ImportError) as error:
                raise ConfigurationException(str(error), backend_id=self.backend_id) from error
            finally:
                for line in dict.fromkeys(str(entry.message) for entry in told):
                    self.warning(line)

    # --- the vocabulary ----------------------------------------------------------

    def _follow_vocabulary(self, model: MetaRanker) -> None:
        """Subjects that are new or renamed since the fit become known to the model; those that are gone are
        not suggested. Annif may have given them other numbers."""
        subjects = active_subjects(self.project)
        self._update(model, subjects)
        known = table_of(model).ids
        self._subject_of = np.array([subjects.get(uri, (-1, ""))[0] for uri in known], np.int64)

    def _update(self, model: MetaRanker, subjects: dict[str, tuple[int, str]]) -> None:
        table = table_of(model)
        known = dict(zip(table.ids, table.names))
        seen, words = self._kept_names(), words_of(self.project)
        # Words of two names may be the same; a model takes no second label of a name that it has.
        taken = {*(model.label_names_ or ()), *known}
        add: list[dict[str, Any]] = []
        rename: dict[str, Any] = {}
        for uri, (_, name) in subjects.items():
            if uri in known and seen.get(uri) == name:
                continue
            written = words(name)
            if not written or written in taken:
                own: dict[str, Any] = {"name": uri, "alternative_names": [written] if written else []}
            else:
                own = {"name": written}
            if uri not in known:
                add.append({"id": uri} | own)
            elif written and written != known[uri]:
                rename[uri] = written if own["name"] == written else (uri, written)
            taken.add(own["name"])
        if not add and not rename:
            return
        self.info(f"the vocabulary has {len(add)} new and {len(rename)} renamed subjects since the training")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                model.update_labels(add=add or None, rename=rename or None)
        except (ValueError, TypeError) as error:
            self.warning(f"new subjects are suggested after the next training only: {error}")

    def _kept_names(self) -> dict[str, str]:
        """The names of subjects at the fit, as the vocabulary had them."""
        try:
            with open(os.path.join(self.datadir, self.NAMES_FILE), encoding="utf-8", newline="") as file:
                return {row[0]: row[1] for row in csv.reader(file)}
        except OSError:
            return {}

    def _keep_names(self) -> None:
        import annif.util

        def write(subjects: dict[str, tuple[int, str]], path: str) -> None:
            with open(path, "w", encoding="utf-8", newline="") as file:
                csv.writer(file).writerows((uri, name) for uri, (_, name) in subjects.items())

        annif.util.atomic_save(active_subjects(self.project), self.datadir, self.NAMES_FILE, method=write)


def table_of(model: MetaRanker) -> LabelDescriptions:
    """The labels of a model of a project, which always has a table of them."""
    assert model.labels_ is not None
    return model.labels_
