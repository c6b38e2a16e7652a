"""Waits for a provider.

A refusal closes the gate of the host for all workers. An entry that gave up its place for every
closed second would lose more than that second: its claim goes back, its batch of look-ups is broken
up, and both have to be put together again. So a request waits for a short closure and is sent
again; for a long one the entry gives up its place, which uses up no attempt.

A provider that cannot be reached closes its gate too, however long it is down: entries wait, and
from time to time one of them tries.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

import httpx2

from holdfast.errors import GateWait, ItemError
from holdfast.http.reply import Reply
from holdfast.pipeline import Http

T = TypeVar("T")
_TRIES = 4
_LONGEST_WAIT_SECONDS = 4.0
_WAITS = 5
_LOST = ("NETWORK_ERROR", "CONNECTION_REFUSED")  # a connection was lost: another may work
_DOWN = (*_LOST, "DNS_ERROR", "TIMEOUT")


async def asked(http: Http, url: str, send: Callable[[], Awaitable[T]]) -> T:
    """Returns what `send` returns, sent again after a refusal and after a short wait for the
    gate."""
    tries = waits = 0
    while True:
        try:
            return await _unless_down(http, url, send, first=not tries)
        except ItemError as error:
            tries += 1
            is_lost = error.code in _LOST and tries == 1
            if tries == _TRIES or not (is_lost or error.code == "RATE_LIMITED"):
                raise
        except GateWait as wait:
            waits += 1
            if wait.seconds > _LONGEST_WAIT_SECONDS or waits == _WAITS:
                raise
            await asyncio.sleep(wait.seconds)


async def _unless_down(http: Http, url: str, send: Callable[[], Awaitable[T]], *, first: bool) -> T:
    """Closes the gate if the provider cannot be reached; not for the first lost connection."""
    try:
        return await send()
    except ItemError as error:
        if error.code not in _DOWN or (first and error.code in _LOST):
            raise
        nothing = Reply(503, url, httpx2.Headers(), b"")
        await http.throttled(nothing, f"the provider cannot be reached: {error.message[:200]}")
        raise


def is_page(reply: Reply) -> bool:
    """Whether the reply is a page for people, whatever type it was sent with: no JSON begins this
    way."""
    return reply.content_type == "text/html" or reply.content[:100].lstrip().startswith(b"<")
