"""`block_weights`: how much each block of an instance weighs beside the others, by held-out rows.

Classifiers and trees see all blocks as one matrix, in which what is larger counts for more. A kernel ridge on
some rows, whose kernel is the weighted sum of those of the blocks, tells from held-out rows which weights
serve, and which blocks earn their cost.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from metarank._util.progress import note
from metarank.data.vectorizer import language_of
from metarank.metrics import per_row
from metarank.ranker.lists import drawn
from metarank.scorers.classical.kernels import linear_gram
from metarank.scorers.linear.shared_ridge import inverse_with
from metarank.types.block_columns import BlockColumns
from metarank.types.view import Features

# Rows and labels that decide: more cost more than they tell.
_ROWS, _LABELS = 1500, 2000
# Weights of a block relative to the best one, and penalties of the ridge.
_WEIGHTS = (0.25, 0.5, 1.0, 2.0)
_PENALTIES = (0.1, 0.5)
# Standard errors by which a block must be of use.
_STANDARD_ERRORS = 1.0
_SEED_SHIFT = 7_000_003


def block_weights(
    blocks: Sequence[BlockColumns],
    X: Features,
    Y: sp.csr_matrix,
    fold: np.ndarray,
    seed: int,
    kept: Sequence[str] = (),
) -> tuple[dict[str, float], list[str]]:
    """The weight of each block, 0 for those that are of no use, and a line about each.

    The block that ranks best alone comes first. Each of the others gets the weight of greatest nDCG@5 beside
    those before it. It is left out if that gain is below one standard error of the difference between rows.

    Parameters
    ----------
    blocks : sequence of BlockColumns
    X : features (n, d) of all blocks, each with rows of unit length on average
    Y : CSR (n, L)
    fold : int array (n,)
        A row is scored by a fit without its fold.
    seed : int
        Draws up to 1,500 rows.
    kept : sequence of str
        Blocks that are never left out.

    Returns
    -------
    dict of name to float
        Their squares sum to 1, so that rows have unit length on average.
    list of str
    """
    rows = drawn(X.shape[0], _ROWS, seed + _SEED_SHIFT)
    frequent = _frequent(Y[rows])
    if not frequent.shape[1]:
        even = float(1 / np.sqrt(len(blocks)))
        why = f"weight {even:.2f}, as of all blocks, since no label has two rows"
        return {b.name: even for b in blocks}, [f"block {b.name}: {b.kind}, {why}" for b in blocks]
    judge = _Judge({block.name: linear_gram(block.of(X[rows]), 1) for block in blocks}, frequent, fold[rows])
    alone = {block.name: judge.quality({block.name: 1.0}) for block in blocks}
    order = sorted(alone, key=lambda name: -float(np.mean(alone[name])))
    weights, reached = {order[0]: 1.0}, alone[order[0]]
    for name in order[1:]:
        quality = {w: judge.quality(weights | {name: w}) for w in _WEIGHTS}
        best = max(quality, key=lambda w: float(np.mean(quality[w])))
        gain = quality[best] - reached
        error = float(gain.std()) / max(1.0, np.sqrt(len(gain)))
        if float(gain.mean()) > _STANDARD_ERRORS * error:
            weights[name], reached = best, quality[best]
        else:
            weights[name] = _WEIGHTS[0] if name in kept else 0.0
    length = float(np.sqrt(sum(w**2 for w in weights.values())))
    weights = {block.name: weights[block.name] / length for block in blocks}
    left_out = "left out, of no use to held-out rows"
    use = {name: f"weight {w:.2f}" if w else left_out for name, w in weights.items()}
    return weights, [f"block {block.name}: {block.kind}, {use[block.name]}" for block in blocks]


class _Judge:
    """Held-out loss of weights: the exact leave-fold-out scores of a kernel ridge."""

    def __init__(self, grams: Mapping[str, np.ndarray], Y: sp.csr_matrix, fold: np.ndarray) -> None:
        self.grams, self.Y = grams, Y
        self.parts = [(np.flatnonzero(fold == f), np.flatnonzero(fold != f)) for f in np.unique(fold)]
        self.dense = Y.toarray()

    def quality(self, weights: Mapping[str, float]) -> np.ndarray:
        """nDCG@5 of each row that has labels, float64, under the better of two penalties."""
        length = sum(w**2 for w in weights.values())
        kernel = sum(np.float64(w**2 / length) * self.grams[name] for name, w in weights.items() if w)
        by_penalty = [self._ndcg(np.asarray(kernel), penalty) for penalty in _PENALTIES]
        return max(by_penalty, key=lambda values: float(np.mean(values)))

    def _ndcg(self, kernel: np.ndarray, penalty: float) -> np.ndarray:
        inverse = inverse_with(kernel.copy(), penalty)
        scores = np.empty_like(self.dense)
        for part, others in self.parts:
            between = inverse[np.ix_(part, others)] @ self.dense[others]
            scores[part] = -scipy.linalg.solve(inverse[np.ix_(part, part)], between, assume_a="pos")
        values = per_row(self.Y, np.ascontiguousarray(scores, np.float32), "nDCG@5")
        return values[~np.isnan(values)]


def _frequent(Y: sp.csr_matrix) -> sp.csr_matrix:
    """The columns of the most frequent labels that at least two rows have, as 0 and 1."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    order = np.argsort(-counts, kind="stable")[:_LABELS]
    return sp.csr_matrix(Y[:, np.sort(order[counts[order] > 1])] > 0, dtype=np.float64)


def chosen_language(texts: Sequence[str]) -> str | None:
    """The language whose stems stand for the words of texts; None: words as they are. A note says which.

    What stems bring, by set, is on `experiments/names.md`; on titles of products it is nothing.
    """
    language = language_of(text for text in texts if isinstance(text, str))  # others are refused by name
    unclear = "none or several, so words are not stemmed"
    note(f"language: {unclear if language is None else f'{language}, whose stems are used'}")
    return language
