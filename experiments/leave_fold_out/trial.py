"""What is measured of one scheme with one number of folds, on one set."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.base import clone

from metarank import MetaRanker, Ranking, metrics
from metarank._util.threads import single_threaded_blas
from metarank.data import Dataset, load_named, make_extreme
from metarank.metrics.propensity import inv_propensity
from metarank.scorers.base import HeldOutColumns
from metarank.scorers.crossfit import held_out_columns, held_out_shortlist
from metarank.types.candidates import Candidates
from metarank.types.view import TrainingSet, fold_of_rows

SEED = 0
K = 100  # labels proposed for a row
VALIDATION = 0.2
MADE = "made"
_BESIDE = Path(__file__).resolve().parents[3] / "shared" / "data"

Figures = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """The training part of a set, cut into rows to learn from and rows that are new to the model."""

    name: str
    train: Dataset
    new: Dataset

    @property
    def checksum(self) -> str:
        """sha256 of features and labels of both parts."""
        digest = hashlib.sha256()
        for part in (self.train, self.new):
            for matrix in (sp.csr_matrix(part.X), part.Y):
                for array in (matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32), matrix.data):
                    digest.update(array.tobytes())
        return digest.hexdigest()


def problem(name: str) -> Problem:
    """A named set, or the one that is made.

    Raises
    ------
    FileNotFoundError
        If the set is not there; the message says where it is looked for.
    """
    if name == MADE:
        whole = make_extreme(3_000, 3_000, 1_000, seed=SEED)
    else:
        whole = load_named(name, "train", data_dir=os.environ.get("METARANK_DATA") or _BESIDE)
    # At random: a stratified split would keep every label of one row for training.
    is_new = np.random.default_rng(SEED).random(whole.n_rows) < VALIDATION
    return Problem(name, whole.take(np.flatnonzero(~is_new)), whole.take(np.flatnonzero(is_new)))


def held_out(scorer: Any, of: Problem, n_folds: int) -> Figures:
    """CPU seconds; shortlists and scores of held-out training rows, and those of new rows beside.

    The cost is that of everything a ranker asks of the scheme: choosing free parameters, the fits, proposing
    labels, and scoring the pairs. A plain fit is one on all rows, choosing included.
    """
    n = of.train.n_rows
    data = TrainingSet(sp.csr_matrix(of.train.X), of.train.Y, fold_of_rows(n, n_folds, SEED), seed=SEED)
    rows = np.arange(n)
    fits: dict[int, Any] = {}
    with single_threaded_blas():
        start = time.process_time()
        tuned = scorer.tuned(data.view(), n_jobs=1)
        chosen = time.process_time()
        if not isinstance(tuned, HeldOutColumns):
            fits = {f: clone(tuned).fit(data.without_fold(f), n_jobs=1) for f in range(n_folds)}
        refitted = time.process_time()
        found = held_out_shortlist(tuned, data, K, rows=rows, fits=fits)
        held_out_columns(tuned, data, found, rows=rows, fits=fits)
        described = time.process_time()
        fitted = tuned.fit(data.view(), n_jobs=1)
        fit = time.process_time() - described
    of_new = sp.csr_matrix(of.new.X)
    # What is chosen, the shared hierarchy or the C of the ridge, is a part of a plain fit too.
    out: Figures = {
        "fit_cpu_s": fit + chosen - start,
        "refits_cpu_s": refitted - start,
        "held_out_cpu_s": described - start,
    }

    relevant = Candidates.from_csr(of.train.Y)
    pairs = Candidates(found.indptr, found.labels, found.n_labels).union(
        Candidates(relevant.indptr, relevant.labels, relevant.n_labels)
    )
    scores = held_out_columns(tuned, data, pairs, rows=rows, fits=fits)[tuned.column]
    one_hot = sp.csr_matrix((np.ones(n), (data.fold, rows)), shape=(n_folds, n))
    of_others = of.train.Y.getnnz(axis=0) - (one_hot @ (of.train.Y > 0)).toarray()
    seen = of_others[data.fold[pairs.row_of_pair], pairs.labels] > 0
    out["held out"] = _described(of.train.Y, found, pairs, scores, seen)

    proposals = fitted.shortlist(of_new, K)
    relevant = Candidates.from_csr(of.new.Y)
    pairs = Candidates(proposals.indptr, proposals.labels, proposals.n_labels).union(
        Candidates(relevant.indptr, relevant.labels, relevant.n_labels)
    )
    seen = (of.train.Y.getnnz(axis=0) > 0)[pairs.labels]
    scores = fitted.score(of_new, pairs)[tuned.column]
    out["new"] = _described(of.new.Y, proposals, pairs, scores, seen)
    return out


def _described(
    Y: sp.csr_matrix, found: Candidates, pairs: Candidates, scores: np.ndarray, seen: np.ndarray
) -> dict[str, float]:
    """Quality of the proposals, and the scores of relevant and irrelevant pairs.

    `seen`: whether the label of a pair has a relevant row among those the score was learned from.
    """
    relevant = pairs.values_of(Y) > 0
    good, bad = scores[relevant & seen], scores[~relevant & seen]
    quality = metrics.evaluate(Y, Ranking.from_scores(found, K), (f"R@{K}", "nDCG@5"), n_jobs=1)
    return {
        **{name: 100 * value for name, value in quality.items()},
        "unseen": 100 * float(1 - seen[relevant].mean()),
        "relevant": float(good.mean(dtype=np.float64)),
        "spread": float(good.std(dtype=np.float64)),
        "irrelevant": float(bad.mean(dtype=np.float64)),
    }


def ranker(scorer: Any, of: Problem, n_folds: int) -> Figures:
    """nDCG@5 and PSP@5 of each new row, from a LambdaRank that the scheme proposes and describes for."""
    start = time.process_time()
    model = MetaRanker(
        shortlister=scorer, ranker="lambdarank", n_folds=n_folds, n_jobs=1, random_state=SEED
    ).fit(of.train)
    cpu = time.process_time() - start
    return {"cpu_s": cpu, **_by_row(of, model.rank(of.new, k=5))}


def alone(scorer: Any, of: Problem) -> Figures:
    """The same of the scorer without a ranker."""
    fitted = scorer.fit(TrainingSet(sp.csr_matrix(of.train.X), of.train.Y, np.zeros(of.train.n_rows)).view())
    return _by_row(of, Ranking.from_scores(fitted.shortlist(sp.csr_matrix(of.new.X), K), 5))


def _by_row(of: Problem, ranking: Ranking) -> Figures:
    inverse = inv_propensity(of.train.Y)
    return {
        name: metrics.per_row(of.new.Y, ranking, name, inv_propensity=inverse, n_jobs=1).tolist()
        for name in ("nDCG@5", "PSP@5")
    }
