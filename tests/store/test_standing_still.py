"""A process that is frozen or cut off in the middle of a transaction."""

from __future__ import annotations

import asyncio

import pytest

from holdfast.errors import DatabaseGone
from holdfast.kernel import Store
from holdfast.kernel.database.driver import Transaction
from tests.store.checks import execute, fetch, filled_job, spelled

pytestmark = pytest.mark.parametrize(
    "database_url", [pytest.param("postgres", marks=pytest.mark.postgres)], indirect=True
)


async def test_transaction_that_is_idle_is_ended_and_frees_what_it_locked(
    store: Store,
) -> None:
    assert tuple((await fetch(store, "show idle_in_transaction_session_timeout"))[0]) == ("30s",)
    job_id = await filled_job(store, 3)

    async def stand_still(tx: Transaction) -> None:
        await tx.execute("set local idle_in_transaction_session_timeout = 100")
        await tx.execute(spelled(store, f"update jobs set name = 'held' where id = {job_id}"))
        await asyncio.wait_for(
            execute(store, f"update jobs set name = 'free' where id = {job_id}"), 30
        )
        await tx.fetch("select 1")

    with pytest.raises(DatabaseGone):
        await store.database.write("test", stand_still)
    assert tuple((await fetch(store, f"select name from jobs where id = {job_id}"))[0]) == ("free",)


async def test_host_that_acknowledges_nothing_is_given_up(store: Store) -> None:
    """Keepalives do not see it: they are sent only when nothing waits to be acknowledged."""
    assert tuple((await fetch(store, "show tcp_user_timeout"))[0]) == ("25000",)
