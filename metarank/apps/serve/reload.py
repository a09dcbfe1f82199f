"""`ModelHolder`: the model that answers, and the one that takes its place when its folder is replaced."""

from __future__ import annotations

import logging
import os
import threading
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank.apps.serve.answers import Answerer
from metarank.model.estimator import MetaRanker
from metarank.persist import load, read_manifest

# uvicorn's own, which it sets up in each of its processes.
logger: logging.Logger = logging.getLogger("uvicorn.error")

# Seconds between looks at the folder.
_INTERVAL = 1.0


@dataclass(frozen=True)
class Loaded:
    """A model with the digest of its folder, and since when it answers."""

    answerer: Answerer
    digest: str | None
    since: str


class ModelHolder:
    """Holds the model of a service.

    Parameters
    ----------
    model : fitted MetaRanker, or path of its folder
        A folder is watched: each process of a service does so by itself.
    propensity_weight : float, optional
        Propensity weight for a model of a folder.

    Attributes
    ----------
    current : Loaded
        Who asks for it keeps it: a request is answered by the model that was current when it came.
    """

    def __init__(
        self, model: MetaRanker | str | os.PathLike[str], propensity_weight: float | str | None = None
    ) -> None:
        # No link is resolved: it may lead to another model later.
        self._path = None if isinstance(model, MetaRanker) else Path(model).absolute()
        self._weight = propensity_weight
        self._seen = self._files()
        self.current: Loaded = _loaded(model, None) if isinstance(model, MetaRanker) else self._load()

    @property
    def name(self) -> str:
        """The name of the folder."""
        return "model" if self._path is None else self._path.resolve().name

    def refresh(self) -> None:
        """Take the model that is in the folder, if the folder has changed since the last look.

        The current model answers on until the new one is loaded and tried, and on if that fails.
        """
        files = self._files()
        if not files or files == self._seen:
            return
        self._seen = files
        try:
            self.current = self._load()
        except Exception as error:
            reason = " ".join(str(error).split()) or type(error).__name__
            logger.error("the model was not reloaded, the previous one stays: %s", reason)
        else:
            logger.info("the model was reloaded, digest %s", self.current.digest)

    def watch(self, ended: threading.Event) -> None:
        """Refresh each second until the end."""
        while self._path is not None and not ended.wait(_INTERVAL):
            self.refresh()

    def _files(self) -> list[tuple[str, int, int, int]]:
        """What tells one state of the folder from another; empty while there is none."""
        if self._path is None:
            return []
        try:
            stats = [(entry.name, entry.stat()) for entry in os.scandir(self._path)]
        except OSError:
            return []
        return sorted((name, stat.st_ino, stat.st_size, stat.st_mtime_ns) for name, stat in stats)

    def _load(self) -> Loaded:
        assert self._path is not None
        model = load(self._path)
        if not isinstance(model, MetaRanker):
            raise ValueError(f"{self._path} must hold a MetaRanker, got a {type(model).__name__}")
        model.n_jobs = 1  # the threads of the service are the parallelism
        if self._weight is not None:
            model.fitted_.propensity_weight = model.fitted_.checked_weight(self._weight)
        loaded = _loaded(model, read_manifest(self._path, verify=False)["digest"])
        warm_up(model)
        return loaded


def _loaded(model: MetaRanker, digest: str | None) -> Loaded:
    return Loaded(Answerer(model), digest, datetime.now(UTC).isoformat(timespec="seconds"))


def warm_up(model: MetaRanker) -> None:
    """Rank and explain once: this builds the indexes that the first request would wait for."""
    fitted = model.fitted_
    label = np.setdiff1d(np.arange(fitted.n_labels), fitted.removed)[:1]
    one = sp.csr_matrix((np.ones(len(label)), ([0] * len(label), label)), shape=(1, fitted.n_labels))
    given: dict[str, Any] = {
        "candidates": dict.fromkeys(fitted.given_sources, one) or None,
        "pair_features": dict.fromkeys(fitted.given_features, one) or None,
    }
    x = model.encoder_.example()
    for best in model.rank(x, k=1, **given).labels[0]:
        if best >= 0:
            model.explain(x, int(best), **given)
