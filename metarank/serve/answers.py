"""`Answerer`: bodies of requests in, replies out; requests that wait together are ranked together."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np
import scipy.sparse as sp

from metarank._validation import ScoresNotFiniteError
from metarank.label_table import LabelTable
from metarank.pipeline import MetaRanker
from metarank.report.words import reasons
from metarank.serve.errors import Refused, invalid
from metarank.serve.instances import InputReader, Rows
from metarank.serve.options import ServeOptions
from metarank.serve.schema import ExplainRequest, RankRequest, read_body

logger = logging.getLogger("metarank.serve")

# Sources of evidence that an explanation puts into words.
_N_REASONS = 4

Observer: TypeAlias = Callable[[str, float], None]


class Call(NamedTuple):
    """A request to be answered."""

    path: Literal["rank", "explain"]
    body: bytes


class Reply(NamedTuple):
    """What a client gets: status, JSON, and why it was refused, if it was."""

    status: int
    body: bytes
    reason: str = ""
    retry_after: int | None = None


def reply_to(refused: Refused) -> Reply:
    """The reply to a request that is refused: the message, and the field where it is one field's fault.

    Examples
    --------
    >>> reply_to(Refused(404, "no such page")).body
    b'{"error": "no such page"}'
    """
    content = {"error": refused.message, **({} if refused.field is None else {"field": refused.field})}
    return Reply(refused.status, json.dumps(content).encode(), refused.reason, refused.retry_after)


@dataclass
class _Ranked:
    """A request to rank, read and checked. `limits` are arguments of the model's methods."""

    index: int
    rows: Rows
    n_rows: int
    request: RankRequest
    limits: dict[str, Any]

    @property
    def company(self) -> tuple[Any, ...] | None:
        """Requests of equal company may be ranked as one batch; None goes alone.

        `k` does not count: the k best are the first of more. But with a list of allowed labels the
        candidates depend on it.
        """
        if self.limits or self.request.propensity_weight is not None:
            return None
        return self.request.optimize, self.request.probabilities


