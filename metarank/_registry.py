"""The register of metarank's own classes: where they are, and by what names sources are asked for.

Modules are named, not imported: a program imports those alone that it uses.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass, field
from functools import partial
from typing import Any


@dataclass(frozen=True)
class SourceEntry:
    """A scorer of metarank's own.

    Parameters
    ----------
    cls : str
    module : str
    params : dict
        What the name says of the parameters.
    asked_as : str or None
        What it is called as a shortlister; None if it proposes nothing.
    """

    cls: str
    module: str
    params: dict[str, Any] = field(default_factory=dict)
    asked_as: str | None = None

    def make(self) -> Any:
        """Its constructor."""
        cls = getattr(importlib.import_module(self.module), self.cls)
        return partial(cls, **self.params) if self.params else cls


# By the name that `MetaRanker(features=[...])` takes. A new source has its line here, and no other.
SOURCES = {
    "neighbors": SourceEntry("LabelNeighbors", "metarank.scorers.neighbors"),
    "votes": SourceEntry("NeighborShortlister", "metarank.scorers.neighbors", asked_as="neighbors"),
    "centroids": SourceEntry("Centroids", "metarank.scorers.centroid"),
    "prior": SourceEntry("LabelPrior", "metarank.scorers.prior"),
    "tail": SourceEntry("TailClassifiers", "metarank.scorers.tail"),
    "rbf-ridge": SourceEntry("KernelRidge", "metarank.scorers.kernel_ridge", {"kernel": "rbf"}),
    "laplacian-ridge": SourceEntry("KernelRidge", "metarank.scorers.kernel_ridge", {"kernel": "laplacian"}),
    "linear-ridge": SourceEntry("KernelRidge", "metarank.scorers.kernel_ridge", {"kernel": "linear"}),
    "rbf-svm": SourceEntry("KernelSVM", "metarank.scorers.kernel_svm"),
    "extra-trees": SourceEntry("ExtraTrees", "metarank.scorers.forest"),
    "linear-svm": SourceEntry("LinearClassifier", "metarank.scorers.linear"),
    "boosted": SourceEntry("BoostedTrees", "metarank.scorers.boosted"),
    "names": SourceEntry("NameScorer", "metarank.scorers.names", asked_as="names"),
    "spelling": SourceEntry("SpellingScorer", "metarank.scorers.names", asked_as="spelling"),
    "embedder": SourceEntry("NameEmbedder", "metarank.scorers.name_embedder", asked_as="embedder"),
    "one-vs-all": SourceEntry("OneVsAll", "metarank.scorers.one_vs_all", asked_as="one-vs-all"),
    "parabel": SourceEntry("Parabel", "metarank.scorers.parabel", asked_as="parabel"),
    "xreg": SourceEntry("XReg", "metarank.scorers.xreg", asked_as="xreg"),
    "fastxml": SourceEntry("FastXML", "metarank.scorers.instance_tree", asked_as="fastxml"),
    "pfastxml": SourceEntry("PfastXML", "metarank.scorers.instance_tree", asked_as="pfastxml"),
    "pfastrexml": SourceEntry("PfastreXML", "metarank.scorers.pfastrexml", asked_as="pfastrexml"),
}
# Classes of which a saved model holds objects, by name, and their modules.
SAVED = {
    "MetaRanker": "metarank.model.estimator",
    "MultiObjectiveRanker": "metarank.multi_objective.ranker",
    "LabelEmbedder": "metarank.text.embedder",
    "InputEncoder": "metarank.encoder",
    "PackedStrings": "metarank._strings",
    "FeatureTransform": "metarank.features.transform",
    "TextVectorizer": "metarank.data.vectorizer",
    "ObjectiveScorer": "metarank.scorers.objective",
    "KeptScorer": "metarank.scorers.kept",
} | {entry.cls: entry.module for entry in SOURCES.values()}
