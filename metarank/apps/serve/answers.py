"""`Answerer`: bodies of requests in, contents of replies out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain
from typing import Any

import numpy as np
from fastapi import HTTPException

from metarank.apps.annif.suggestions import scores_in_order
from metarank.apps.listed import listed
from metarank.apps.serve.instances import InstanceReader, Rows
from metarank.apps.serve.schema import (
    MOST_EXPLAINED,
    MOST_LABELS,
    MOST_ROWS,
    ExplainRequest,
    RankRequest,
    read_form,
    read_json,
)
from metarank.model.estimator import MetaRanker
from metarank.thresholds.set_metrics import METRICS
from metarank.thresholds.set_sizes import SetSizes

# Sources of evidence that an explanation puts into words.
_N_REASONS = 4


class Answerer:
    """Answers requests with a model. Thread-safe.

    A ranking is what `MetaRanker.rank` returns, bit for bit. All methods raise HTTPException, 422, where the
    request breaks a rule, which the message names.

    Parameters
    ----------
    model : fitted MetaRanker
        Several threads call it at once, so ``n_jobs=1`` is best.

    Raises
    ------
    ValueError
        If no request can hold the model's rows.

    Examples
    --------
    >>> from metarank import MetaRanker, data
    >>> train = data.make_multilabel(100, n_features=3, n_labels=4, seed=0)
    >>> model = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(train)
    >>> reply = Answerer(model).rank(b'{"instance": [0.5, 1, -2], "k": 2}')
    >>> labels = [entry["label"] for entry in reply["rankings"][0]]
    >>> labels == model.rank([[0.5, 1, -2]], k=2).labels[0].tolist()
    True
    """

    def __init__(self, model: MetaRanker) -> None:
        if model.fitted_.given_sources and model.n_features_in_ == 0:
            raise ValueError("a model fitted with X=None cannot be served, since it takes no instances")
        self.model = model
        self.instances: InstanceReader = InstanceReader(model)

    def rank(self, body: bytes) -> dict[str, Any]:
        """The k best labels of one instance or of several, best first."""
        request = read_json(RankRequest, body)
        if (request.instance is None) == (request.instances is None):
            raise HTTPException(422, "give either instance or instances")
        if request.instances is not None:
            return self._ranked(self.instances.read(request.instances, "instances"), request)
        return self._ranked(self.instances.read([request.instance], "instance"), request)

    def explain(self, body: bytes) -> dict[str, Any]:
        """Why labels stand where they do for an instance."""
        request = read_json(ExplainRequest, body)
        rows = self.instances.read([request.instance], "instance")
        limits = _limits(request, True) | {"propensity_weight": request.propensity_weight}
        with _refusing():
            labels = request.labels
            if labels is None:
                labels = [int(v) for v in self.model.rank(rows, k=request.k, **limits).labels[0] if v >= 0]
            explained = [
                self.model.explain(rows, label, n_neighbors=request.n_neighbors, **limits) for label in labels
            ]
        return {
            "explanations": [
                {**one.to_dict(), "reasons": [reason._asdict() for reason in one.reasons(_N_REASONS)]}
                for one in explained
            ]
        }

    def suggest(self, body: bytes) -> dict[str, Any]:
        """The best labels of a text as Annif's `http` backend takes them: subjects with scores in (0, 1].

        Fields `metadata_NAME` are the blocks of that name of a model that has them.
        """
        request, metadata = read_form(body)
        instance: Any = request.text
        if self.instances.kind == "blocks":
            given = metadata | {"text": request.text}
            instance = {name: given[name] for name in self.instances.blocks if name in given}
        rows = self.instances.read([instance], "text")
        ranked = self._ranked(rows, RankRequest.model_validate({"k": request.limit, "probabilities": True}))
        if ranked["without_evidence"][0]:
            return {"results": []}
        (entries,) = ranked["rankings"]
        table = self.model.label_table_
        scores = scores_in_order(np.array([entry["probability"] for entry in entries])).tolist()
        results = []
        for entry, score in zip(entries, scores):
            if score >= request.threshold:
                label = entry["label"]
                name = "" if table.names is None else table.names[label]
                uri = table.ids[label] if table.ids is not None else name or str(label)
                results.append({"uri": uri, "label": name, "score": score})
        return {"results": results}

    def facts(self) -> dict[str, Any]:
        """What a client needs to know about the model and the limits of a request."""
        reader, table = self.instances, self.model.label_table_
        return {
            "input": reader.kind,
            "blocks": {key: part.kind for key, part in reader.blocks.items()} or None,
            "n_features": reader.n_features,
            "feature_names": reader.kind == "features" and reader.feature_names is not None,
            "n_labels": table.n_labels - len(table.removed),
            "label_names": table.names is not None,
            "propensity_weight": self.model.propensity_weight_,
            "optimize": list(METRICS) if self.model.n_rows_ else [],
            "limits": {"max_batch": MOST_ROWS, "max_k": MOST_LABELS, "max_explain": MOST_EXPLAINED},
        }

    def _ranked(self, rows: Rows, request: RankRequest) -> dict[str, Any]:
        """The ranked labels of every row, and which rows are without evidence."""
        k, weight, limits = request.k, request.propensity_weight, _limits(request, request.instances is None)
        probable = kept = worth = None
        with _refusing():
            sizes = SetSizes(request.at_least, request.at_most)
            if request.at_least > k:
                raise ValueError(f"at_least must be at most k, {k}, got {request.at_least}")
            if request.optimize is None and not (request.probabilities or sizes or request.quality):
                ranking = self.model.rank(rows, k=k, propensity_weight=weight, **limits)
            else:
                wanted = request.optimize, request.probabilities, weight, limits, sizes, request.quality
                ranking, probable, kept, worth = self.model._answers(rows, k, *wanted)
        table = self.model.label_table_
        rankings = list(listed(ranking, table, probable, kept))
        if table.names is None:
            for entry in chain(*rankings):
                del entry["name"]
        answer: dict[str, Any] = {"rankings": rankings, "without_evidence": ranking.without_evidence.tolist()}
        if worth is not None:  # JSON has no NaN
            rows_of = zip(*(of.tolist() for of in worth.values()))
            answer["quality"] = [
                {name: None if value != value else value for name, value in zip(worth, row)}
                for row in rows_of
            ]
        named = (_labels_of(row) for of in limits.get("candidates", {}).values() for row in of)
        if unknown := sum(not table.knows(label) for label in chain(*named)):
            answer["unknown_candidates"] = unknown
        return answer


def _labels_of(row: Any) -> list[Any]:
    """The labels of the candidates of a row, with scores or without."""
    return [item[0] if isinstance(item, list) and item else item for item in row]


@contextmanager
def _refusing() -> Iterator[None]:
    """What the model refuses, by ValueError or TypeError, is the client's fault; the message says why."""
    try:
        yield
    except (ValueError, TypeError) as error:
        raise HTTPException(422, str(error)) from None


def _limits(request: RankRequest | ExplainRequest, is_one: bool) -> dict[str, Any]:
    """What a request says of labels and pairs, as arguments of the model; of one instance without a list."""
    given = {"candidates": request.candidates, "pair_features": request.pair_features}
    limits: dict[str, Any] = {
        field: {name: [pairs] if is_one else pairs for name, pairs in of.items()}
        for field, of in given.items()
        if of is not None
    }
    limits |= {"allowed": request.allowed, "exclude": request.exclude, "known": request.known}
    return {field: value for field, value in limits.items() if value is not None}
