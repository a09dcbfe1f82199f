"""What lists are worth, computed from the lists alone, alike for all systems; fractions of one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from sets import matrix

from metarank import Ranking, metrics
from metarank.metrics.propensity import inv_propensity

RANKING = (*(f"{name}@{k}" for name in ("P", "nDCG", "PSP") for k in (1, 3, 5)), "R@100", "C@5")
TAIL = "tail R@5"
TAIL_POINTS = 5  # a tail label has 1 to 5 training points
OF_SCORES = ("MAP", "RankLoss", "nDCG", "One-error", "Coverage")
OF_SETS = ("micro-F1", "macro-F1", "Hamming")
F1 = ("micro-F1", "macro-F1", "example-F1")


def of_lists(folder: Path, lists: Path) -> dict[str, dict[str, float]]:
    """RANKING, TAIL and F1 of each of the lists of a cell, by their names.

    F1 is that of the label sets which the system has cut; for all others that of the best threshold there is.
    """
    Y, Y_test = matrix(folder, "Y"), matrix(folder, "Y_test")
    exclude = matrix(folder, "exclude_test") if (folder / "exclude_test.npz").is_file() else None
    weights = inv_propensity(Y)
    with np.load(lists) as file:
        arrays = dict(file)
    out = {}
    for name in sorted(
        {key.rpartition("/")[0] for key in arrays if not key.rpartition("/")[2].startswith("cut")}
    ):
        ranking = Ranking(*_allowed(arrays[f"{name}/labels"], arrays[f"{name}/scores"], exclude), Y.shape[1])
        values = metrics.evaluate(Y_test, ranking, RANKING, inv_propensity=weights, n_jobs=1)
        values[TAIL] = tail_recall(Y, Y_test, ranking)
        cuts = {metric: _label_set(arrays, metric, Y_test.shape, exclude) for metric in F1}
        if name == "" and None not in cuts.values():
            for metric, cut in cuts.items():
                values |= metrics.evaluate(Y_test, None, [metric], Y_pred=cut)
        else:
            values |= best_f1(Y_test, ranking)
        out[name] = {metric: float(value) for metric, value in values.items()}
    return out


def of_scores(folder: Path, answers: Path) -> dict[str, dict[str, float]]:
    """The metrics of Yang & Gopal (2012) of scores (n, L), and of label sets by rule: "RULE METRIC"."""
    Y_test = matrix(folder, "Y_test").toarray()
    with np.load(answers) as file:
        arrays = dict(file)
    if "scores" not in arrays:
        return {"": {}}
    values = metrics.evaluate(Y_test, arrays.pop("scores"), OF_SCORES, n_jobs=1)
    for name, sets in arrays.items():
        rule, _, metric = name.partition(" ")
        for judged in [metric] if metric else OF_SETS:
            values[f"{rule} {judged}"] = metrics.evaluate(
                Y_test, None, [judged], Y_pred=sets.astype(np.int8)
            )[judged]
    return {"": {name: float(value) for name, value in values.items()}}


def tail_recall(Y: sp.csr_matrix, Y_test: sp.csr_matrix, ranking: Ranking) -> float:
    """Share of all test labels with 1 to 5 training points that are among the first five."""
    counts = np.bincount(Y.indices, minlength=Y.shape[1])
    is_tail = (counts > 0) & (counts <= TAIL_POINTS)
    tail = sp.csr_matrix(Y_test @ sp.diags(is_tail.astype(np.float32)))
    tail.eliminate_zeros()
    found = metrics.evaluate(tail, ranking, ["P@5"])["P@5"] * 5 * tail.shape[0]
    return found / tail.nnz if tail.nnz else float("nan")


def _allowed(
    labels: np.ndarray, scores: np.ndarray, exclude: sp.csr_matrix | None
) -> tuple[np.ndarray, np.ndarray]:
    """The lists without what is out of the question, the rest moved up."""
    if exclude is None:
        return labels, scores
    row = np.broadcast_to(np.arange(len(labels))[:, None], labels.shape)
    named = np.asarray(exclude[row.ravel(), labels.ravel()]).reshape(labels.shape) > 0
    out = named & (labels >= 0)
    labels, scores = np.where(out, -1, labels), np.where(out, -np.inf, scores)
    order = np.argsort(out, axis=1, kind="stable")
    return np.take_along_axis(labels, order, 1), np.take_along_axis(scores, order, 1)


def _label_set(
    arrays: dict, metric: str, shape: tuple, exclude: sp.csr_matrix | None
) -> sp.csr_matrix | None:
    if f"{metric.lower()}/cut indptr" not in arrays:
        return None
    labels = arrays[f"{metric.lower()}/cut labels"]
    indptr = arrays[f"{metric.lower()}/cut indptr"]
    cut = sp.csr_matrix((np.ones(len(labels), np.float32), labels, indptr), shape=shape)
    return cut if exclude is None else sp.csr_matrix(cut - cut.multiply(exclude))


def best_f1(Y_true: sp.csr_matrix, ranking: Ranking) -> dict[str, float]:
    """The greatest micro-, macro- and example-F1 over all thresholds, each with a threshold of its own."""
    listed = ranking.labels >= 0
    row, label, score = np.nonzero(listed)[0], ranking.labels[listed], ranking.scores[listed]
    order = np.argsort(-score, kind="stable")
    row, label, score = row[order], label[order], score[order]
    hit = np.asarray(Y_true[row, label]).ravel() > 0
    # Pairs of one score are cut together.
    possible = np.append(score[1:] != score[:-1], True)[: len(score)]
    groups = {
        "micro-F1": (np.zeros_like(row), np.array([Y_true.nnz]), 0.0),
        "macro-F1": (label, np.bincount(Y_true.indices, minlength=Y_true.shape[1]), 0.0),
        "example-F1": (row, np.diff(Y_true.indptr), 1.0),
    }
    values = {}
    for name, (group, relevant, empty) in groups.items():
        nothing, growing = _mean_f1(hit, group, relevant, empty)
        values[name] = float(max(nothing, growing[possible].max(initial=0.0)))
    return values


def _mean_f1(
    hit: np.ndarray, group: np.ndarray, relevant: np.ndarray, empty: float
) -> tuple[float, np.ndarray]:
    """Mean over groups of F1 with no pair, and with the first 1, 2, ... pairs, which come best score first.

    relevant : relevant pairs of each group; empty : F1 of a group without relevant and predicted pairs
    """
    by_group = np.argsort(group, kind="stable")
    g, h = group[by_group], hit[by_group].astype(np.int64)
    sizes = np.bincount(g, minlength=len(relevant))
    start = np.cumsum(sizes) - sizes
    predicted = np.arange(len(g)) - start[g] + 1
    before_group = np.concatenate([[0], np.cumsum(h)])[start]
    hits = np.cumsum(h) - before_group[g]
    change = np.empty(len(g))
    change[by_group] = _f1(hits, predicted + relevant[g], empty) - _f1(
        hits - h, predicted - 1 + relevant[g], empty
    )
    nothing = empty * np.count_nonzero(relevant == 0)
    return nothing / len(relevant), (nothing + np.cumsum(change)) / len(relevant)


def _f1(hits: np.ndarray, positives: np.ndarray, empty: float) -> np.ndarray:
    return np.divide(2.0 * hits, positives, out=np.full(hits.shape, empty), where=positives > 0)
