"""Keeps a connection to RabbitMQ, and opens it again whenever it is lost."""

from __future__ import annotations

import asyncio
import random
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aio_pika
from aio_pika.abc import AbstractChannel, AbstractConnection
from aio_pika.connection import make_url
from aio_pika.exceptions import (
    CONNECTION_EXCEPTIONS,
    AuthenticationError,
    InvalidFrameError,
    ProbableAuthenticationError,
)
from structlog.typing import FilteringBoundLogger

from holdfast.errors import BrokerGone, UserError
from holdfast.kernel.worker.patience import backoff
from holdfast.tasks import end_tasks
from holdfast.urls import check_files, mask_password

CONNECT_SECONDS = 10.0
#: aiormq gives up on a silent peer after three times this plus one second: after at most 20 s.
HEARTBEAT_SECONDS = 5
CLOSE_SECONDS = 5.0
FIRST_DELAY_SECONDS = 0.1
LONGEST_DELAY_SECONDS = 5.0
#: A server that stops or starts may refuse an existing virtual host with the same answer.
VHOST_TRIES = 3
#: Parts of a broker's URL that name files.
_FILES = frozenset({"cafile", "capath", "certfile", "keyfile"})


class VhostRefused(UserError):
    """Raised if the virtual host does not exist, or this user may not use it."""


class Link:
    """One connection, kept open. `use` names its purpose in the log and in RabbitMQ."""

    def __init__(self, url: str, use: str, log: FilteringBoundLogger, rng: random.Random) -> None:
        self._url = url
        self._use = use
        self._log = log
        self._rng = rng
        self._connection: AbstractConnection | None = None
        self._up = asyncio.Event()
        self._lost = asyncio.Event()
        self._reason = ""
        self._keeper: asyncio.Task[None] | None = None

    @property
    def is_up(self) -> bool:
        return self._up.is_set()

    async def open(self) -> None:
        """Opens the connection; waits for a broker that cannot be reached.

        Raises UserError if it refuses us."""
        await self._connect(first=True)
        self._keeper = asyncio.create_task(self._keep(), name=f"broker link for {self._use}")

    async def close(self) -> None:
        if self._keeper is not None:
            await end_tasks([self._keeper])
        self._up.clear()
        await self._hang_up()

    async def wait_until_up(self) -> None:
        await self._up.wait()

    async def channel(self) -> AbstractChannel:
        """Returns a new channel; raises BrokerGone while there is no connection."""
        connection = self._connection
        if connection is None or not self.is_up:
            raise BrokerGone(self._reason or "there is no connection")
        # While the server has an alarm, opening a channel would wait forever.
        async with loss_is_broker_gone(), asyncio.timeout(CONNECT_SECONDS):
            channel = connection.channel(on_return_raises=True)
            await channel.initialize()
            return channel

    async def _keep(self) -> None:
        while True:
            heed_cancellation()
            await self._lost.wait()
            self._up.clear()
            self._log.warning(
                "broker.gone", url=mask_password(self._url), use=self._use, error=self._reason
            )
            await self._hang_up()
            await self._connect(first=False)

    async def _connect(self, first: bool) -> None:
        logged = "" if first else "broker.gone"
        for tries, delay in enumerate(
            backoff(self._rng, FIRST_DELAY_SECONDS, LONGEST_DELAY_SECONDS), 1
        ):
            try:
                connection = await connect_once(self._url, self._use)
                break
            except UserError as error:
                if first and (tries >= VHOST_TRIES or not isinstance(error, VhostRefused)):
                    raise
                logged = self._log_refused(error, logged)
            except BrokerGone as error:
                logged = self._log_gone(error, logged)
            await asyncio.sleep(delay)
        self._take(connection)
        if logged:
            self._log.warning("broker.back", url=mask_password(self._url), use=self._use)

    def _log_refused(self, error: UserError, logged: str) -> str:
        self._reason = error.message
        if logged != "broker.refused":
            url = mask_password(self._url)
            self._log.error("broker.refused", url=url, use=self._use, error=error.message)
        return "broker.refused"

    def _log_gone(self, error: BrokerGone, logged: str) -> str:
        self._reason = str(error)
        if not logged:
            url = mask_password(self._url)
            self._log.warning("broker.gone", url=url, use=self._use, error=self._reason)
        return logged or "broker.gone"

    def _take(self, connection: AbstractConnection) -> None:
        def on_close(_: object, error: BaseException | None) -> None:
            if connection is self._connection:
                self._reason = reason_of(error) if error else "the connection was closed"
                self._lost.set()

        self._connection = connection
        self._lost.clear()
        self._up.set()
        connection.close_callbacks.add(on_close)
        if not connection.connected.is_set():
            on_close(None, None)

    async def _hang_up(self) -> None:
        connection, self._connection = self._connection, None
        if connection is not None:
            await close_quietly(connection)


