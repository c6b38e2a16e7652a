"""On PostgreSQL, each commit that makes work tells workers of it, once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from uuid import uuid4

import pytest

from holdfast.kernel import Store
from holdfast.kernel.database.driver import WORK_CHANNEL
from holdfast.kernel.jobs.reprocess import NamedItems
from holdfast.model import ItemStatus
from tests.store.checks import (
    claim_one,
    execute,
    ingest,
    lease_stream,
    make_job,
    records,
    settle,
)

pytestmark = [
    pytest.mark.postgres,
    pytest.mark.parametrize("database_url", ["postgres"], indirect=True),
]


class Notices:
    """What workers hear."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._heard: asyncio.Queue[str] = asyncio.Queue()

    async def listen(self) -> None:
        await self._store.database.driver.listen(WORK_CHANNEL, self._heard.put_nowait)

    async def since_last(self) -> list[str]:
        """Those of the commits since the last call, in order."""
        end = await self._say_end()
        heard = []
        while (text := await asyncio.wait_for(self._heard.get(), 30)) != end:
            heard.append(text)
        return [text for text in heard if text.isdecimal()]

    async def begin(self) -> None:
        """Waits until they are heard."""
        while self._heard.empty():
            await self._say_end()
            await asyncio.sleep(0)

    async def _say_end(self) -> str:
        end = f"end {uuid4()}"
        await self._store.database.driver.fetch(f"select pg_notify('{WORK_CHANNEL}', '{end}')")
        return end


@pytest.fixture
async def notices(store: Store) -> AsyncIterator[Notices]:
    notices = Notices(store)
    listening = asyncio.create_task(notices.listen())
    await notices.begin()
    yield notices
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_new_job_and_each_of_its_pages(store: Store, notices: Notices) -> None:
    job_id = await make_job(store)
    assert await notices.since_last() == [str(job_id)]
    stream = await lease_stream(store, job_id)
    assert await notices.since_last() == []
    for number in range(3):
        await ingest(store, stream, records(2, number * 1000), end=number == 2)
    assert await notices.since_last() == [str(job_id)] * 3


async def test_what_is_given_back_tried_again_or_opened_again(
    store: Store, notices: Notices
) -> None:
    job_id = await make_job(store)
    await ingest(store, await lease_stream(store, job_id), records(3), end=True)
    await notices.since_last()
    told = [str(job_id)]

    await store.leases.release([(await claim_one(store, job_id)).lease])
    assert await notices.since_last() == told
    await store.leases.release([(await claim_one(store, job_id)).lease], delay=60)
    assert await notices.since_last() == []
    await execute(store, "update ranges set available_at = since")
    await claim_one(store, job_id, worker="doomed")
    assert await store.workers.stop_worker("doomed") == [job_id]
    assert await notices.since_last() == told

    await settle(store, await claim_one(store, job_id), ItemStatus.PENDING, delay=0.0)
    assert await notices.since_last() == told
    await settle(store, await claim_one(store, job_id))
    assert await notices.since_last() == []
    await store.outcomes.complete(job_id)
    await store.jobs.reprocess(job_id, NamedItems([1, 2]), "tester")
    assert await notices.since_last() == told
    await store.jobs.pause(job_id, "tester")
    await store.jobs.resume(job_id, "tester")
    assert await notices.since_last() == told
