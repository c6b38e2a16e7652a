"""A piece of the web on loopback that answers as real servers do, at their worst too.

async with World() as world:
    world.on("/items", json_answer({"items": []}))
    await client.get(world.url("/items"))
    assert world.requests[0].path == "/items"
"""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from types import TracebackType
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit


@dataclass(frozen=True, slots=True)
class Request:
    method: str
    target: str
    headers: Mapping[str, str]  # names in lower case
    body: bytes

    @property
    def path(self) -> str:
        return unquote(urlsplit(self.target).path)

    @property
    def query(self) -> dict[str, str]:
        """The last value of each parameter."""
        found = parse_qs(urlsplit(self.target).query, keep_blank_values=True)
        return {name: values[-1] for name, values in found.items()}


@dataclass(slots=True)
class Visit:
    """A request with its times (monotonic): from when it was read to when its reply was sent."""

    request: Request
    started_at: float
    finished_at: float | None = None  # None: the reply is still being sent
    answer: Answer | Raw | None = None


@dataclass(frozen=True, slots=True)
class Answer:
    """A well-formed reply; the connection stays open."""

    status: int = 200
    body: bytes = b""
    headers: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Raw:
    """Bytes as they are, with pauses (numbers, in seconds) between; then the connection
    closes. May be endless."""

    parts: Iterable[bytes | float]


Handler = Callable[[Request], Answer | Raw | Awaitable[Answer | Raw]]


def json_answer(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Answer:
    body = json.dumps(value).encode()
    return Answer(status, body, {"Content-Type": "application/json", **(headers or {})})


def text_answer(text: str, status: int = 200, content_type: str = "text/plain") -> Answer:
    return Answer(status, text.encode(), {"Content-Type": content_type})


def redirect(location: str, status: int = 302) -> Answer:
    return Answer(status, b"moved", {"Location": location, "Content-Type": "text/plain"})


class World:
    """Routes by path, and everything that was asked, in order. Other paths are answered by
    `otherwise`, or with 404."""

    def __init__(
        self,
        tls: ssl.SSLContext | None = None,
        *,
        otherwise: Handler | None = None,
        address: str = "127.0.0.1",
        port: int = 0,
    ) -> None:
        self.requests: list[Request] = []
        self.visits: list[Visit] = []
        self.connections = 0
        self.port = port
        self._address = address
        self._otherwise = otherwise or _not_found
        self._tls = tls
        self._routes: dict[str, Handler] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._server: asyncio.Server | None = None

    def on(self, path: str, answer: Answer | Raw | Handler) -> None:
        """Answers requests for the path: always the same, or as the function says."""
        self._routes[path] = answer if callable(answer) else lambda _request: answer

    def url(self, path: str = "/", host: str = "127.0.0.1") -> str:
        scheme = "https" if self._tls else "http"
        return f"{scheme}://{host}:{self.port}{path}"

    def asked(self, path: str) -> list[Request]:
        return [request for request in self.requests if request.path == path]

    async def __aenter__(self) -> World:
        self._server = await asyncio.start_server(
            self._accept, self._address, self.port, ssl=self._tls, limit=1 << 20
        )
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._server is not None
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        self.connections += 1
        try:
            while await self._serve_one(reader, writer):
                pass
        except (OSError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass  # the client went away, or the world ends
        finally:
            self._tasks.discard(task)
            writer.transport.abort()

    async def _serve_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Whether the connection stays open."""
        request = await _read_request(reader)
        self.requests.append(request)
        visit = Visit(request, time.monotonic())
        self.visits.append(visit)
        try:
            return await self._answer(visit, writer)
        finally:
            visit.finished_at = time.monotonic()

    async def _answer(self, visit: Visit, writer: asyncio.StreamWriter) -> bool:
        request = visit.request
        answer = self._routes.get(request.path, self._otherwise)(request)
        if isinstance(answer, Awaitable):
            answer = await answer
        visit.answer = answer
        if isinstance(answer, Answer):
            writer.write(_encode(answer, request.method))
            await writer.drain()
            return True
        await _write_raw(writer, answer)
        return False


def _not_found(_request: Request) -> Answer:
    return text_answer("<html>no such page</html>", 404, "text/html")


async def _read_request(reader: asyncio.StreamReader) -> Request:
    head = (await reader.readuntil(b"\r\n\r\n")).decode("latin-1")
    first, *lines = head.rstrip("\r\n").split("\r\n")
    method, target, _version = first.split(" ", 2)
    pairs = (line.split(":", 1) for line in lines)
    headers = {name.strip().lower(): value.strip() for name, value in pairs}
    body = await reader.readexactly(int(headers.get("content-length", 0)))
    return Request(method, target, headers, body)


def _encode(answer: Answer, method: str) -> bytes:
    phrase = HTTPStatus(answer.status).phrase
    headers = {"Content-Length": str(len(answer.body)), **answer.headers}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
    body = b"" if method == "HEAD" else answer.body
    return f"HTTP/1.1 {answer.status} {phrase}\r\n{head}\r\n".encode() + body


async def _write_raw(writer: asyncio.StreamWriter, raw: Raw) -> None:
    for part in raw.parts:
        if isinstance(part, bytes):
            writer.write(part)
            await writer.drain()
        else:
            await asyncio.sleep(part)
    writer.close()
    await writer.wait_closed()
