"""`create_app`: the service as an ASGI application."""

from __future__ import annotations

import asyncio
import json
import os
import threading
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from hmac import compare_digest
from typing import Any

from fastapi import Depends, FastAPI, HTTPException, Request, Response
from fastapi.responses import JSONResponse
from fastapi.security import HTTPAuthorizationCredentials, HTTPBearer
from starlette.exceptions import HTTPException as AnyHTTPException
from starlette.middleware.cors import CORSMiddleware
from starlette.requests import ClientDisconnect

from metarank._util.parameters import check_integer
from metarank._util.version import __version__
from metarank.apps.serve.metrics import ServiceMetrics
from metarank.apps.serve.page import PAGE, PAGE_HEADERS
from metarank.apps.serve.reload import ModelHolder, logger
from metarank.apps.serve.schema import FORM, JSON, ExplainRequest, RankRequest, SuggestRequest
from metarank.model.estimator import MetaRanker

# As Annif has them: a project, by the name of the model, and its suggestions.
PROJECT, SUGGEST = "/v1/projects/{project}", "/v1/projects/{project}/suggest"

_REFUSALS: dict[int | str, dict[str, Any]] = {
    401: {"description": "the request lacks the token of the service"},
    413: {"description": "the body is too large"},
    415: {"description": "the Content-Type is not that of the path"},
    422: {"description": "a field is invalid; the message names it"},
    503: {"description": "too many requests at a time"},
}


def create_app(
    model: MetaRanker | str | os.PathLike[str],
    *,
    name: str | None = None,
    threads: int = 2,
    max_body: int = 1 << 20,
    token: str | None = None,
    origins: Sequence[str] = (),
    propensity_weight: float | str | None = None,
) -> FastAPI:
    """The service of a model: POST /rank and /explain, a page at /, and the requests of Annif for a project.

    Parameters
    ----------
    model : fitted MetaRanker, or path of a saved one
        A folder is watched: a new model there is loaded, tested, and then used.
        Several threads call a given model at once: ``n_jobs=1`` is best.
    name : str, optional
        The model's name on the page, in /model, and in the path of the project; by default the folder's.
    threads : int
        Threads that ask the model.
    max_body : int
        Most bytes of a request.
    token : str, optional
        A request must carry it as ``Authorization: Bearer TOKEN``. /health, /ready, /openapi.json and the
        page at / need none; the page asks for it.
    origins : sequence of str
        Origins whose web pages may ask (CORS), such as "https://labels.example"; "*" for all.
    propensity_weight : float, optional
        Propensity weight for a model of a folder.

    Returns
    -------
    FastAPI
        An ASGI application for any server; `metarank serve` runs it with uvicorn. A folder is watched from
        the start to the end of the application's lifespan.

    Examples
    --------
    >>> from metarank import MetaRanker, data
    >>> train = data.make_multilabel(100, n_features=3, n_labels=4, seed=0)
    >>> app = create_app(MetaRanker(effort="low", ranker="logistic", n_jobs=1).fit(train))
    >>> sorted({route.path for route in app.routes})  # doctest: +NORMALIZE_WHITESPACE
    ['/', '/explain', '/health', '/metrics', '/model', '/openapi.json', '/rank', '/ready',
    '/v1/projects/{project}', '/v1/projects/{project}/suggest']
    """
    service = Service(ModelHolder(model, propensity_weight), name, threads, max_body)
    # The pages of FastAPI's own documentation fetch their scripts from elsewhere.
    app = FastAPI(
        title="metarank", version=__version__, lifespan=service.lifespan, docs_url=None, redoc_url=None
    )
    app.middleware("http")(service.counted)
    if origins:
        headers = ["Authorization", "Content-Type"]
        app.add_middleware(
            CORSMiddleware, allow_origins=origins, allow_methods=["GET", "POST"], allow_headers=headers
        )
    app.add_exception_handler(AnyHTTPException, _refused)
    guarded = [] if token is None else [Depends(_guard(token))]
    for path, answer, kind, body in (
        ("/rank", service.rank, JSON, RankRequest),
        ("/explain", service.explain, JSON, ExplainRequest),
        (SUGGEST, service.suggest, FORM, SuggestRequest),
    ):
        content = {kind: {"schema": body.model_json_schema()}}
        described = {"requestBody": {"required": True, "content": content}}
        app.post(path, responses=_REFUSALS, openapi_extra=described, dependencies=guarded)(answer)
    for path, show, rule in (
        ("/", service.page, []),
        ("/health", service.health, []),
        ("/ready", service.ready, []),
        ("/model", service.model, guarded),
        ("/metrics", service.numbers, guarded),
        (PROJECT, service.project, guarded),
    ):
        app.get(path, dependencies=rule, include_in_schema=path != "/")(show)
        app.head(path, dependencies=rule, include_in_schema=False)(show)
    return app


