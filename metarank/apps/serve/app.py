"""`create_app`: the service as an ASGI application."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator, Callable, Collection, Coroutine
from contextlib import asynccontextmanager
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metarank._util.version import __version__
from metarank.apps.serve.answers import Answerer, Call, Reply, reply_to
from metarank.apps.serve.budget import Budget, Share
from metarank.apps.serve.errors import Refused
from metarank.apps.serve.hosts import named
from metarank.apps.serve.metrics import ServiceMetrics
from metarank.apps.serve.options import ServeOptions
from metarank.apps.serve.page import PAGE, PAGE_HEADERS
from metarank.apps.serve.schema import ExplainRequest, RankRequest
from metarank.apps.serve.workers import Workers
from metarank.model.estimator import MetaRanker
from metarank.thresholds.set_metrics import METRICS

PATHS = ("/", "/rank", "/explain", "/health", "/metrics", "/openapi.json")

# Bytes of a body, and of a reply, that every request has beside the bytes of all.
_FREE = 64 << 10
# Bytes of a reply that are sent at once.
_PIECE = 1 << 20
# Seconds between looks at the queue, where several processes count together.
_REFRESH = 0.5

_MISDIRECTED = reply_to(
    Refused(421, "the Host header must name this machine or what --host says", reason="host")
)

_REFUSALS: dict[int | str, dict[str, Any]] = {
    408: {"description": "the headers or the body did not arrive in time"},
    413: {"description": "the body is too large"},
    415: {"description": "the body is not declared as application/json"},
    422: {"description": "a field does not keep its rule, which the message names"},
    429: {"description": "too many requests, pairs or bytes wait; Retry-After says when to try again"},
    431: {"description": "the request line and headers are too large"},
    503: {"description": "no answer in time, too many requests on their way, or the server is stopping"},
}


def create_app(
    model: MetaRanker,
    options: ServeOptions | None = None,
    *,
    name: str = "model",
    allowed_hosts: Collection[str] | None = None,
) -> FastAPI:
    """The service of a model: POST /rank and /explain, GET /health, /metrics, /openapi.json and a page at /.

    Parameters
    ----------
    model : fitted MetaRanker
        ``options.threads`` threads call it at once. With ``n_jobs=1`` it starts no others.
    options : ServeOptions, optional
    name : str
        The model's name on the page and in /health.
    allowed_hosts : collection of str, optional
        Names that a request's Host header may hold, in lower case and without a port. Any other name gets
        421. By default every name is allowed.

    Returns
    -------
    FastAPI
        An ASGI application for any server; `metarank serve` runs it with uvicorn. Its threads start and end
        with the application's lifespan. Only `metarank serve` applies `max_head`, `connections`,
        `head_timeout` and `idle_timeout`: elsewhere the server decides what a connection may do.

    Examples
    --------
    >>> from metarank import MetaRanker, data
    >>> train = data.make_multilabel(100, n_features=3, n_labels=4, seed=0)
    >>> app = create_app(MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(train))
    >>> sorted({route.path for route in app.routes})
    ['/', '/explain', '/health', '/metrics', '/openapi.json', '/rank']
    """
    service = _Service(model, options or ServeOptions(), name)
    app = FastAPI(
        title="metarank",
        version=__version__,
        description=f"Ranked labels by {name}.",
        lifespan=service.lifespan,
        docs_url=None,  # these pages fetch their scripts from elsewhere
        redoc_url=None,
    )
    app.add_middleware(_Counting, metrics=service.metrics, allowed_hosts=allowed_hosts)
    app.state.metrics, app.state.workers = service.metrics, service.workers
    for path, asked, body in (
        ("/rank", service.rank, RankRequest),
        ("/explain", service.explain, ExplainRequest),
    ):
        app.router.add_api_route(
            path,
            asked,
            methods=["POST"],
            responses=_REFUSALS,
            openapi_extra=_takes(body),
            route_class_override=_Unread,
        )
    for path, shown in (("/health", service.health), ("/metrics", service.numbers), ("/", service.page)):
        app.add_api_route(path, shown, include_in_schema=path != "/")
        app.add_api_route(path, shown, methods=["HEAD"], include_in_schema=False)
    app.add_exception_handler(Refused, service.refused)
    app.add_exception_handler(HTTPException, service.unknown)
    return app


class _Service:
    """What an application does at each of its paths."""

    def __init__(self, model: MetaRanker, options: ServeOptions, name: str) -> None:
        self.options = options
        self.metrics = metrics = ServiceMetrics(PATHS, {"version": __version__, "model": name})
        answerer = Answerer(model, options, metrics.stage)
        self.workers = workers = Workers(answerer, options, metrics.stage, metrics.batch)
        self.held = held = Budget(options.queue_bytes)
        self.facts = _facts(answerer, name)
        metrics.watch(
            waiting=lambda: workers.waiting,
            working=lambda: workers.working,
            pairs=lambda: workers.pairs,
            held=lambda: held.used,
        )

    @asynccontextmanager
    async def lifespan(self, app: FastAPI) -> AsyncIterator[None]:
        """The threads start and end with the application."""
        self.workers.start()
        refreshing = asyncio.create_task(_refresh(self.metrics)) if self.metrics.is_shared else None
        yield
        await self.workers.stop()
        if refreshing is not None:
            refreshing.cancel()
            self.metrics.refresh()

    async def rank(self, request: Request) -> Response:
        """The k best labels of one instance or of several, best first."""
        return await self._answered("rank", request)

    async def explain(self, request: Request) -> Response:
        """Why labels stand where they do for an instance."""
        return await self._answered("explain", request)

    async def _answered(self, path: Any, request: Request) -> Response:
        started = time.monotonic()
        share = Share(self.held, _FREE)
        try:
            body = await _body(request, self.options, share)
            reply = await self.workers.submit(Call(path, body), started, share, request.receive)
        except BaseException:
            share.release()
            raise
        return _response(reply, self.metrics, share)

    async def health(self) -> Response:
        """Whether requests are taken, and by which model."""
        said, status = ("ok", 200) if self.workers.is_open else ("stopping", 503)
        return JSONResponse({"status": said, "version": __version__, "model": self.facts}, status)

    async def numbers(self) -> Response:
        """Counts and times, in the text format of Prometheus."""
        return Response(self.metrics.text(), media_type="text/plain; version=0.0.4; charset=utf-8")

    async def page(self) -> Response:
        """The page for a person."""
        return Response(PAGE, media_type="text/html; charset=utf-8", headers=PAGE_HEADERS)

    async def refused(self, _: Request, error: Any) -> Response:
        """The reply where a request is refused."""
        return _response(reply_to(error), self.metrics)

    async def unknown(self, _: Request, error: Any) -> Response:
        """The reply where there is no such path or method."""
        return JSONResponse({"error": str(error.detail)}, error.status_code, headers=error.headers)


class _Unread(APIRoute):
    """A route whose endpoint takes the request as it is. FastAPI does not look for parameters."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        endpoint: Callable[[Request], Coroutine[Any, Any, Response]] = self.endpoint
        return endpoint


