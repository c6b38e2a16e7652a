"""One of several hosts is cut off for longer than its leases last, or until it notices; healed."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import asyncpg
import pytest

from holdfast.kernel.database.migrate import upgrade
from tests.chaos import cut_off_in_transaction
from tests.chaos.children import Children
from tests.chaos.worker_hosts import (
    assert_nothing_lost_or_doubled,
    cut_off_at_work,
    heal_and_work_again,
    hosts_at_work,
)
from tests.hosts import HOSTS_MISSING, Host, can_make_hosts, hosts
from tests.postgres import PostgresServer

WAITING = "select count(*) from pg_stat_activity where wait_event_type = 'Lock'"


@pytest.mark.postgres
@pytest.mark.rabbit
@pytest.mark.slow
def test_host_that_is_cut_off_and_healed_costs_no_item_and_settles_none_twice(
    tmp_path: Path, children: Children
) -> None:
    with hosts_at_work(tmp_path, children) as (scene, cut, other):
        job_id = cut_off_at_work(scene, cut, other)
        heal_and_work_again(scene, cut)
        assert_nothing_lost_or_doubled(scene, job_id)


@pytest.mark.exhaustive
@pytest.mark.postgres
@pytest.mark.rabbit
@pytest.mark.slow
def test_host_notices_that_it_is_cut_off_and_works_again_when_it_is_healed(
    tmp_path: Path, children: Children
) -> None:
    """It takes a minute until the connections are given up."""
    with hosts_at_work(tmp_path, children) as (scene, cut, other):
        job_id = cut_off_at_work(scene, cut, other)
        for event in ("broker.gone", "database.gone"):
            cut.wait_until_it_says(event)
        heal_and_work_again(scene, cut)
        assert_nothing_lost_or_doubled(scene, job_id)


@pytest.mark.postgres
@pytest.mark.slow
async def test_locks_are_free_although_an_answer_never_reached_its_host() -> None:
    """The host is cut off while its statement runs, so nothing acknowledges the answer."""
    if not can_make_hosts():
        pytest.fail(HOSTS_MISSING, pytrace=False)
    with (
        hosts(1) as (host,),
        PostgresServer(addresses=["127.0.0.1", host.server_address]) as server,
    ):
        url = server.create_database()
        await asyncio.to_thread(upgrade, url)
        async with asyncpg.create_pool(url, min_size=2) as pool:
            await pool.execute(
                "create table held (n int); insert into held values (0);"
                "create table awaited (n int)"
            )
            with _stands_in_transaction(host, url):
                async with pool.acquire() as blocker, blocker.transaction():
                    await blocker.execute("lock awaited")
                    while not await pool.fetchval(WAITING):
                        pass
                    host.cut_off()
                await asyncio.wait_for(pool.execute("update held set n = 2"), 60)


@contextmanager
def _stands_in_transaction(host: Host, url: str) -> Iterator[None]:
    far = url.replace("127.0.0.1", host.server_address)
    command = host.command(sys.executable, "-P", cut_off_in_transaction.__file__, far)
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    try:
        yield
    finally:
        child.kill()
        child.wait()
