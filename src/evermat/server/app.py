"""The application: from the arrival of a request to its answer."""

from __future__ import annotations

import logging
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from pydantic import BaseModel, ValidationError
from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect, Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.routing import Mount, Route
from starlette.staticfiles import StaticFiles

from evermat.errors import EvermatError
from evermat.server import protocol
from evermat.server.access import Access, Role
from evermat.server.endpoints import (
    ENDPOINTS,
    Answer,
    Call,
    Endpoint,
    Since,
    as_json,
)
from evermat.server.errors import (
    BadRequestError,
    BodyTooLargeError,
    BusyError,
    MediaTypeError,
    NotThereError,
    document_of,
    status_of,
)
from evermat.server.feed import Feed
from evermat.server.formats import JSON, Body
from evermat.server.limits import CostLimit
from evermat.server.openapi import document_of as openapi_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from evermat.server.service import Service

Checked = TypeVar("Checked", bound=BaseModel)

_LOG = logging.getLogger("evermat.server")
_AT_ONCE = 64
"""Requests that are processed at the same time; others wait."""

_SAFE = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "default-src 'self'; style-src 'self'; "
    "img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}
"""Headers of every answer: no caching, and no content from other sites."""


def follow(call: Call[Since, None]) -> Answer:
    """Follow changes by server-sent events.

    One event for each version, with the facts that it added and removed. The feed
    begins after the version `since`, or after that of the header `Last-Event-ID`.
    """
    raise NotImplementedError(call)  # streams have a response of their own


FEED = Endpoint(
    "GET", "/api/changes", Role.READ, follow, Since, offers=("text/event-stream",)
)
ALL = (*ENDPOINTS, FEED, *protocol.ENDPOINTS)


def application(service: Service, access: Access) -> Starlette:
    """Return the application that serves a knowledge base."""
    return _Application(service, access).starlette