async def connect_once(url: str, use: str) -> AbstractConnection:
    """Connects; raises UserError if the broker refuses us, BrokerGone if it cannot be reached."""
    check_files(url, _FILES, "HOLDFAST_BROKER_URL")
    address = make_url(url, heartbeat=HEARTBEAT_SECONDS, name=f"holdfast {use}")
    connection = aio_pika.Connection(address)
    try:
        async with loss_is_broker_gone():
            await connection.connect(timeout=CONNECT_SECONDS)
        heed_cancellation()
    except BaseException as error:
        await close_quietly(connection)
        heed_cancellation()
        refusal = _refusal(error.__cause__, url)
        if refusal is not None:
            raise refusal from error
        if isinstance(error, BrokerGone) or not isinstance(error, Exception):
            raise
        # Whatever else a faulty server causes must not end the task that keeps the link.
        raise BrokerGone(f"{type(error).__name__}: {error}") from error
    return connection


def _refusal(cause: BaseException | None, url: str) -> UserError | None:
    """Returns the mistake that a person has to fix, if it is one."""
    shown = mask_password(url)
    if isinstance(cause, ProbableAuthenticationError | AuthenticationError):
        return UserError(
            f"the broker does not accept the user or password of {shown}",
            "Fix HOLDFAST_BROKER_URL, or create the user: rabbitmqctl add_user NAME PASSWORD. "
            "The user guest may connect from localhost only.",
        )
    # When a virtual host is refused, the server closes the connection; aiormq drops the reason.
    if isinstance(cause, InvalidFrameError) and "Connection.Close" in str(cause):
        return VhostRefused(
            f"the virtual host in {shown} does not exist, or this user may not use it",
            "Fix the last part of HOLDFAST_BROKER_URL (%2F is the default one), or run: "
            "rabbitmqctl add_vhost NAME; rabbitmqctl set_permissions -p NAME USER '.*' '.*' '.*'",
        )
    certificate = cause.__cause__ if cause is not None else None
    if isinstance(certificate, ssl.SSLCertVerificationError):
        return UserError(
            f"the certificate of {shown} is not trusted: {certificate.verify_message}",
            "Add ?cafile=FILE with the authority's certificate to HOLDFAST_BROKER_URL.",
        )
    return None


@asynccontextmanager
async def loss_is_broker_gone() -> AsyncIterator[None]:
    """Turns whatever a lost connection raises into BrokerGone.

    aiormq may end what waits on a lost channel with CancelledError; that is a cancellation only if
    this task was really cancelled."""
    try:
        yield
    except asyncio.CancelledError as error:
        if is_cancelled():
            raise
        raise BrokerGone("the connection was lost") from error
    except CONNECTION_EXCEPTIONS as error:
        raise BrokerGone(reason_of(error)) from error


def is_cancelled() -> bool:
    task = asyncio.current_task()
    return task is None or task.cancelling() > 0


def heed_cancellation() -> None:
    """Raises a cancellation that was swallowed: before Python 3.12, `asyncio.wait_for`, on which
    aiormq relies, may do so."""
    if is_cancelled():
        raise asyncio.CancelledError


def reason_of(error: BaseException) -> str:
    if isinstance(error, TimeoutError) and not error.args:
        return "no answer in time"
    # Besides text, an error has numbers that mean nothing to people.
    words = [arg for arg in error.args if isinstance(arg, str)]
    return " ".join(words) or type(error).__name__


async def close_quietly(closing: AbstractConnection | AbstractChannel) -> None:
    """Closes a connection or channel without waiting for a peer that is gone."""
    with suppress(BrokerGone):
        async with loss_is_broker_gone(), asyncio.timeout(CLOSE_SECONDS):
            await closing.close()
