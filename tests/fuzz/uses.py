"""What a model that was loaded is asked, and what its answers must be.

Every answer is either an error of one line (`ValueError`) or finite, of labels that the model has, each once
a row, best first. Anything else is a `Failure`.
"""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

from metarank import MetaRanker, MultiObjectiveRanker, load, persist
from metarank.persist.folder import parsed
from metarank.scorers.base import LabelScorer, columns_of
from metarank.types.candidates import Candidates

# Of the questions beside the first, so many are drawn for a mutant.
_OTHERS = 3


class Failure(Exception):
    """A promise that was not kept."""


def use(model: Any, rows: Any, rng: random.Random, scratch: Path) -> list[str]:
    """Ask a model for an answer, and some of what else models are asked; what it refused, in that order."""
    first, *others = next((q for kind, q in _QUESTIONS.items() if isinstance(model, kind)), _EMBEDDER)
    if not isinstance(rows, list) and rng.random() < 0.1:
        rows = rows * np.float32(rng.choice((1e-30, 1e30, 1e38)))
    refused = []
    for ask in [first, *rng.sample(others, min(_OTHERS, len(others)))]:
        try:
            ask(model, rows, rng, scratch)
        except ValueError as error:
            refuse_memory_error(error)
            if isinstance(error, UnicodeError) or "\n" in str(error):
                raise Failure(f"an error that says not what is wrong: {error!r}") from error
            refused.append(f"{ask.__name__.strip('_')}: {outline(error)}")
    return refused


# --- of every kind of model -----------------------------------------------------


def _rank(model: MetaRanker, rows: Any, rng: random.Random, scratch: Path) -> None:
    check_ranking(model.rank(rows, k=4), model.n_labels_)
    weight = rng.choice((0.0, 0.5, 10.0))
    check_ranking(model.rank(rows, k=4, propensity_weight=weight), model.n_labels_)


def _probabilities(model: MetaRanker, rows: Any, rng: random.Random, scratch: Path) -> None:
    proba = model.predict_proba(rows)
    values = proba.data if sp.issparse(proba) else proba
    if not np.all((values >= 0) & (values <= 1)):
        raise Failure("a probability outside of [0, 1]")


def _cut(model: MetaRanker, rows: Any, rng: random.Random, scratch: Path) -> None:
    for metric in ("micro-f1", "subset-accuracy", "example-f1", rng.choice(("hamming", "macro-f1"))):
        kept = model.predict(rows, optimize=metric)
        if sp.issparse(kept) and kept.shape != (_n_rows(rows), model.n_labels_):
            raise Failure("decisions of another shape")


def _explain(model: MetaRanker, rows: Any, rng: random.Random, scratch: Path) -> None:
    label = int(max(0, model.rank(rows[:1], k=1).labels[0, 0]))
    found = model.explain(rows[:1], label)
    str(found)
    _check_strict(found.to_dict())
    parts = [found.score, found.probability, found.base, *(c[2] for c in found.contributions)]
    if not np.isfinite(parts).all():
        raise Failure("an explanation with numbers that are not finite")


def _missing(model: MetaRanker, rows: Any, rng: random.Random, scratch: Path) -> None:
    for pair in model.suggest_missing(20):
        pair_ok = 0 <= pair.label < model.n_labels_ and 0 <= pair.probability <= 1 and pair.row >= 0
        if not pair_ok or (model.n_rows_ is not None and pair.row >= model.n_rows_):
            raise Failure(f"a missing label that is none: {pair}")


def _serve(model: MetaRanker, rows: Any, rng: random.Random, scratch: Path) -> None:
    """Replies are JSON without NaN; what the service refuses the model refuses too."""
    from fastapi import HTTPException

    from metarank.apps.serve.answers import Answerer

    answerer, instance = Answerer(model), _instance(rows)
    asked = {
        "rank": ({"k": 3, "probabilities": True, "optimize": "micro-f1"}, (_rank, _probabilities, _cut)),
        "explain": ({}, (_explain,)),
    }
    for path, (more, questions) in asked.items():
        body = json.dumps({"instance": instance, **more}).encode()
        try:
            _check_strict(getattr(answerer, path)(body))
        except HTTPException as error:
            for ask in questions:
                ask(model, rows[:1], rng, scratch)
            raise Failure(f"status {error.status_code} of /{path}: {error.detail[:200]!r}") from None


def _update_labels(model: MetaRanker, rows: Any, rng: random.Random, scratch: Path) -> None:
    """Labels that come and go, in a model of its own; afterwards it ranks, and is saved."""
    names = model.label_names_
    last = int(np.setdiff1d(np.arange(model.n_labels_), model.removed_)[-1])
    changed = _copy(model)
    changed.update_labels(add=["a new label"] if names is not None else 1)
    changed.update_labels(remove=[last])
    ranking = changed.rank(rows, k=4)
    check_ranking(ranking, changed.n_labels_)
    if last in ranking.labels:
        raise Failure("a label that was removed")


def _partial_fit(model: MetaRanker, rows: Any, rng: random.Random, scratch: Path) -> None:
    more = _copy(model)
    known = np.setdiff1d(np.arange(more.n_labels_), more.removed_)
    Y = np.zeros((_n_rows(rows), more.n_labels_), np.float32)
    Y[:, known[:2]] = 1
    more.partial_fit(rows, Y)
    check_ranking(more.rank(rows, k=4), more.n_labels_)


