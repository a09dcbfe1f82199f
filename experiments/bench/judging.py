"""What lists are worth, computed from the lists alone, alike for all systems; fractions of one."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import scipy.sparse as sp
from list_quality import F1, TAIL, best_f1, tail_recall
from sets import excluded, matrix

from metarank import Ranking, metrics
from metarank.metrics.propensity import inv_propensity

RANKING = (*(f"{name}@{k}" for name in ("P", "nDCG", "PSP") for k in (1, 3, 5)), "R@100", "C@5")
OF_SCORES = ("MAP", "RankLoss", "nDCG", "One-error", "Coverage")
OF_SETS = ("micro-F1", "macro-F1", "Hamming")


def of_lists(folder: Path, lists: Path) -> dict[str, dict[str, float]]:
    """RANKING, TAIL and F1 of each of the lists of a cell, by their names.

    F1 is that of the label sets which the system has cut; for all others that of the best threshold there is.
    """
    Y, Y_test, exclude = matrix(folder, "Y"), matrix(folder, "Y_test"), excluded(folder)
    weights = inv_propensity(Y)
    with np.load(lists) as file:
        arrays = dict(file)
    out = {}
    for name in sorted(
        {key.rpartition("/")[0] for key in arrays if not key.rpartition("/")[2].startswith("cut")}
    ):
        ranking = ranking_of(arrays, name, Y.shape[1], exclude)
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


def ranking_of(arrays: dict, name: str, n_labels: int, exclude: sp.csr_matrix | None = None) -> Ranking:
    """One of the lists of a cell."""
    return Ranking(*allowed(arrays[f"{name}/labels"], arrays[f"{name}/scores"], exclude), n_labels)


def allowed(
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
