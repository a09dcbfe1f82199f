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


# By the name that `MetaRanker(features=[...])` takes. A new source has its line
# here; what else it touches: CONTRIBUTING.md, "A new source".
SOURCES = {
    "neighbors": SourceEntry("LabelNeighbors", "metarank.scorers.neighbors.voting"),
    "votes": SourceEntry("NeighborShortlister", "metarank.scorers.neighbors.voting", asked_as="neighbors"),
    "centroids": SourceEntry("Centroids", "metarank.scorers.neighbors.centroids"),
    "prior": SourceEntry("LabelPrior", "metarank.scorers.neighbors.prior"),
    "tail": SourceEntry("TailClassifiers", "metarank.scorers.trees.tail", asked_as="tail"),
    "rbf-ridge": SourceEntry("KernelRidge", "metarank.scorers.classical.kernel_ridge", {"kernel": "rbf"}),
    "laplacian-ridge": SourceEntry(
        "KernelRidge", "metarank.scorers.classical.kernel_ridge", {"kernel": "laplacian"}
    ),
    "linear-ridge": SourceEntry(
        "KernelRidge", "metarank.scorers.classical.kernel_ridge", {"kernel": "linear"}
    ),
    "rbf-svm": SourceEntry("KernelSVM", "metarank.scorers.classical.kernel_svm"),
    "extra-trees": SourceEntry("ExtraTrees", "metarank.scorers.classical.forest"),
    "linear-svm": SourceEntry("LinearClassifier", "metarank.scorers.linear.linear_svm"),
    "names": SourceEntry("NameScorer", "metarank.scorers.names.words", asked_as="names"),
    "spelling": SourceEntry("SpellingScorer", "metarank.scorers.names.words", asked_as="spelling"),
    "mentions": SourceEntry("NameMentions", "metarank.scorers.names.mentions", asked_as="mentions"),
    "name-record": SourceEntry("NameRecord", "metarank.scorers.names.record"),
    "label-vectors": SourceEntry(
        "LabelVectorScorer", "metarank.scorers.names.given_vectors", asked_as="label-vectors"
    ),
    "two-sided": SourceEntry("TwoSided", "metarank.scorers.names.two_sided", asked_as="two-sided"),
    "one-vs-all": SourceEntry("OneVsAll", "metarank.scorers.linear.one_vs_all", asked_as="one-vs-all"),
    "parabel": SourceEntry("Parabel", "metarank.scorers.trees.parabel", asked_as="parabel"),
    "xreg": SourceEntry("XReg", "metarank.scorers.trees.xreg", asked_as="xreg"),
    "fastxml": SourceEntry("FastXML", "metarank.scorers.trees.instance_tree", asked_as="fastxml"),
    "pfastxml": SourceEntry("PfastXML", "metarank.scorers.trees.instance_tree", asked_as="pfastxml"),
    "pfastrexml": SourceEntry("PfastreXML", "metarank.scorers.trees.pfastrexml", asked_as="pfastrexml"),
}
# Classes that a saved model may be of, by name, and their modules, which import those of its parts.
SAVED = {
    "MetaRanker": "metarank.model.estimator",
    "MultiObjectiveRanker": "metarank.objectives.multi_objective",
    "ThresholdLearner": "metarank.thresholds.learner",
    "LabelEmbedder": "metarank.text.embedder",
} | {entry.cls: entry.module for entry in SOURCES.values()}
