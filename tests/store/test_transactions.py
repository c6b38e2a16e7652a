"""What becomes of a transaction that is cancelled, or in which a statement failed."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import pytest

from holdfast.kernel import Store
from holdfast.kernel.database.driver import Conflict, Transaction
from holdfast.kernel.database.postgres import watch_peer
from tests.store.checks import claim, claim_one, filled_job, seqs_of
from tests.store.interleave import stopped

POSTGRES = pytest.mark.parametrize("database_url", ["postgres"], indirect=True)


async def write(store: Store) -> None:
    async def body(tx: Transaction) -> None:
        await tx.fetch("select 1")

    await store.database.write("test", body, relaxed=True)


async def read(store: Store) -> None:
    async with store.database.driver.reading() as tx:
        await tx.fetch("select 1")


@pytest.mark.parametrize("use", [write, read])
async def test_transaction_may_be_cancelled_at_any_moment(store: Store, use: Any) -> None:
    complaints: list[dict[str, Any]] = []
    loop = asyncio.get_running_loop()
    loop.set_exception_handler(lambda _, context: complaints.append(context))
    moments = 0
    while not await cancelled_after(use(store), moments):
        moments += 1
        await store.database.fetch("select 1")
    assert moments > 3
    assert complaints == []
    await write(store)


async def cancelled_after(work: Any, moments: int) -> bool:
    """Whether it had ended by itself, `moments` turns of the event loop after its start."""
    task = asyncio.create_task(work)
    for _ in range(moments):
        await asyncio.sleep(0)
    ended = task.done()
    task.cancel()
    await asyncio.wait([task])
    return ended


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_blocked_process_does_not_keep_others_from_writing(
    store: Store, database_url: str
) -> None:
    """It is in a transaction, which is rolled back, and made again when the process is back."""
    job_id = await filled_job(store, 6)
    async with stopped(
        database_url, "claim", "commit", lambda other: claim(other, job_id, 3)
    ) as blocked:
        mine = await claim_one(store, job_id, 3, "next")
        theirs = await blocked.go_on()
    assert (seqs_of(mine), seqs_of(*theirs)) == ([1, 2, 3], [4, 5, 6])


@POSTGRES
async def test_commit_after_a_swallowed_error_is_an_error(store: Store) -> None:
    async def body(tx: Transaction) -> None:
        try:
            await tx.execute("select 1 / 0")
        except Exception:
            return

    with pytest.raises(Exception, match="whole transaction was rolled back"):
        await store.database.write("test", body)
    await write(store)


def test_connection_over_a_network_is_given_up_without_an_answer_for_20_seconds() -> None:
    with socket.socket() as far:
        watch_peer(far)
        assert far.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle, between, count = (
            far.getsockopt(socket.IPPROTO_TCP, option)
            for option in (socket.TCP_KEEPIDLE, socket.TCP_KEEPINTVL, socket.TCP_KEEPCNT)
        )
        assert idle + between * count == 20
        assert far.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) == 20_000


def test_connection_on_this_machine_is_left_as_it_is() -> None:
    with socket.socket(socket.AF_UNIX) as near:
        watch_peer(near)
        assert near.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0


async def test_what_waits_for_the_commit_runs_once_although_the_transaction_ran_twice(
    store: Store,
) -> None:
    calls: list[str] = []
    tries = iter((Conflict("in the way"), None))

    async def body(tx: Transaction) -> None:
        tx.after_commit(lambda: calls.append("committed"))
        if (conflict := next(tries)) is not None:
            raise conflict
        assert calls == []

    await store.database.write("test", body)
    assert calls == ["committed"]


async def test_what_waits_for_the_commit_does_not_run_after_an_error(store: Store) -> None:
    calls: list[str] = []

    async def body(tx: Transaction) -> None:
        tx.after_commit(lambda: calls.append("committed"))
        raise ValueError("not today")

    with pytest.raises(ValueError, match="not today"):
        await store.database.write("test", body)
    assert calls == []


@POSTGRES
async def test_connection_that_listened_goes_back_to_the_pool_without_listening(
    store: Store,
) -> None:
    heard = asyncio.Event()
    listening = asyncio.create_task(store.messages.listen(heard.set))
    async with asyncio.timeout(30):
        while not heard.is_set():
            await store.database.driver.fetch("select pg_notify('holdfast_outbox', '')")
    listening.cancel()
    await asyncio.wait([listening])
    async with store.database.driver.reading() as tx:
        assert await tx.fetch("select pg_listening_channels()") == []
