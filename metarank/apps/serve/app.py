"""`create_app`: the service as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import re
import sys
import time
import uuid
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from hmac import compare_digest
from typing import Any

from fastapi import FastAPI, Request, Response
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from metarank._util.version import __version__
from metarank.apps.serve.answers import Answerer, Call, Reply, reply_to
from metarank.apps.serve.budget import Budget, Share
from metarank.apps.serve.errors import Refused
from metarank.apps.serve.hosts import named
from metarank.apps.serve.metrics import ServiceMetrics
from metarank.apps.serve.options import Access, ServeOptions
from metarank.apps.serve.page import PAGE, PAGE_HEADERS, docs_page
from metarank.apps.serve.schema import ExplainRequest, RankRequest
from metarank.apps.serve.suggestions import FORM, SuggestRequest
from metarank.apps.serve.workers import Workers
from metarank.model.estimator import MetaRanker
from metarank.thresholds.set_metrics import METRICS

# As Annif has them: a project, by the name of the model, and its suggestions.
PROJECT, SUGGEST = "/v1/projects/{project}", "/v1/projects/{project}/suggest"
PATHS = (
    *("/", "/rank", "/explain", "/health", "/ready", "/model", "/metrics", "/docs", "/openapi.json"),
    *(PROJECT, SUGGEST),
)

# Answered under every name and without a token, for whoever starts and watches the service.
_FOR_ALL = ("/health", "/ready")
# Shown without a token too: it holds nothing of the model, and has a field for the token.
_PAGE = "/"
# An id that a proxy has given a request; any other is not repeated.
_REQUEST_ID = re.compile(r"[A-Za-z0-9._-]{1,128}")
JSON = "application/json"
# Bytes of a body, and of a reply, that every request has beside the bytes of all.
_FREE = 64 << 10
# Bytes of a reply that are sent at once.
_PIECE = 1 << 20
# Seconds between looks at the queue, where several processes count together.
_REFRESH = 0.5

_MISDIRECTED = Refused(421, "the Host header must name this machine or a name of --allow-host", reason="host")
_UNKNOWN = Refused(401, "the Authorization header must be Bearer and the service's token", reason="token")

_REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"description": "the service has a token, which the request does not carry"},
    408: {"description": "the headers or the body did not arrive in time"},
    413: {"description": "the body is too large"},
    415: {"description": "the body is not declared to be of the type that the path takes"},
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
    digest: str | None = None,
    access: Access | None = None,
) -> FastAPI:
    """The service of a model: POST /rank and /explain, a page at /, what Annif asks of a project, and what
    `PATHS` lists besides.

    Parameters
    ----------
    model : fitted MetaRanker
        ``options.threads`` threads call it at once. With ``n_jobs=1`` it starts no others.
    options : ServeOptions, optional
    name : str
        The model's name on the page, in /model, and in the path of the project.
    digest : str, optional
        The digest of the model's folder, for /ready.
    access : Access, optional
        By default everybody may ask, by any name.

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
    >>> sorted({route.path for route in app.routes})  # doctest: +NORMALIZE_WHITESPACE
    ['/', '/docs', '/explain', '/health', '/metrics', '/model', '/openapi.json', '/rank', '/ready',
    '/v1/projects/{project}', '/v1/projects/{project}/suggest']
    """
    access = access or Access()
    service = Service(model, options or ServeOptions(), name, digest)
    app = FastAPI(
        title="metarank",
        version=__version__,
        description=f"Ranked labels by {name}.",
        lifespan=service.lifespan,
        docs_url=None,  # these pages fetch their scripts from elsewhere
        redoc_url=None,
    )
    # The last of these is the outermost.
    app.add_middleware(_Guarded, metrics=service.metrics, access=access)
    if access.origins:
        app.add_middleware(
            CORSMiddleware,
            allow_origins=access.origins,
            allow_methods=["GET", "POST"],
            allow_headers=["Authorization", "Content-Type", "X-Request-Id"],
            expose_headers=["Retry-After", "X-Request-Id"],
        )
    app.add_middleware(_Counting, metrics=service.metrics, access=access)
    app.state.service = service
    for path, asked, kind, body in (
        ("/rank", service.rank, JSON, RankRequest),
        ("/explain", service.explain, JSON, ExplainRequest),
        (SUGGEST, service.suggest, FORM, SuggestRequest),
    ):
        app.router.add_api_route(
            path,
            asked,
            methods=["POST"],
            responses=_REFUSALS,
            openapi_extra=_takes(kind, body),
            route_class_override=_Unread,
        )

    async def docs() -> Response:
        """These pages of the service, in words."""
        return Response(docs_page(app.openapi()), media_type="text/html; charset=utf-8", headers=PAGE_HEADERS)

    for path, shown in (
        ("/health", service.health),
        ("/ready", service.ready),
        ("/model", service.model),
        ("/metrics", service.numbers),
        (PROJECT, service.project),
        ("/docs", docs),
        ("/", service.page),
    ):
        app.add_api_route(path, shown, include_in_schema=path not in ("/", "/docs"))
        app.add_api_route(path, shown, methods=["HEAD"], include_in_schema=False)
    app.add_exception_handler(Refused, service.refused)
    app.add_exception_handler(HTTPException, service.unknown)
    return app


class Service:
    """What an application does at each of its paths."""

    def __init__(self, model: MetaRanker, options: ServeOptions, name: str, digest: str | None) -> None:
        self.options = options
        self.name = name
        metrics = ServiceMetrics(PATHS, {"version": __version__, "model": name})
        self.metrics: ServiceMetrics = metrics
        answerer = self.answerer(model)
        workers = Workers(answerer, options, metrics.stage, metrics.batch)
        self.workers: Workers = workers
        held = Budget(options.queue_bytes)
        self.held: Budget = held
        self.use(answerer, digest)
        metrics.watch(
            waiting=lambda: workers.waiting,
            working=lambda: workers.working,
            pairs=lambda: workers.pairs,
            held=lambda: held.used,
        )

    def answerer(self, model: MetaRanker) -> Answerer:
        """Who answers by a model. Raises ValueError where no request can hold the model's rows."""
        return Answerer(model, self.options, self.metrics.stage)

    def use(self, answerer: Answerer, digest: str | None) -> None:
        """Answer what comes from now on by this model. Requests that were read stay with theirs."""
        self.workers.answering = answerer
        self.facts: dict[str, Any] = {"version": __version__, **_facts(answerer, self.name)}
        self.loaded: dict[str, str | None] = {
            "digest": digest,
            "loaded": datetime.now(UTC).isoformat(timespec="seconds"),
        }

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

    async def suggest(self, request: Request) -> Response:
        """The best labels of a text as Annif's HTTP backend takes them.

        A form with `text` and `limit` in, subjects with scores in (0, 1] out, in the order of /rank. Fields
        `metadata_NAME` are the blocks of that name of a model that has them.
        """
        self._check_project(request.path_params["project"])
        return await self._answered("suggest", request, FORM)

    async def _answered(self, path: Any, request: Request, kind: str = JSON) -> Response:
        """The reply to a request for `path`, "rank", "explain" or "suggest"."""
        started = time.monotonic()
        share = Share(self.held, _FREE)
        try:
            body = await _body(request.scope, request.receive, kind, self.options, share)
            reply = await self.workers.submit(Call(path, body, self.name), started, share, request.receive)
        except BaseException:
            share.release()
            raise
        return _response(reply, self.metrics, share)

    async def health(self) -> Response:
        """Whether the service is alive."""
        return JSONResponse({"status": "ok"})

    async def ready(self) -> Response:
        """Whether requests are taken, and by which model since when."""
        said, status = ("ready", 200) if self.workers.is_open else ("stopping", 503)
        return JSONResponse({"status": said, "version": __version__, **self.loaded}, status)

    async def model(self) -> Response:
        """What the model takes, and the limits of a request."""
        return JSONResponse(self.facts)

    async def project(self, project: str) -> Response:
        """The model as a project of Annif: whether it is trained, and since when it answers."""
        self._check_project(project)
        return JSONResponse(
            {
                "project_id": self.name,
                "name": self.name,
                "language": self.workers.answering.model.language,
                "backend": {"backend_id": "metarank"},
                "is_trained": True,
                "modification_time": self.loaded["loaded"],
            }
        )

    def _check_project(self, project: str) -> None:
        if project != self.name:
            raise HTTPException(404, f"no project {project[:60]!r} here, but {self.name!r}")

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
    """Counts every request with its status and time, gives it an id, and notes it where that is asked for.

    A header forbids browsers to guess the type of a reply.
    """

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics, access: Access) -> None:
        self.app, self.metrics, self.access = app, metrics, access

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        scope = {**scope, "root_path": scope.get("root_path") or self.access.root_path}
        start, status, size = time.perf_counter(), 500, 0
        given = _header(scope, b"x-request-id")
        request_id = given if _REQUEST_ID.fullmatch(given) else uuid.uuid4().hex

        async def noting(message: Message) -> None:
            nonlocal status, size
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] += [
                    (b"x-content-type-options", b"nosniff"),
                    (b"x-request-id", request_id.encode()),
                ]
            size += len(message.get("body", b""))
            await send(message)

        try:
            await self.app(scope, receive, noting)
        finally:
            path, seconds = _path(scope), time.perf_counter() - start
            self.metrics.request(_pattern(path), status, seconds)
            if self.access.access_log:
                _log(
                    request_id=request_id,
                    client=(scope.get("client") or [None])[0],
                    method=scope["method"],
                    path=path,
                    status=status,
                    seconds=round(seconds, 6),
                    bytes=size,
                )