class _Application:
    def __init__(self, service: Service, access: Access) -> None:
        self._service = service
        self._access = access
        self._feed = Feed(service)
        self._threads = anyio.CapacityLimiter(_AT_ONCE)
        self._openapi = as_json(openapi_of(ALL))
        console = StaticFiles(directory=Path(__file__).parent / "console", html=True)
        routes: list[Route | Mount] = [
            Route(
                each.path.replace("{number}", "{number:int}"),
                self._handler(each),
                methods=[each.method],
            )
            for each in (*ENDPOINTS, *protocol.ENDPOINTS)
        ]
        routes += [
            Route("/api/changes", self._follow, methods=["GET"]),
            Route("/openapi.json", self._describe, methods=["GET"]),
            Route("/", self._to_console, methods=["GET"]),
            Mount("/console", console),
        ]
        self.starlette = Starlette(
            routes=routes,
            lifespan=self._lifespan,
            exception_handlers={
                HTTPException: self._refused,
                EvermatError: self._failed,
                Exception: self._unforeseen,
            },
        )

    @asynccontextmanager
    async def _lifespan(self, _: Starlette) -> AsyncIterator[None]:
        yield
        await anyio.to_thread.run_sync(self._service.close)

    # --------------------------------------------------------------- requests

    def _handler(self, endpoint: Endpoint) -> Callable[[Request], Awaitable[Response]]:
        async def handle(request: Request) -> Response:
            start = perf_counter()
            answer = await self._answer(endpoint, request)
            metrics = self._service.metrics
            metrics.seconds.labels(endpoint.path).observe(perf_counter() - start)
            status = str(answer.status_code)
            metrics.requests.labels(endpoint.path, endpoint.method, status).inc()
            return answer

        return handle

    async def _answer(self, endpoint: Endpoint, request: Request) -> Response:
        cost_limit = CostLimit(self._service.limits)
        try:
            role = self._role(endpoint, request)
            params = _parsed(endpoint.params, dict(request.query_params))
            call = Call(
                service=self._service,
                params=params,
                body=await self._body(endpoint, request, cost_limit),
                cost_limit=cost_limit,
                role=role,
                accept=request.headers.get("accept"),
                path=request.path_params,
            )
            answer = await self._work(partial(endpoint.work, call), request, cost_limit)
        except EvermatError as error:
            return await self._failed(request, error)
        except ClientDisconnect:
            return Response(status_code=499)
        except Exception as error:  # noqa: BLE001  a client never sees a traceback
            return await self._unforeseen(request, error)
        return Response(
            answer.content,
            answer.status,
            {**_SAFE, **answer.headers},
            media_type=answer.media_type,
        )

    def _role(self, endpoint: Endpoint, request: Request) -> Role:
        headers = request.headers
        self._access.require_own_site(headers.get("host"), headers.get("origin"))
        role = self._access.role_of(headers.get("authorization"))
        self._access.require(role, endpoint.role)
        return role

    async def _body(
        self, endpoint: Endpoint, request: Request, cost_limit: CostLimit
    ) -> BaseModel | Body | None:
        if endpoint.body is None and not endpoint.files:
            return None
        kind = request.headers.get("content-type", JSON).partition(";")[0]
        kind = kind.strip().lower()
        if not (kind in endpoint.files or (kind == JSON and endpoint.body)):
            known = [*([JSON] if endpoint.body else []), *endpoint.files]
            raise MediaTypeError(
                f"a body of type `{kind}` is not read here",
                help=f"send {', '.join(known)}",
            )
        data = await self._bytes(request, cost_limit)
        if kind != JSON or endpoint.body is None:
            return Body(data, kind)
        model, threads = endpoint.body, self._threads
        return await anyio.to_thread.run_sync(
            partial(_parsed, model, data), limiter=threads
        )

    async def _bytes(self, request: Request, cost_limit: CostLimit) -> bytes:
        most = self._service.limits.body_bytes
        announced = request.headers.get("content-length", "0")
        if announced.isdigit() and int(announced) > most:
            raise _too_large(most)
        parts, size = [], 0
        with anyio.move_on_after(cost_limit.seconds_left) as scope:
            async for part in request.stream():
                size += len(part)
                if size > most:
                    raise _too_large(most)
                parts.append(part)
        if scope.cancelled_caught:
            raise BusyError("the body did not arrive in time")
        return b"".join(parts)

    async def _work(
        self, work: Callable[[], Answer], request: Request, cost_limit: CostLimit
    ) -> Answer:
        """Do work in a thread, which is notified when the client disconnects."""
        outcome: Answer | Exception
        async with anyio.create_task_group() as group:

            async def watch() -> None:
                while (await request.receive())["type"] != "http.disconnect":
                    pass
                cost_limit.gone.set()

            group.start_soon(watch)
            try:
                outcome = await anyio.to_thread.run_sync(work, limiter=self._threads)
            except Exception as error:  # noqa: BLE001  not as a part of a group
                outcome = error
            group.cancel_scope.cancel()
        if isinstance(outcome, Exception):
            raise outcome
        return outcome

    async def _follow(self, request: Request) -> Response:
        try:
            self._role(FEED, request)
            params = _parsed(Since, dict(request.query_params))
            last = request.headers.get("last-event-id")
            since = params.since
            if last is not None and last.isdecimal() and last.isascii():
                since = int(last)
            events = await anyio.to_thread.run_sync(
                self._feed.open, since, params.predicate, limiter=self._threads
            )
        except EvermatError as error:
            return await self._failed(request, error)
        return StreamingResponse(events, headers=_SAFE, media_type="text/event-stream")

    async def _describe(self, _: Request) -> Response:
        return Response(self._openapi.content, headers=_SAFE, media_type=JSON)

    async def _to_console(self, _: Request) -> Response:
        return RedirectResponse("/console/")

    # ----------------------------------------------------------------- errors

    async def _failed(self, request: Request, error: Exception) -> Response:
        assert isinstance(error, EvermatError)  # noqa: S101  registered for these
        status = status_of(error)
        headers = dict(_SAFE)
        if status == 401:  # noqa: PLR2004
            headers["WWW-Authenticate"] = "Bearer"
        if status == 503:  # noqa: PLR2004
            headers["Retry-After"] = "2"
        del request
        answer = as_json(document_of(error))
        return Response(answer.content, status, headers, media_type=JSON)

    async def _refused(self, request: Request, error: Exception) -> Response:
        """Return Starlette's errors, for paths and methods that do not exist."""
        assert isinstance(error, HTTPException)  # noqa: S101  registered for these
        path = request.url.path
        what = f"there is no `{request.method} {path}`"
        problem = NotThereError(what, help="`GET /openapi.json` lists what there is")
        answer = as_json(document_of(problem))
        headers = {**_SAFE, **(error.headers or {})}
        return Response(answer.content, error.status_code, headers, media_type=JSON)

    async def _unforeseen(self, request: Request, error: Exception) -> Response:
        """Log an unexpected error; the client gets a general message."""
        _LOG.error("%s %s failed", request.method, request.url.path, exc_info=error)
        document = {
            "error": {
                "code": "EM900",
                "message": "the server has met an error that it did not foresee",
                "text": "the server has met an error that it did not foresee; "
                "its log tells more",
            }
        }
        return Response(as_json(document).content, 500, _SAFE, media_type=JSON)


def _parsed(model: type[Checked], given: bytes | dict[str, str]) -> Checked:
    """Validate parameters or a body."""
    try:
        if isinstance(given, bytes):
            return model.model_validate_json(given)
        return model.model_validate(given)
    except ValidationError as error:
        where = "body" if isinstance(given, bytes) else "parameters"
        problems = [_problem(each) for each in error.errors(include_url=False)[:5]]
        raise BadRequestError(
            f"the {where}: {'; '.join(dict.fromkeys(problems))}",
            help="`GET /openapi.json` says what is expected",
        ) from None


def _problem(found: Any) -> str:  # noqa: ANN401  as pydantic has it
    place = ".".join(str(part) for part in found["loc"][:4])
    text = found["msg"][:1].lower() + found["msg"][1:]
    return f"`{place}`: {text}" if place else text


def _too_large(most: int) -> BodyTooLargeError:
    return BodyTooLargeError(
        f"a body has {most:,} bytes at most", help="send it in parts"
    )
