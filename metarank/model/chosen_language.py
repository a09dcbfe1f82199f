"""`chosen_language`: the language of the texts of a fit, where words count by their stems."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import scipy.sparse as sp

from metarank._util.progress import note
from metarank.data.encoder import InputEncoder
from metarank.data.vectorizer import language_of
from metarank.metrics.ranking_metrics import ndcg
from metarank.scorers.names.words import NameScorer
from metarank.scorers.neighbors.voting import NeighborShortlister
from metarank.types.view import TrainingSet, fold_of_rows

# Rows by which languages are judged; a fifth of them is held out. Candidates that each source proposes.
_MOST_ROWS, _N_FOLDS, _N_CANDIDATES = 5_000, 5, 50


def chosen_language(
    texts: Sequence[str],
    Y: sp.csr_matrix,
    label_names: Sequence[str] | None,
    *,
    groups: np.ndarray | None = None,
    seed: int = 0,
    n_jobs: int = 1,
) -> str | None:
    """The language whose stems a model should take for the words of texts; None: words as they are.

    It is the language that the commonest words show (`language_of`), if stems serve at least as well as words
    by nDCG@5 on held-out rows: a fifth of at most 5,000 rows, ranked by the votes of neighbours plus
    the cosine of label names. A note says what was chosen, and why.

    Parameters
    ----------
    texts : sequence of str (n)
    Y : float32 CSR (n, L)
    label_names : sequence of str (L) or None
        Names, if they carry meaning.
    groups : int array (n,) or None
        Rows of one group are held out together, as are rows of the same text.
    """
    found = language_of(texts)
    if found is None:
        note("language: not clear from the texts, so words count as they are")
        return None
    rows = np.sort(np.random.default_rng(seed).permutation(len(texts))[:_MOST_ROWS])
    texts, Y, groups = [texts[row] for row in rows], Y[rows], None if groups is None else groups[rows]
    fold = fold_of_rows(len(rows), _N_FOLDS, seed, InputEncoder().fit_encode(texts), groups)
    plain, stemmed = (
        held_out_quality(kind, texts, Y, label_names, fold, n_jobs=n_jobs) for kind in (None, found)
    )
    chosen = found if stemmed >= plain else None
    note(
        f"language: {found}; {'stems' if chosen else 'words as they are'}, by nDCG@5 on held-out rows "
        f"({100 * stemmed:.1f} with stems, {100 * plain:.1f} without)"
    )
    return chosen


def held_out_quality(
    language: str | None,
    texts: Sequence[str],
    Y: sp.csr_matrix,
    label_names: Sequence[str] | None,
    fold: np.ndarray,
    *,
    n_jobs: int = 1,
) -> float:
    """nDCG@5, a fraction, of neighbours and names on the rows of fold 0, with stems of a language or words.

    It is 0 if there are no rows in fold 0, or no others.
    """
    encoder = InputEncoder(language=language)
    X = encoder.fit_encode(texts)
    names = encoder.label_text(X, label_names, None, None)
    data = TrainingSet(X, Y, fold, label_text=names)
    held_out, seen = np.flatnonzero(fold == 0), data.without_fold(0)
    if not len(held_out) or not seen.n_rows:
        return 0.0
    sources = [NeighborShortlister(), *([] if names is None else [NameScorer()])]
    scores = sp.csr_matrix((len(held_out), Y.shape[1]), dtype=np.float32)
    for source in sources:
        proposed = source.fit(seen, n_jobs=n_jobs).shortlist(X[held_out], _N_CANDIDATES, n_jobs=n_jobs)
        scores = scores + proposed.to_csr()
    return ndcg(Y[held_out], scores, 5)
