"""Limits how many connections the server keeps, and how long one may keep it waiting.

Uvicorn closes idle connections between requests, and nothing else: a half-sent head, a half-sent
body or an unread response would be kept forever. Here each of them has a limit. Large bodies have
no limit in total, because a slow connection is not an error: they only have to keep coming.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from holdfast.clock import Clock

_FULL_TEXT = b"too many connections at once"
_FULL = (
    b"HTTP/1.1 503 Service Unavailable\r\nContent-Type: text/plain\r\n"
    b"Content-Length: %d\r\nRetry-After: 5\r\nConnection: close\r\n\r\n%b"
) % (len(_FULL_TEXT), _FULL_TEXT)


@dataclass(frozen=True, slots=True)
class ConnectionLimits:
    connections: int = 1000
    head_seconds: float = 10.0  # from its first byte, or from the connection, until it is complete
    progress_seconds: float = 20.0  # the period over which bodies and replies are judged
    bytes_per_second: int = 512  # minimum rate at which a body arrives and a reply is read

    @property
    def least_bytes(self) -> int:
        return int(self.progress_seconds * self.bytes_per_second)


class Connections:
    """All connections of one server."""

    def __init__(self, limits: ConnectionLimits, clock: Clock, log: Any) -> None:
        self.limits = limits
        self.clock = clock
        self._log = log
        self._open: set[GuardedConnection] = set()
        # Those on which no request is being answered, the longest waiting first.
        self._waiting: dict[GuardedConnection, None] = {}
        self._closed_count = 0
        self._refused_count = 0

    def admit(self, connection: GuardedConnection) -> bool:
        """Admits a connection; at the limit, closes the one that has been idle longest.

        A person's request is sent at once, so a crowd of half-sent ones does not lock people
        out."""
        if len(self._open) >= self.limits.connections:
            longest = next(iter(self._waiting), None)
            if longest is None:
                self._refused_count += 1
                return False
            self._closed_count += 1
            longest.cut()
            self.forget(longest)
        self._open.add(connection)
        self.wait_for(connection)
        return True

    def wait_for(self, connection: GuardedConnection) -> None:
        self._waiting[connection] = None

    def stop_waiting_for(self, connection: GuardedConnection) -> bool:
        """Stops waiting; returns whether the connection was waited for."""
        waited = connection in self._waiting
        self._waiting.pop(connection, None)
        return waited

    def forget(self, connection: GuardedConnection) -> None:
        self._open.discard(connection)
        self._waiting.pop(connection, None)

    def sweep(self) -> None:
        """Closes connections that are too slow; called every second or so."""
        now = self.clock.monotonic()
        for connection in list(self._open):
            connection.end_if_late(now)
        if self._closed_count or self._refused_count:
            self._log.warning(
                "connections.full",
                limit=self.limits.connections,
                closed=self._closed_count,
                refused=self._refused_count,
            )
            self._closed_count = self._refused_count = 0


class _Progress:
    """Whether enough bytes pass, judged over longer periods, so that a short stall is fine."""

    def __init__(self, limits: ConnectionLimits) -> None:
        self._limits = limits
        self._since: float | None = None
        self._count = 0

    def restart(self) -> None:
        self._since = None

    def is_too_slow(self, now: float, count: int) -> bool:
        """Judges the connection; `count` is how many bytes have passed in all."""
        if self._since is None:
            self._since, self._count = now, count
        if now - self._since < self._limits.progress_seconds:
            return False
        slow = count - self._count < self._limits.least_bytes
        self._since, self._count = now, count
        return slow


class GuardedConnection(H11Protocol):
    def __init__(self, connections: Connections, **uvicorns: Any) -> None:
        super().__init__(**uvicorns)
        self._guard = connections
        self._limits = connections.limits
        self._head_since: float | None = connections.clock.monotonic()
        self._answered_at = 0.0
        self._received_count = 0
        self._receiving = _Progress(self._limits)
        self._sending = _Progress(self._limits)

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if not self._guard.admit(self):
            transport.write(_FULL)
            transport.close()

    def connection_lost(self, exc: Exception | None) -> None:
        self._guard.forget(self)
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing():
            return
        self._received_count += len(data)
        super().data_received(data)
        if self.conn.their_state is h11.IDLE:
            if self._head_since is None:
                self._head_since = self._guard.clock.monotonic()
            self._guard.wait_for(self)
        elif self._guard.stop_waiting_for(self):
            self._head_since = None
            self._receiving.restart()

    def on_response_complete(self) -> None:
        self._answered_at = self._guard.clock.monotonic()
        super().on_response_complete()
        if self.conn.their_state is h11.IDLE and not self.transport.is_closing():
            self._guard.wait_for(self)

    def resume_writing(self) -> None:
        self._sending.restart()
        super().resume_writing()

    def end_if_late(self, now: float) -> None:
        if self._reply_is_stuck(now):
            self.cut()
        elif self.transport.is_closing():
            return
        elif self.conn.their_state is h11.IDLE:
            if self._head_is_late(now):
                self.cut()
        elif self.conn.their_state is h11.SEND_BODY and self._body_is_late(now):
            self._refuse_body()

    def cut(self) -> None:
        """Closes the connection without a response, and without waiting until what was written has
        been read."""
        self.transport.abort()

    def _head_is_late(self, now: float) -> bool:
        return self._head_since is not None and now - self._head_since > self._limits.head_seconds

    def _body_is_late(self, now: float) -> bool:
        if self.cycle.response_complete:
            # Answered before it arrived completely: the rest is of no use, however fast it comes.
            return now - self._answered_at > self._limits.head_seconds
        if self.flow.read_paused or self.cycle.waiting_for_100_continue:
            self._receiving.restart()  # the server is slow, not the client
            return False
        return self._receiving.is_too_slow(now, self._received_count)

    def _reply_is_stuck(self, now: float) -> bool:
        unread = self.transport.get_write_buffer_size()
        if not unread or not (self.flow.write_paused or self.transport.is_closing()):
            self._sending.restart()
            return False
        # Nothing is added to the buffer now: it can only shrink.
        return self._sending.is_too_slow(now, -unread)

    def _refuse_body(self) -> None:
        if not self.cycle.response_started:
            head = h11.Response(
                status_code=408, headers=[("Connection", "close"), ("Content-Length", "0")]
            )
            self.transport.write(self.conn.send(head) or b"")
        self.cycle.disconnected = True
        self.cycle.message_event.set()
        self.transport.close()