class _Guarded:
    """Refuses requests for other hosts or without the token."""

    def __init__(self, app: ASGIApp, metrics: ServiceMetrics, access: Access) -> None:
        self.app, self.metrics, self.hosts = app, metrics, access.hosts
        self.token = None if access.token is None else access.token.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        app = self.app
        if scope["type"] == "http" and _path(scope) not in _FOR_ALL:
            if not self._is_for_us(scope):
                app = _response(reply_to(_MISDIRECTED), self.metrics)
            elif _path(scope) != _PAGE and not self._is_known(scope):
                app = _response(reply_to(_UNKNOWN), self.metrics)
        await app(scope, receive, send)

    def _is_for_us(self, scope: Scope) -> bool:
        """A browser always names a host. A request without one, as in HTTP/1.0, comes from no web page."""
        hosts = self.hosts
        return hosts is None or all(named(v) in hosts for k, v in scope["headers"] if k == b"host")

    def _is_known(self, scope: Scope) -> bool:
        if self.token is None:
            return True
        kind, _, given = _header(scope, b"authorization").partition(" ")
        return kind.lower() == "bearer" and compare_digest(given.strip().encode(), self.token)


def _log(**fields: Any) -> None:
    """A line of JSON, in one write, as other processes write there too."""
    line = {"time": datetime.now(UTC).isoformat(timespec="milliseconds"), **fields}
    with suppress(OSError, ValueError, AttributeError):  # nobody reads it any more
        sys.stdout.write(json.dumps(line) + "\n")
        sys.stdout.flush()


