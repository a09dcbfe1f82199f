"""What a system's suggestions are worth, against all subjects that the test records have."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sets import Collection

from metarank import metrics
from metarank.types.candidates import Candidates
from metarank.types.ranking import Ranking

DEPTH = 100


def indicator(of: Collection, part: str) -> sp.csr_matrix:
    """The subjects of records, (n, L) in the order of the set's subjects."""
    place = {uri: i for i, uri in enumerate(of.uris)}
    rows = [sorted({place[uri] for uri in uris}) for _, uris in of.parts[part]]
    indptr = np.cumsum([0, *map(len, rows)])
    indices = np.array([label for row in rows for label in row], np.int32)
    return sp.csr_matrix((np.ones(len(indices), np.float32), indices, indptr), (len(rows), len(of.uris)))


def ranking_of(of: Collection, file: Path) -> Ranking:
    """Suggestions that were kept, in the set's order of subjects. Equal scores are in that order."""
    place = {uri: i for i, uri in enumerate(of.uris)}
    with np.load(file) as kept:
        at = np.array([place.get(uri, -1) for uri in kept["uris"].tolist()])
        if "labels" in kept:
            labels = kept["labels"]
            return Ranking(
                np.where(labels < 0, -1, at[labels]).astype(np.int32), kept["scores"], len(of.uris)
            )
        rows = np.repeat(np.arange(len(kept["indptr"]) - 1), np.diff(kept["indptr"]))
        shape = (len(kept["indptr"]) - 1, len(of.uris))
        scores = sp.csr_matrix((kept["data"], (rows, at[kept["indices"]])), shape)
    return Ranking.from_scores(Candidates.from_csr(scores), DEPTH)


def judged(of: Collection, file: Path) -> dict[str, float | None]:
    """nDCG@10, F1@5 of the five best or of the fewer that are suggested, R@10, and R@10 of subjects without
    a training record.

    Means over records; those of the last two over the records that have such subjects.
    """
    Y, ranking = indicator(of, "test"), ranking_of(of, file)
    found: dict[str, float | None] = dict(metrics.evaluate(Y, ranking, ["nDCG@10", "R@10"]))
    hits = 5 * metrics.per_row(Y, ranking, "P@5")
    suggested = (ranking.labels[:, :5] >= 0).sum(axis=1)
    found["F1@5"] = float(np.mean(2 * hits / (suggested + np.diff(Y.indptr))))
    unseen = indicator(of, "train").getnnz(axis=0) == 0
    for name, columns in (("unseen", unseen), ("unseen, named", unseen & np.array(of.named))):
        only = Y @ sp.diags(columns.astype(np.float32), format="csr")
        only.eliminate_zeros()
        found[name] = metrics.evaluate(only, ranking, ["R@10"])["R@10"] if only.nnz else None
    return found