class Service:
    """What an application does at each of its paths."""

    def __init__(self, holder: ModelHolder, name: str | None, threads: int, max_body: int) -> None:
        check_integer("threads", threads, 1, 256)
        check_integer("max_body", max_body, 1)
        self.holder = holder
        self.name: str = name or holder.name
        self.max_body = max_body
        self.metrics: ServiceMetrics = ServiceMetrics({"version": __version__, "model": self.name})
        self._threads = ThreadPoolExecutor(threads, "metarank")

    @asynccontextmanager
    async def lifespan(self, _: FastAPI) -> AsyncIterator[None]:
        """The model's folder is watched while the application runs."""
        ended = threading.Event()
        threading.Thread(target=self.holder.watch, args=(ended,), daemon=True).start()
        yield
        ended.set()

    async def rank(self, request: Request) -> Response:
        """The k best labels of one instance or of several, best first."""
        return await self._answered(self.holder.current.answerer.rank, request, JSON)

    async def explain(self, request: Request) -> Response:
        """Why labels stand where they do for an instance."""
        return await self._answered(self.holder.current.answerer.explain, request, JSON)

    async def suggest(self, request: Request, project: str) -> Response:
        """The best labels of a text as Annif's `http` backend takes them, in the order of /rank."""
        self._check_project(project)
        return await self._answered(self.holder.current.answerer.suggest, request, FORM)

    async def _answered(
        self, answer: Callable[[bytes], dict[str, Any]], request: Request, kind: str
    ) -> Response:
        """The reply to a request, made by one of the threads: the event loop does not wait."""
        body = await self._body(request, kind)

        def made() -> bytes:
            return json.dumps(answer(body), allow_nan=False).encode()

        try:
            content = await asyncio.get_running_loop().run_in_executor(self._threads, made)
        except HTTPException:
            raise
        except Exception:
            logger.exception("a request failed")
            raise HTTPException(500, "internal fault; see the log of the server") from None
        return Response(content, media_type=JSON)

    async def _body(self, request: Request, kind: str) -> bytes:
        """The body of a request, if it is declared to be of a type and keeps the limit."""
        if request.headers.get("content-type", "").partition(";")[0].strip().lower() != kind:
            raise HTTPException(415, f"the Content-Type must be {kind}")
        body = bytearray()
        try:
            async for part in request.stream():
                body += part
                if len(body) > self.max_body:
                    raise HTTPException(413, f"the body must have at most {self.max_body} bytes")
        except ClientDisconnect:
            raise HTTPException(400, "the body is incomplete") from None
        return bytes(body)

    async def counted(self, request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        """Count a request with its status and time. Browsers are not to guess the type of its reply."""
        start, status = time.perf_counter(), 500
        try:
            response = await answer(request)
            status = response.status_code
            response.headers["x-content-type-options"] = "nosniff"
            return response
        finally:
            route = request.scope.get("route")
            self.metrics.request(getattr(route, "path", "other"), status, time.perf_counter() - start)

    async def health(self) -> Response:
        """Whether the service is alive."""
        return JSONResponse({"status": "ok"})

    async def ready(self) -> Response:
        """By which model requests are answered, and since when."""
        loaded = self.holder.current
        facts = {"version": __version__, "digest": loaded.digest, "loaded": loaded.since}
        return JSONResponse({"status": "ready", **facts})

    async def model(self) -> Response:
        """What the model takes, and the limits of a request."""
        facts = self.holder.current.answerer.facts()
        facts["limits"]["max_body"] = self.max_body
        return JSONResponse({"version": __version__, "name": self.name, **facts})

    async def project(self, project: str) -> Response:
        """The model as a project of Annif: whether it is trained, and since when it answers."""
        self._check_project(project)
        loaded = self.holder.current
        return JSONResponse(
            {
                "project_id": self.name,
                "name": self.name,
                "language": loaded.answerer.model.language,
                "backend": {"backend_id": "metarank"},
                "is_trained": True,
                "modification_time": loaded.since,
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


def _guard(token: str) -> Callable[..., Awaitable[None]]:
    """A dependency that refuses requests without the token."""
    bearer = Depends(HTTPBearer(auto_error=False))

    async def check(credentials: HTTPAuthorizationCredentials | None = bearer) -> None:
        given = "" if credentials is None else credentials.credentials
        if not compare_digest(given.encode(), token.encode()):
            raise HTTPException(
                401,
                "the Authorization header must be Bearer and the token of the service",
                {"www-authenticate": "Bearer"},
            )

    return check


async def _refused(_: Request, error: Any) -> Response:
    content = json.dumps({"error": str(error.detail)})  # in ASCII: a message may hold half a character
    return Response(content, error.status_code, error.headers, JSON)