async def _refresh(metrics: ServiceMetrics) -> None:
    while True:
        metrics.refresh()
        await asyncio.sleep(_REFRESH)


def _path(scope: Scope) -> str:
    """The path of a request below the one at which the service stands."""
    path, root = scope["path"], scope.get("root_path", "")
    return path[len(root) :] if root and path.startswith(root + "/") else path


def _pattern(path: str) -> str:
    """The path under which a request is counted."""
    if re.fullmatch(r"/v1/projects/[^/]+(/suggest)?", path):
        return SUGGEST if path.endswith("/suggest") else PROJECT
    return path


def _header(scope: Scope, name: bytes) -> str:
    """The first header of a name in lower case; "" if there is none."""
    return next((value.decode("latin-1") for key, value in scope["headers"] if key == name), "")


async def _body(scope: Scope, receive: Receive, kind: str, options: ServeOptions, share: Share) -> bytes:
    """The body of a request, of a type and within the limits. `share` counts its bytes.

    Raises
    ------
    Refused
        415 for another type; 413 as soon as it is known to be too large; 429 if other requests hold too many
        bytes; 408 if it does not arrive in time.
    """
    if _header(scope, b"content-type").partition(";")[0].strip().lower() != kind:
        raise Refused(415, f"the Content-Type must be {kind}", reason="content type")
    too_large = Refused(413, f"the body must have at most {options.max_body} bytes", reason="too large")
    announced = _header(scope, b"content-length")
    is_size = announced.isascii() and announced.isdigit() and len(announced) < 20
    if is_size and int(announced) > options.max_body:
        raise too_large
    parts: list[bytes] = []
    size = 0
    try:
        async with asyncio.timeout(options.timeout):
            more = True
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(400, "the body did not arrive", reason="left")
                part, more = message.get("body", b""), message.get("more_body", False)
                size += len(part)
                if size > options.max_body:
                    raise too_large
                if not share.take(size, before=size - len(part)):
                    raise Refused(429, "too many bytes are waiting already", retry_after=1, reason="bytes")
                parts.append(part)
    except TimeoutError:
        raise Refused(408, f"the body did not arrive within {options.timeout:g} s", reason="slow") from None
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
    elif reply.status == 401:
        headers = {"www-authenticate": "Bearer"}
    return _Whole(share, reply.body, reply.status, headers, "application/json")


def _takes(kind: str, body: type[RankRequest | ExplainRequest | SuggestRequest]) -> dict[str, Any]:
    """A request body as OpenAPI describes it. The answering thread reads it, not the framework."""
    schema = body.model_json_schema()
    return {"requestBody": {"required": True, "content": {kind: {"schema": schema}}}}


def _facts(answerer: Answerer, name: str) -> dict[str, Any]:
    """What a client needs to know about the model and the limits."""
    reader, options = answerer.reader, answerer.options
    return {
        "name": name,
        "input": reader.kind,
        "blocks": None if reader.blocks is None else reader.blocks.kinds,
        "n_features": reader.n_features,
        "feature_names": reader.kind == "features" and reader.feature_names is not None,
        "n_labels": reader.labels.n_labels - len(reader.labels.removed),
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
