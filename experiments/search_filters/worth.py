"""What lists and label sets are worth: fractions of one."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp
from parts import Parts

from metarank import Ranking, metrics

TABLE_1 = ("nDCG@1", "nDCG@3", "nDCG@5", "P@3", "P@5")
TABLE_2 = ("coverage", "F1 head", "F1 tail")
UNSEEN_RECALL = 10


@dataclass(frozen=True)
class Lists:
    """The best k labels of each row, best first, -1 where there are fewer.

    `chances` are what a cut compares across rows: probabilities, or scores where a system has none.
    """

    labels: np.ndarray
    chances: np.ndarray

    def without(self, own: np.ndarray) -> Lists:
        """The lists without the label that is out of the question for a row, the rest moved up."""
        out = (self.labels == own[:, None]) & (self.labels >= 0)
        labels, chances = np.where(out, -1, self.labels), np.where(out, -np.inf, self.chances)
        order = np.argsort(labels < 0, axis=1, kind="stable")
        return Lists(np.take_along_axis(labels, order, 1), np.take_along_axis(chances, order, 1))

    def cut(self, threshold: float, n_labels: int) -> sp.csr_matrix:
        """Label sets: all whose chance is at least the threshold."""
        kept = (self.labels >= 0) & (self.chances >= threshold)
        row = np.nonzero(kept)[0]
        ones = np.ones(len(row), np.float32)
        return sp.csr_matrix((ones, (row, self.labels[kept])), (len(self.labels), n_labels))


def best_threshold(Y: sp.csr_matrix, lists: Lists) -> float:
    """The threshold for all pairs alike with the greatest micro-F1; of several, the greatest."""
    listed = lists.labels >= 0
    row, label, chance = np.nonzero(listed)[0], lists.labels[listed], lists.chances[listed]
    order = np.argsort(-chance, kind="stable")
    chance = chance[order]
    hits = np.cumsum(np.asarray(Y[row[order], label[order]]).ravel() > 0)
    f1 = 2 * hits / (np.arange(1, len(hits) + 1) + Y.nnz)
    # Pairs of equal chance are cut together.
    possible = np.append(chance[1:] != chance[:-1], True)
    return float(chance[np.argmax(np.where(possible, f1, -1.0))])


def class_f1(Y: sp.csr_matrix, predicted: sp.csr_matrix, among: np.ndarray) -> float:
    """Mean F1 of the labels of a mask, each of equal weight; only those with a relevant test row count."""
    relevant = np.bincount(Y.indices, minlength=Y.shape[1])
    given = np.bincount(predicted.indices, minlength=Y.shape[1])
    hits = np.bincount(sp.csr_matrix(Y.multiply(predicted)).indices, minlength=Y.shape[1])
    judged = among & (relevant > 0)
    return float(np.mean(2 * hits[judged] / (relevant + given)[judged])) if judged.any() else float("nan")


def values(parts: Parts, valid: Lists, test: Lists) -> dict[str, float]:
    """Both tables' columns, of a system's lists of the validation and the test part."""
    Y = parts.test.Y
    valid, test = valid.without(parts.valid.own), test.without(parts.test.own)
    found = metrics.evaluate(Y, ranking_of(test, Y.shape[1]), list(TABLE_1), n_jobs=1)
    threshold = best_threshold(parts.valid.Y, valid)
    found |= _of_sets(parts, test.cut(threshold, Y.shape[1]), "")
    # Where chances are probabilities, the cut that needs no choice.
    found |= _of_sets(parts, test.cut(0.5, Y.shape[1]), " at .5")
    found["valid nDCG@5"] = metrics.evaluate(
        parts.valid.Y, ranking_of(valid, Y.shape[1]), ["nDCG@5"], n_jobs=1
    )["nDCG@5"]
    return {name: float(value) for name, value in found.items()}


def _of_sets(parts: Parts, sets: sp.csr_matrix, suffix: str) -> dict[str, float]:
    Y, head = parts.test.Y, parts.head
    figures = {
        "coverage": len(np.unique(sets.indices)) / Y.shape[1],
        "F1 head": class_f1(Y, sets, head),
        "F1 tail": class_f1(Y, sets, ~head),
    }
    return {name + suffix: value for name, value in figures.items()}


def unseen_recall(parts: Parts, test: Lists, k: int = UNSEEN_RECALL) -> float:
    """Share of the pairs of a test row and one of its unseen labels that the first k of all labels hold."""
    test = test.without(parts.test.own)
    mask = np.zeros(parts.test.Y.shape[1], np.float32)
    mask[parts.unseen] = 1
    Y = sp.csr_matrix(parts.test.Y @ sp.diags(mask))
    Y.eliminate_zeros()
    first = test.labels[:, :k]
    row, place = np.nonzero(first >= 0)
    return float(np.asarray(Y[row, first[row, place]]).sum() / Y.nnz)


def ranking_of(lists: Lists, n_labels: int) -> Ranking:
    # Only the order counts here, and chances need not fall in it.
    k = lists.labels.shape[1]
    falling = np.broadcast_to(-np.arange(k, dtype=np.float32), lists.labels.shape)
    return Ranking(lists.labels, np.where(lists.labels >= 0, falling, -np.inf).astype(np.float32), n_labels)