def _save_again(model: Any, rows: Any, rng: random.Random, scratch: Path) -> None:
    """What was loaded is saved, its manifest is JSON, and what is loaded from there answers alike."""
    persist.save(model, scratch / "again")
    parsed((scratch / "again" / "manifest.json").read_text(encoding="utf-8"))
    again = load(scratch / "again", verify=False)
    one, other = (_answer(m, rows) for m in (model, again))
    if any(a.tobytes() != b.tobytes() for a, b in zip(one, other)):
        raise Failure("saved again it answers otherwise")


def _shortlist(model: Any, rows: Any, rng: random.Random, scratch: Path) -> None:
    n_labels = model.named_sizes()["L"]
    for k in (1, 5, 1000):
        check_candidates(model.shortlist(rows, k), n_labels)


def _points(model: Any, rows: Any, rng: random.Random, scratch: Path) -> None:
    if hasattr(model, "shortlist_points"):
        check_candidates(model.shortlist_points(rows, 2), _n_rows(rows))


def _score(model: Any, rows: Any, rng: random.Random, scratch: Path) -> None:
    pairs = Candidates.all_labels(_n_rows(rows), model.named_sizes()["L"])
    for name, values in columns_of(model, rows, pairs).items():
        if not np.isfinite(values).all():
            raise Failure(f"column {name} is not finite")


def _objectives(model: MultiObjectiveRanker, rows: Any, rng: random.Random, scratch: Path) -> None:
    scores = model.predict(rows)
    if scores.shape != (len(rows),) or not np.isfinite(scores).all():
        raise Failure("scores of another shape, or not finite")
    model.contributions(np.ascontiguousarray(rows, np.float32))


def _embedded(model: Any, rows: Any, rng: random.Random, scratch: Path) -> None:
    check_ranking(model.rank(rows, k=2), model.n_labels_)
    if model.combine != "id":
        more = model.add_labels(["a new name"])
        check_ranking(more.rank(rows, k=2), more.n_labels_)


_EMBEDDER: list[Callable[..., None]] = [_embedded, _save_again]
_RANKER: list[Callable[..., None]] = [_rank, _probabilities, _cut, _explain, _missing, _serve, _save_again]
_QUESTIONS: dict[type, list[Callable[..., None]]] = {
    MetaRanker: [*_RANKER, _update_labels, _partial_fit],
    MultiObjectiveRanker: [_objectives, _save_again],
    LabelScorer: [_shortlist, _points, _score, _save_again],
}


def check_ranking(ranking: Any, n_labels: int) -> None:
    """`Failure` unless it names labels of the model, each once, with finite scores, best first."""
    labels, scores = ranking.labels, ranking.scores
    if labels.size and (labels.min() < -1 or labels.max() >= n_labels):
        raise Failure("a label that the model does not have")
    listed = labels >= 0
    if not np.isfinite(scores[listed]).all():
        raise Failure("a score that is not finite")
    if np.any((scores[:, 1:] > scores[:, :-1]) & listed[:, 1:]):
        raise Failure("scores that do not fall")
    for row in labels:
        if len(np.unique(row[row >= 0])) < np.count_nonzero(row >= 0):
            raise Failure("a label twice in a row")


def check_candidates(found: Candidates, n_labels: int) -> None:
    """`Failure` unless they are ascending, distinct labels below `n_labels`, with finite scores."""
    try:
        Candidates(found.indptr, found.labels, n_labels, found.scores)
    except ValueError as error:
        raise Failure(str(error)) from error
    for name, values in found.scores.items():
        if not np.isfinite(values).all():
            raise Failure(f"score {name} is not finite")


def _check_strict(content: Any) -> None:
    """`Failure` unless it is JSON as the standard has it, or can be written so."""
    try:
        parsed(content if isinstance(content, bytes) else json.dumps(content, allow_nan=False))
    except ValueError as error:
        raise Failure(f"no JSON: {error}") from error


def _answer(model: Any, rows: Any) -> list[np.ndarray]:
    if isinstance(model, MultiObjectiveRanker):
        return [model.predict(rows)]
    if isinstance(model, LabelScorer):
        found = model.shortlist(rows, 5)  # type: ignore[attr-defined]
        return [found.labels, *found.scores.values()]
    ranking = model.rank(rows, k=4)
    return [ranking.labels, ranking.scores]


def _copy(model: MetaRanker) -> MetaRanker:
    """The same parts in another estimator, whose labels and rows may change."""
    other: MetaRanker = object.__new__(type(model))
    other.__dict__.update(model.__dict__)
    return other


def _n_rows(rows: Any) -> int:
    return len(rows) if isinstance(rows, list) else rows.shape[0]


def _instance(rows: Any) -> Any:
    """The first row as the service takes it."""
    if isinstance(rows, list):
        return rows[0]
    return (rows[:1].toarray() if sp.issparse(rows) else rows)[0].tolist()


# --- what came of a mutant -------------------------------------------------------


def refuse_memory_error(error: BaseException) -> None:
    """`Failure` where an error goes back to memory that could not be had."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, MemoryError):
            raise Failure(f"memory: {error}") from error
        cause = cause.__cause__


def outline(error: BaseException) -> str:
    """What an error says, without what differs between two of its kind."""
    text = re.sub(r"'[^']*'|\"[^\"]*\"", "'…'", str(error))
    return f"{type(error).__name__}: {re.sub(r'-?[0-9][0-9.e+-]*', '#', text)[:100]}"
