"""Workers that died: what they held is freed by the first process that sees it."""

from __future__ import annotations

import os
import subprocess
import sys

import structlog

from holdfast.kernel import Store
from holdfast.kernel.worker.lost_workers import LostWorkers, this_machine
from tests.store.checks import claim, claim_one, execute, filled_job, lease_stream, make_job


async def _add(store: Store, name: str, pid: int, machine: str = "elsewhere") -> None:
    await store.workers.add_worker(name, "host", pid, [], machine=machine)


async def _silence(store: Store, name: str, seconds: float = 60.0) -> None:
    sql = "update workers set seen_at = @after(:ago) where name = :name"
    await execute(store, sql, name=name, ago=-seconds)


def observer(store: Store, name: str = "observer") -> LostWorkers:
    return LostWorkers(store, name, structlog.get_logger())


async def test_ranges_and_streams_of_a_lost_worker_are_free_after_two_looks(
    store: Store,
) -> None:
    job_id = await filled_job(store, 5)
    walked_id = await make_job(store)
    await _add(store, "lost", 1)
    await claim_one(store, job_id, worker="lost")
    await lease_stream(store, walked_id, "lost")
    await _silence(store, "lost")
    look = observer(store)
    await look.free()
    assert await claim(store, job_id, worker="next") == []
    await look.free()
    assert len(await claim(store, job_id, worker="next")) == 1
    await lease_stream(store, walked_id, "next")


async def test_worker_that_comes_back_in_time_keeps_what_it_has(store: Store) -> None:
    job_id = await filled_job(store, 5)
    await _add(store, "slow", 1)
    await claim_one(store, job_id, worker="slow")
    look = observer(store)
    await _silence(store, "slow")
    await look.free()
    await store.workers.beat("slow")
    await look.free()
    assert await claim(store, job_id, worker="next") == []


async def test_worker_that_was_taken_for_lost_counts_again_when_it_is_seen(store: Store) -> None:
    await _add(store, "slow", 1)
    await _silence(store, "slow")
    look = observer(store)
    await look.free()
    await look.free()
    assert await store.workers.live() == []
    await store.workers.beat("slow")
    assert [worker["name"] for worker in await store.workers.live()] == ["slow"]


async def test_worker_does_not_take_itself_for_lost(store: Store) -> None:
    job_id = await filled_job(store, 5)
    await _add(store, "self", 1)
    await claim_one(store, job_id, worker="self")
    await _silence(store, "self")
    look = observer(store, "self")
    for _ in range(3):
        await look.free()
    assert await claim(store, job_id, worker="next") == []


async def test_dead_process_of_this_machine_is_seen_at_once(store: Store) -> None:
    job_id = await filled_job(store, 4, 4)
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    await _add(store, "killed", process.pid, this_machine())
    await _add(store, "alive", os.getpid(), this_machine())
    await _add(store, "elsewhere", process.pid, "another machine")
    for name in ("killed", "alive", "elsewhere"):
        await claim(store, job_id, 2, worker=name)
    await observer(store).free()
    live = [worker["name"] for worker in await store.workers.live()]
    assert live == ["alive", "elsewhere"]
    free = [claimed.lease for claimed in await claim(store, job_id, worker="next")]
    assert {(lease.lo, lease.hi, lease.expiries) for lease in free} == {(1, 2, 1), (7, 8, 0)}