class _Counting:
    """Counts every request with its status and time, and refuses requests for other hosts.

    A header forbids browsers to guess the type of a reply.
    """

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics, allowed_hosts: Collection[str] | None) -> None:
        self.app = app
        self.metrics = metrics
        self.allowed_hosts = allowed_hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = time.perf_counter(), 500

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"].append((b"x-content-type-options", b"nosniff"))
            await send(message)

        try:
            app = self.app if self._is_for_us(scope) else _response(_MISDIRECTED, self.metrics)
            await app(scope, receive, noting)
        finally:
            self.metrics.request(scope["path"], status, time.perf_counter() - start)

    def _is_for_us(self, scope: Scope) -> bool:
        """A browser always names a host. A request without one, as in HTTP/1.0, comes from no web page."""
        hosts = self.allowed_hosts
        return hosts is None or all(named(v) in hosts for k, v in scope["headers"] if k == b"host")


async def _refresh(metrics: ServiceMetrics) -> None:
    while True:
        metrics.refresh()
        await asyncio.sleep(_REFRESH)


async def _body(request: Request, options: ServeOptions, share: Share) -> bytes:
    """The body of a request, within the limits. `share` counts its bytes.

    Raises
    ------
    Refused
        415 for another type; 413 as soon as it is known to be too large; 429 if other requests hold too many
        bytes; 408 if it does not arrive in time.
    """
    kind = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind != "application/json":
        raise Refused(415, "the Content-Type must be application/json", reason="content type")
    too_large = Refused(413, f"the body must have at most {options.max_body} bytes", reason="too large")
    announced = request.headers.get("content-length", "")
    is_size = announced.isascii() and announced.isdigit() and len(announced) < 20
    if is_size and int(announced) > options.max_body:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(options.timeout):
            async for part in request.stream():
                size += len(part)
                if size > options.max_body:
                    raise too_large
                if not share.take(size, before=size - len(part)):
                    raise Refused(429, "too many bytes are waiting already", retry_after=1, reason="bytes")
                parts.append(part)
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {options.timeout:g} s", reason="slow") from None
    except ClientDisconnect:
        raise Refused(400, "the body did not arrive", reason="left") from None
    return b"".join(parts)


class _Whole(Response):
    """A reply that releases its share of bytes once the client has taken it.

    It is sent in pieces, each after the last one has left: sent as one it would be in memory twice.
    """

    def __init__(self, share: Share | None, *args: Any) -> None:
        super().__init__(*args)
        self._share = share

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        body = bytes(self.body)
        try:
            await send(
                {"type": "http.response.start", "status": self.status_code, "headers": self.raw_headers}
            )
            for first in range(0, max(1, len(body)), _PIECE):
                last = first + _PIECE
                piece = {"body": body[first:last], "more_body": last < len(body)}
                await send({"type": "http.response.body", **piece})
        finally:
            if self._share is not None:
                self._share.release()


def _response(reply: Reply, metrics: ServiceMetrics, share: Share | None = None) -> Response:
    headers = None
    if reply.reason:
        metrics.refused(reply.reason)
    if reply.retry_after is not None:
        headers = {"retry-after": str(reply.retry_after)}
    return _Whole(share, reply.body, reply.status, headers, "application/json")


def _takes(body: type[RankRequest] | type[ExplainRequest]) -> dict[str, Any]:
    """A request body as OpenAPI describes it. The answering thread reads it, not the framework."""
    schema = body.model_json_schema()
    return {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}


def _facts(answerer: Answerer, name: str) -> dict[str, Any]:
    """What a client needs to know about the model and the limits."""
    reader, options = answerer.reader, answerer.options
    return {
        "name": name,
        "input": reader.kind,
        "blocks": None if reader.blocks is None else reader.blocks.kinds,
        "n_features": reader.n_features,
        "feature_names": reader.kind == "features" and reader.feature_names is not None,
        "n_labels": reader.labels.n_labels,
        "label_names": reader.labels.names is not None,
        "propensity_weight": answerer.model.propensity_weight_,
        "optimize": list(METRICS),
        "limits": {
            "max_batch": options.max_batch,
            "max_body": options.max_body,
            "max_text": options.max_text,
            "max_k": options.max_k,
            "max_explain": options.max_explain,
            "max_pairs": options.max_pairs,
        },
        "labels_compared": answerer.model.answering().pairs_of_row(1),
    }