class Answerer:
    """Answers requests by a model.

    A reply is what `MetaRanker.rank` gives for the request alone, bit for bit, whatever else waits: rows are
    scored independently of their batch. Safe to be called by several threads.

    Parameters
    ----------
    model : fitted MetaRanker
        Asked by several threads at once, so best with ``n_jobs=1``.
    options : ServeOptions
    observe : callable (stage, seconds), optional
        Told how long each stage took: "read", "model", "write".

    Examples
    --------
    >>> from metarank import MetaRanker, data
    >>> train = data.make_multilabel(100, n_features=3, n_labels=4, seed=0)
    >>> model = MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(train)
    >>> answerer = Answerer(model, ServeOptions())
    >>> reply = answerer.answer_one(Call("rank", b'{"instance": [0.5, 1, -2], "k": 2}'))
    >>> ranking = json.loads(reply.body)["rankings"][0]
    >>> [entry["label"] for entry in ranking] == model.rank([[0.5, 1, -2]], k=2).labels[0].tolist()
    True
    """

    def __init__(self, model: MetaRanker, options: ServeOptions, observe: Observer | None = None) -> None:
        self.model = model
        self.options = options
        self.reader = InputReader(model, options)
        self._observe = observe or (lambda stage, seconds: None)

    def answer_one(self, call: Call) -> Reply:
        """The reply to one request."""
        return next(self.answer([call]))[1]

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        """(position, reply) of every call, each as soon as it is known."""
        together: dict[tuple[Any, ...] | None, list[_Ranked]] = {}
        for index, call in enumerate(calls):
            if call.path == "explain":
                yield index, self._guarded(self._explain, call.body)
                continue
            start = time.perf_counter()
            try:
                ranked = self._read(index, call.body)
            except Refused as refused:
                yield index, reply_to(refused)
                continue
            self._observe("read", time.perf_counter() - start)
            company = ranked.company
            together.setdefault((index,) if company is None else company, []).append(ranked)
        for group in together.values():
            yield from self._ranked(group)

    def _read(self, index: int, body: bytes) -> _Ranked:
        request = read_body(RankRequest, body)
        if (request.instance is None) == (request.instances is None):
            raise invalid("instance", "either instance or instances is required, and not both")
        field = "instances" if request.instance is None else "instance"
        instances = [request.instance] if request.instances is None else request.instances
        self._check_k(request.k)
        if request.optimize is not None:
            _checked("optimize", self.model.thresholds_.check_metric, request.optimize)
        _checked("propensity_weight", self.model.checked_weight, request.propensity_weight)
        rows = self.reader.rows(instances, field)
        n = len(instances)
        return _Ranked(index, rows, n, request, self._limits(request, n))

    def _limits(self, request: RankRequest | ExplainRequest, n: int) -> dict[str, Any]:
        limits: dict[str, Any] = {}
        if request.exclude is not None:
            limits["exclude"] = self.reader.lists(request.exclude, n, "exclude")
        if request.allowed is not None:
            limits["allowed"] = self.reader.lists(request.allowed, n, "allowed")
        return limits

    def _check_k(self, k: int) -> None:
        if k > self.options.max_k:
            raise invalid("k", f"k must be at most {self.options.max_k}, got {k}")

    def _ranked(self, group: list[_Ranked]) -> Iterator[tuple[int, Reply]]:
        """The replies to requests of one company, by one call of the model."""
        try:
            start = time.perf_counter()
            lists, flags = self._lists(group)
            self._observe("model", time.perf_counter() - start)
            start = time.perf_counter()
            done = 0
            replies = []
            for one in group:
                own = [entries[: one.request.k] for entries in lists[done : done + one.n_rows]]
                known = {"rankings": own, "without_evidence": flags[done : done + one.n_rows]}
                replies.append((one.index, Reply(200, _json(known))))
                done += one.n_rows
            self._observe("write", time.perf_counter() - start)
        except Exception as error:
            if len(group) == 1:
                yield group[0].index, _fault(error)
                return
            # One request's fault is not that of those it happened to be ranked with.
            for one in group:
                yield from self._ranked([one])
            return
        yield from replies

    def _lists(self, group: list[_Ranked]) -> tuple[list[list[dict[str, Any]]], list[bool]]:
        """The ranked labels of every row of requests of one company, and which rows are without evidence."""
        request, limits = group[0].request, group[0].limits
        X = _stacked([one.rows for one in group])
        k = max(one.request.k for one in group)
        table = self.reader.labels
        ranking = self.model.rank(X, k=k, propensity_weight=request.propensity_weight, **limits)
        rows: list[list[dict[str, Any]]] = [
            [{"label": label, **_name_of(table, label), "score": score} for label, score in row]
            for row in ranking
        ]
        if request.probabilities:
            by_row = sp.csr_matrix(self.model.predict_proba(X, **limits))
            for i, entries in enumerate(rows):
                known = _row_of(by_row, i)
                for entry in entries:
                    entry["probability"] = known.get(entry["label"], 0.0)
        if request.optimize is not None:
            kept = self.model.predict(X, request.optimize, **limits)
            for i, entries in enumerate(rows):
                own = _row_of(kept, i)
                for entry in entries:
                    entry["kept"] = entry["label"] in own
        return rows, ranking.without_evidence.tolist()

    def _explain(self, body: bytes) -> Reply:
        start = time.perf_counter()
        request = read_body(ExplainRequest, body)
        rows = self.reader.rows([request.instance], "instance")
        most = self.options.max_explain
        if request.n_neighbors > self.options.max_k:
            raise invalid(
                "n_neighbors", f"n_neighbors must be at most {self.options.max_k}, got {request.n_neighbors}"
            )
        _checked("propensity_weight", self.model.checked_weight, request.propensity_weight)
        asked = {"propensity_weight": request.propensity_weight, **self._limits(request, 1)}
        if request.labels is None:
            if request.k > most:
                raise invalid("k", f"k must be at most {most}, got {request.k}")
            labels = [int(v) for v in self.model.rank(rows, k=request.k, **asked).labels[0] if v >= 0]
        else:
            if len(request.labels) > most:
                raise invalid("labels", f"labels must be at most {most}, got {len(request.labels)}")
            labels = [self.reader.label(label, "labels") for label in request.labels]
        pages = []
        for label in labels:
            explanation = self.model.explain(rows, label, n_neighbors=request.n_neighbors, **asked)
            words = [
                {"text": r.text, "contribution": r.contribution} for r in reasons(explanation, _N_REASONS)
            ]
            pages.append({**explanation.to_dict(), "reasons": words})
        self._observe("explain", time.perf_counter() - start)
        return Reply(200, _json({"explanations": pages}))

    def _guarded(self, answer: Callable[[bytes], Reply], body: bytes) -> Reply:
        try:
            return answer(body)
        except Refused as refused:
            return reply_to(refused)
        except Exception as error:
            return _fault(error)


def _name_of(table: LabelTable, label: int) -> dict[str, str]:
    """The name, with the id where several labels have it; nothing where labels have no names."""
    return {} if table.names is None else {"name": table.shown(label)}


def _checked(field: str, check: Callable[..., Any], *arguments: Any) -> None:
    try:
        check(*arguments)
    except (ValueError, TypeError) as error:
        raise invalid(field, str(error)) from None


def _stacked(parts: list[Rows]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], list):
        return [text for part in parts for text in part]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _row_of(matrix: sp.csr_matrix, i: int) -> dict[int, float]:
    """Columns and values of a row."""
    own = slice(matrix.indptr[i], matrix.indptr[i + 1])
    return dict(zip(matrix.indices[own].tolist(), matrix.data[own].tolist()))


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()


def _fault(error: Exception) -> Reply:
    """500, with what happened in the log and not in the reply; 422 for values that make scores overflow."""
    if isinstance(error, ScoresNotFiniteError):
        return reply_to(invalid("instance", str(error)))
    logger.error("a request failed: %s: %s", type(error).__name__, error, exc_info=error)
    return reply_to(Refused(500, "internal fault; the server's log tells more", reason="fault"))
