"""Sends one request and returns one reply, within its time and size; failures get their code."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass

import h11
import httpx2

from holdfast.clock import Clock
from holdfast.errors import ItemError
from holdfast.http.body import (
    ACCEPTED_CODINGS,
    CutShort,
    Unpacking,
    decode,
    decode_beginning,
)
from holdfast.http.connections import Connection, Connections, origin_of
from holdfast.http.message import Message
from holdfast.http.options import HttpOptions
from holdfast.http.streams import Network

_THREAD_ABOVE_BYTES = 32 * 1024  # may unpack to 32 MB, which would block the event loop


@dataclass(frozen=True, slots=True)
class Answer:
    status: int
    headers: httpx2.Headers
    content: bytes


#: Receives a body part by part.
Into = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class _Taken:
    """How much of a body is accepted, and where it goes."""

    max_bytes: int
    cut: bool
    into: Into | None


class Wire:
    """The connections.

    Cookies are not kept, and no proxy is taken from the environment: it would resolve names itself,
    past the address check."""

    def __init__(self, options: HttpOptions, network: Network, clock: Clock) -> None:
        self._connections = Connections(network, httpx2.create_ssl_context(), options, clock)
        self._headers = {
            "user-agent": options.user_agent,
            "accept": "*/*",
            "accept-encoding": ACCEPTED_CODINGS,
        }

    async def send(
        self,
        message: Message,
        *,
        seconds: float,
        max_bytes: int,
        cut: bool = False,
        into: Into | None = None,
    ) -> Answer:
        """Returns the reply to one request.

        Its body is whole, unless `cut` asks for the beginning or the status is not a success: then
        it is what fits into `max_bytes`. If `into` is given, it receives the body of a success as
        it arrives."""
        try:
            async with asyncio.timeout(seconds):
                return await self._exchange(message, _Taken(max_bytes, cut, into))
        except TimeoutError as error:
            raise ItemError("TIMEOUT", f"{message.label}: no response in time") from error
        except h11.LocalProtocolError as error:
            raise ItemError(
                "INVALID_URL", f"{message.label}: cannot be sent ({_without_value(error)})"
            ) from None
        except (h11.RemoteProtocolError, OSError) as error:
            raise ItemError("NETWORK_ERROR", f"{message.label}: {error}") from error

    def close(self) -> None:
        self._connections.close()

    async def _exchange(self, message: Message, taken: _Taken) -> Answer:
        max_bytes = taken.max_bytes
        async with self._connections.to(origin_of(message.url)) as connection:
            response = await connection.ask(self._request(message), message.body)
            headers = httpx2.Headers(response.headers.raw_items())
            success = 200 <= response.status_code < 300
            cut = taken.cut or not success
            if taken.into is not None and success:
                await _stream(message, connection, headers, max_bytes, taken.into)
                return Answer(response.status_code, headers, b"")
            body = await _read(message, connection, headers, max_bytes, cut)
        content = await _decoded(message, headers, body, max_bytes, cut)
        return Answer(response.status_code, headers, content)

    def _request(self, message: Message) -> h11.Request:
        url = message.url
        headers = {"host": url.netloc.decode("ascii"), **self._headers, **message.headers}
        if message.body or message.method in ("POST", "PUT", "PATCH"):
            headers["content-length"] = str(len(message.body))
        return h11.Request(
            method=message.method,
            target=url.raw_path,
            headers=[(name.encode(), value.encode()) for name, value in headers.items()],
        )


async def _read(
    message: Message,
    connection: Connection,
    headers: httpx2.Headers,
    max_bytes: int,
    cut: bool,
) -> bytes:
    announced = headers.get("content-length", "")
    if not cut and message.method != "HEAD" and announced.isdigit() and int(announced) > max_bytes:
        raise _too_large(message, f"{announced} bytes announced, {max_bytes} allowed")
    parts: list[bytes] = []
    size = 0
    async with aclosing(connection.body()) as stream:
        async for part in stream:
            parts.append(part)
            size += len(part)
            if size > max_bytes:
                break
    if size > max_bytes and not cut:
        raise _too_large(message, f"more than {max_bytes} bytes")
    return b"".join(parts)[:max_bytes]


async def _stream(
    message: Message,
    connection: Connection,
    headers: httpx2.Headers,
    max_bytes: int,
    into: Into,
) -> None:
    try:
        unpacking = Unpacking(headers.get("content-encoding"), max_bytes)
        async with aclosing(connection.body()) as stream:
            async for data in stream:
                for part in unpacking.feed(data):
                    into(part)
        unpacking.close()
    except CutShort as error:
        raise ItemError("NETWORK_ERROR", f"{message.label}: the body is incomplete") from error
    except ItemError as error:
        raise ItemError(error.code, f"{message.label}: {error.message}") from error


async def _decoded(
    message: Message, headers: httpx2.Headers, body: bytes, max_bytes: int, cut: bool
) -> bytes:
    codings = headers.get("content-encoding")
    if codings is None:
        return body
    undo = decode_beginning if cut else decode
    try:
        if len(body) > _THREAD_ABOVE_BYTES:
            return await asyncio.to_thread(undo, body, codings, max_bytes)
        return undo(body, codings, max_bytes)
    except CutShort as error:
        raise ItemError("NETWORK_ERROR", f"{message.label}: the body is incomplete") from error
    except ItemError as error:
        raise ItemError(error.code, f"{message.label}: {error.message}") from error


def _without_value(error: Exception) -> str:
    """Describes an error without the value of a header, which the library quotes and which may be a
    key."""
    text = str(error)
    return "Illegal header value" if "header value" in text else text


def _too_large(message: Message, what: str) -> ItemError:
    return ItemError("TOO_LARGE", f"{message.label}: {what}")
