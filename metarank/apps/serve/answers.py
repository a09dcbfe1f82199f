"""`Answerer`: bodies of requests in, replies out; requests that wait together are ranked together."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, NamedTuple, TypeAlias, TypeVar

import numpy as np
import scipy.sparse as sp

from metarank.apps.report.words import reasons
from metarank.apps.serve.errors import Refused, invalid, refusing
from metarank.apps.serve.instances import InputReader, Rows
from metarank.apps.serve.options import ServeOptions
from metarank.apps.serve.schema import ExplainRequest, RankRequest, read_body
from metarank.apps.serve.suggestions import read_form, suggestions
from metarank.model.estimator import MetaRanker
from metarank.types.blocks import Blocks
from metarank.types.candidates import Candidates
from metarank.types.checks import ScoresNotFiniteError

logger: logging.Logger = logging.getLogger("metarank.serve")

# Sources of evidence that an explanation puts into words.
_N_REASONS = 4

Observer: TypeAlias = Callable[[str, float], None]
AnyRequest = TypeVar("AnyRequest", RankRequest, ExplainRequest)


class Call(NamedTuple):
    """A request to be answered by the model of a name."""

    path: Literal["rank", "explain", "suggest"]
    body: bytes
    model: str = "model"


class Reply(NamedTuple):
    """What a client gets: a status, JSON, and a word for why it was refused, if it was."""

    status: int
    body: bytes
    reason: str = ""
    retry_after: int | None = None


def reply_to(refused: Refused) -> Reply:
    """The reply to a refused request: the message, and the field if one field is at fault.

    Examples
    --------
    >>> reply_to(Refused(404, "no such page")).body
    b'{"error": "no such page"}'
    """
    content = {"error": refused.message, **({} if refused.field is None else {"field": refused.field})}
    return Reply(refused.status, json.dumps(content).encode(), refused.reason, refused.retry_after)


@dataclass
class Asked:
    """A request, read and checked.

    Attributes
    ----------
    request : RankRequest or ExplainRequest
        Without its instances and lists of labels, which are in `rows` and `limits`.
    rows : list of str, ndarray, CSR or Blocks of n_rows rows
    limits : dict
        Arguments of the model's methods.
    labels : list of int
        Labels to explain; empty for the best ones.
    pairs : int
        Pairs of an instance and a label to compare.
    threshold : float or None
        Of a request for suggestions: the least score of a label.
    """

    request: RankRequest | ExplainRequest
    rows: Rows
    n_rows: int
    limits: dict[str, Any]
    labels: list[int]
    pairs: int
    threshold: float | None = None

    @property
    def size(self) -> int:
        """Bytes of rows and limits."""
        return _size(self.rows) + sum(map(_size, self.limits.values()))

    @property
    def company(self) -> tuple[Any, ...] | None:
        """Requests of equal company may be ranked as one batch. A request with None is ranked alone.

        `k` may differ: the k best labels are the first of a longer list. With a list of allowed labels they
        are not, because the candidates depend on k.
        """
        request = self.request
        if isinstance(request, ExplainRequest) or self.limits or request.propensity_weight is not None:
            return None
        return request.optimize, request.probabilities

    def part(self, rows: slice) -> Asked:
        """Some of the instances."""
        n = len(range(*rows.indices(self.n_rows)))
        if n == self.n_rows:
            return self
        limits = {name: _rows_of(value, rows) for name, value in self.limits.items()}
        own = self.rows.take(rows) if isinstance(self.rows, Blocks) else self.rows[rows]
        return replace(self, rows=own, n_rows=n, limits=limits)


class Answerer:
    """Answers requests with a model. Thread-safe.

    A reply is what `MetaRanker.rank` returns for the request alone, bit for bit, whatever it is ranked with
    and in however many steps: a row's scores do not depend on its batch.

    Parameters
    ----------
    model : fitted MetaRanker
        Several threads call it at once, so ``n_jobs=1`` is best.
    options : ServeOptions
    observe : callable (stage, seconds), optional
        Called with the time that each stage took: "read", "model", "write".

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
        self.reader: InputReader = InputReader(model, options)
        self._observe = observe or (lambda stage, seconds: None)

    def answer_one(self, call: Call) -> Reply:
        """The reply to one request."""
        return next(self.answer([call]))[1]

    def answer(self, calls: Sequence[Call]) -> Iterator[tuple[int, Reply]]:
        """(position, reply) of every call: of those that are refused first, then of the others."""
        read: list[tuple[int, Asked]] = []
        for index, call in enumerate(calls):
            try:
                read.append((index, self.read(call)))
            except Refused as refused:
                yield index, reply_to(refused)
        for place, reply in self.together([asked for _, asked in read]):
            yield read[place][0], reply

    def read(self, call: Call) -> Asked:
        """What a request asks.

        Raises
        ------
        Refused
            422 if a field breaks a rule, or the request compares more pairs than are allowed.
        """
        start = time.perf_counter()
        if call.path == "suggest":
            asked = self._read_suggest(call.body, call.model)
        else:
            asked = self._read_rank(call.body) if call.path == "rank" else self._read_explain(call.body)
        self._observe("read", time.perf_counter() - start)
        return asked

    def together(self, asked: Sequence[Asked]) -> Iterator[tuple[int, Reply]]:
        """(position, reply) of every request, each as soon as it is known; those of one company in one go."""
        groups: dict[tuple[Any, ...], list[int]] = {}
        for index, one in enumerate(asked):
            company = one.company
            groups.setdefault((index,) if company is None else company, []).append(index)
        for group in groups.values():
            yield from self._group(asked, group)

    def steps(self, asked: Asked) -> Iterator[Reply | int]:
        """The reply to one request, in steps of at most `step_pairs` pairs, but at least one row or one label
        to explain. Each step but the last yields the number of bytes of the reply so far.
        """
        if isinstance(asked.request, ExplainRequest):
            return self._explain(asked)
        return self._rank(asked)

    def _read_rank(self, body: bytes) -> Asked:
        request = read_body(RankRequest, body)
        if (request.instance is None) == (request.instances is None):
            raise invalid("instance", "either instance or instances is required, and not both")
        field = "instances" if request.instance is None else "instance"
        instances = [request.instance] if request.instances is None else request.instances
        _check_most("k", request.k, self.options.max_k)
        if request.optimize is not None:
            with refusing("optimize"):
                self.model.thresholds_.check_metric(request.optimize)
        self._check_weight(request.propensity_weight)
        n, each = len(instances), self._pairs_of_row(request.k)
        most = max(1, self.options.max_pairs // each)
        if most < n <= self.options.max_batch:
            raise invalid(
                field,
                f"{field} must hold at most {most} instances where {each} labels are compared for each, "
                f"got {n}",
            )
        rows = self.reader.rows(instances, field)
        limits = self._limits(request, n)
        return Asked(_without_lists(request), rows, n, limits, [], n * each)

    def _read_explain(self, body: bytes) -> Asked:
        request = read_body(ExplainRequest, body)
        rows = self.reader.rows([request.instance], "instance")
        most = self.options.max_explain
        _check_most("n_neighbors", request.n_neighbors, self.options.max_k)
        self._check_weight(request.propensity_weight)
        limits = self._limits(request, 1)
        if request.labels is None:
            _check_most("k", request.k, most)
        else:
            _check_most("labels", len(request.labels), most)
        labels = [self.reader.label(label, "labels") for label in request.labels or ()]
        pairs = (len(labels) or request.k) * self._pairs_of_row(request.k)
        return Asked(_without_lists(request), rows, 1, limits, labels, pairs)

    def _read_suggest(self, body: bytes, model: str) -> Asked:
        form, metadata = read_form(body)
        if form.project not in (None, model):
            raise invalid("project", f"project must be {model!r}, as in the path, got {form.project[:60]!r}")
        _check_most("limit", form.limit, self.options.max_k)
        blocks = self.reader.blocks
        instance: Any = form.text
        if blocks is not None:
            known = {**blocks.kinds, **blocks.optional}
            instance = {"text": form.text} | {name: of for name, of in metadata.items() if name in known}
        rows = self.reader.rows([instance], "text")
        request = RankRequest(k=form.limit, optimize=None, probabilities=True)
        limits = self._limits(request, 1)
        return Asked(request, rows, 1, limits, [], self._pairs_of_row(form.limit), form.threshold)

    def _pairs_of_row(self, k: int) -> int:
        """The labels that the model compares for an instance, or an upper bound of their number."""
        return max(1, self.model.answering().pairs_of_row(k))

    def _check_weight(self, weight: float | None) -> None:
        with refusing("propensity_weight"):
            self.model.fitted_.checked_weight(weight)

    def _limits(self, request: RankRequest | ExplainRequest, n: int) -> dict[str, Any]:
        given = {"exclude": request.exclude, "allowed": request.allowed}
        limits: dict[str, Any] = {k: self.reader.lists(v, n, k) for k, v in given.items() if v is not None}
        return limits | self.reader.pairs(request, n)

    def _group(self, asked: Sequence[Asked], group: list[int]) -> Iterator[tuple[int, Reply]]:
        """The replies to requests of one company, by one call of the model where there are several."""
        try:
            if len(group) == 1:
                (reply,) = (found for found in self.steps(asked[group[0]]) if isinstance(found, Reply))
                yield group[0], reply
                return
            parts = [asked[i] for i in group]
            start = time.perf_counter()
            lists, flags = self._lists(parts)
            self._observe("model", time.perf_counter() - start)
            start = time.perf_counter()
            done = 0
            replies = []
            for i, one in zip(group, parts):
                own = slice(done, done + one.n_rows)
                rows = [entries[: one.request.k] for entries in lists[own]]
                replies.append((i, _reply(one, [self._written(one, rows, flags[own])], flags[own])))
                done += one.n_rows
            self._observe("write", time.perf_counter() - start)
        except Exception as error:
            if len(group) == 1:
                yield group[0], fault_reply(error)
                return
            # One request's fault is not that of those it happened to be ranked with.
            for i in group:
                yield from self._group(asked, [i])
            return
        yield from replies

    def _rank(self, asked: Asked) -> Iterator[Reply | int]:
        step = max(1, self.options.step_pairs // self._pairs_of_row(asked.request.k))
        written: list[bytes] = []
        flags: list[bool] = []
        model = write = 0.0
        for first in range(0, asked.n_rows, step):
            if first:
                yield sum(map(len, written))
            start = time.perf_counter()
            lists, own = self._lists([asked.part(slice(first, first + step))])
            between = time.perf_counter()
            written.append(self._written(asked, lists, own))
            flags += own
            model += between - start
            write += time.perf_counter() - between
        start = time.perf_counter()
        reply = _reply(asked, written, flags)
        self._observe("model", model)
        self._observe("write", write + time.perf_counter() - start)
        yield reply

    def _written(self, asked: Asked, lists: list[list[dict[str, Any]]], flags: list[bool]) -> bytes:
        """Ranked labels as JSON: those of rows, without brackets, or the suggestions for a text, none where
        it is without evidence."""
        if asked.threshold is None:
            return _inner(lists)
        return suggestions([] if flags[0] else lists[0], self.reader.labels, asked.threshold)

    def _lists(self, group: list[Asked]) -> tuple[list[list[dict[str, Any]]], list[bool]]:
        """The ranked labels of every row of requests of one company, and which rows are without evidence."""
        request, limits = group[0].request, group[0].limits
        assert isinstance(request, RankRequest)
        X = _stacked([one.rows for one in group])
        k = max(one.request.k for one in group)
        table = self.reader.labels
        weight, optimize, probabilities = request.propensity_weight, request.optimize, request.probabilities
        known = kept = None
        if optimize is None and not probabilities:
            ranking = self.model.rank(X, k=k, propensity_weight=weight, **limits)
        else:
            ranking, known, kept = self.model._answers(X, k, optimize, probabilities, weight, limits)
        rows = []
        for i, row in enumerate(ranking):
            probable = {} if known is None else _row_of(known, i)
            above = {} if kept is None else _row_of(kept, i)
            entries = []
            for label, score in row:
                entry: dict[str, Any] = {"label": label}
                if table.names is not None:
                    entry["name"] = table.shown(label)
                entry["score"] = score
                if known is not None:
                    entry["probability"] = probable.get(label, 0.0)
                if kept is not None:
                    entry["kept"] = label in above
                entries.append(entry)
            rows.append(entries)
        return rows, ranking.without_evidence.tolist()

    def _explain(self, asked: Asked) -> Iterator[Reply | int]:
        start = time.perf_counter()
        request, rows, labels = asked.request, asked.rows, asked.labels
        assert isinstance(request, ExplainRequest)
        how = {"propensity_weight": request.propensity_weight, **asked.limits}
        if not labels:
            labels = [int(v) for v in self.model.rank(rows, k=request.k, **how).labels[0] if v >= 0]
        pages: list[bytes] = []
        took = 0.0
        for label in labels:
            if pages:
                took += time.perf_counter() - start
                yield sum(map(len, pages))
                start = time.perf_counter()
            explanation = self.model.explain(rows, label, n_neighbors=request.n_neighbors, **how)
            words = [
                {"text": r.text, "contribution": r.contribution} for r in reasons(explanation, _N_REASONS)
            ]
            pages.append(_json({**explanation.to_dict(), "reasons": words}))
        self._observe("explain", took + time.perf_counter() - start)
        yield Reply(200, b'{"explanations": [%b]}' % b", ".join(pages))


def _inner(values: list[Any]) -> bytes:
    """A list as JSON, without its brackets."""
    return _json(values)[1:-1]


def _reply(asked: Asked, written: list[bytes], flags: list[bool]) -> Reply:
    if asked.threshold is not None:
        return Reply(200, written[0])
    return Reply(200, b'{"rankings": [%b], "without_evidence": %b}' % (b", ".join(written), _json(flags)))


def _check_most(field: str, value: int, most: int) -> None:
    if value > most:
        raise invalid(field, f"{field} must be at most {most}, got {str(value)[:60]}")


def _stacked(parts: Sequence[Any]) -> Any:
    if len(parts) == 1:
        return parts[0]
    if isinstance(parts[0], Blocks):
        first = parts[0]
        joined = {name: _stacked([part[name] for part in parts]) for name in first}
        return Blocks(joined, first.kinds, first.columns)
    if isinstance(parts[0], list):
        return [text for part in parts for text in part]
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def _row_of(matrix: sp.csr_matrix, i: int) -> dict[int, float]:
    """Columns and values of a row."""
    own = slice(matrix.indptr[i], matrix.indptr[i + 1])
    return dict(zip(matrix.indices[own].tolist(), matrix.data[own].tolist()))


def _json(content: Any) -> bytes:
    return json.dumps(content).encode()


def _rows_of(limit: Any, rows: slice) -> Any:
    """What a limit says of some of the instances."""
    if isinstance(limit, dict):
        return {name: of[rows] for name, of in limit.items()}
    return limit.rows(rows) if isinstance(limit, Candidates) else limit


def _without_lists(request: AnyRequest) -> AnyRequest:
    """A request without its long fields, which are kept in another form."""
    long = {"instance", "instances", "labels", "allowed", "exclude", "candidates", "pair_features"} & set(
        type(request).model_fields
    )
    return request.model_copy(update=dict.fromkeys(long))


def _size(part: Any) -> int:
    """Bytes of rows, of lists of labels or of scores of pairs, about."""
    if isinstance(part, dict | Blocks):
        return sum(map(_size, part.values()))
    if isinstance(part, list):
        return sum(map(len, part))
    if isinstance(part, np.ndarray):
        return int(part.nbytes)
    if isinstance(part, Candidates):
        return int(part.indptr.nbytes + part.labels.nbytes)
    return int(part.indptr.nbytes + part.indices.nbytes + part.data.nbytes)


def fault_reply(error: Exception) -> Reply:
    """500, with the details in the log and not in the reply; 422 for values that make scores overflow."""
    if isinstance(error, ScoresNotFiniteError):
        return reply_to(invalid("instance", str(error)))
    logger.error("a request failed: %s: %s", type(error).__name__, error, exc_info=error)
    return reply_to(Refused(500, "internal fault; the server's log tells more", reason="fault"))
