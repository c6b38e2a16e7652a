"""Policies: what is older goes, what is younger stays, and nothing goes that nobody asked for."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import pytest
import structlog

from holdfast.features.console import open_console
from holdfast.features.deletion.deleter import Deleter
from holdfast.features.deletion.retention import Retention
from holdfast.features.deletion.retention_rows import Policies
from holdfast.features.exports.exports import NewExport
from holdfast.kernel import Store, open_store
from holdfast.model import ItemStatus
from tests.store.checks import assert_all_sound, execute, fetch, finished_job, make_job
from tests.store.deletion_scenarios import (
    age,
    aged_standing_job,
    rich_job,
    stored_file,
    superseded_pass,
    traces_of,
)


@pytest.fixture
async def store(database_url: str) -> AsyncIterator[Store]:
    opened = await open_store(database_url)
    yield opened
    await opened.close()


class Keeper:
    """Applies policies, and remembers which bytes it removed."""

    def __init__(self, store: Store, **policies: Any) -> None:
        self.removed: list[str] = []
        log = structlog.get_logger()
        deleter = Deleter(store, self._remove, log)
        self._retention = Retention(store, deleter, Policies(**policies), log)

    async def _remove(self, key: str) -> None:
        self.removed.append(key)

    async def preview(self) -> dict[str, int | None]:
        kept = await self._retention.preview()
        return {each.what: each.removes for each in kept if each.removes}

    async def apply(self) -> None:
        await self._retention.apply()


async def jobs(store: Store) -> list[int]:
    return [row[0] for row in await fetch(store, "select id from jobs order by id")]


async def test_nothing_goes_without_a_policy(store: Store) -> None:
    job_id = await rich_job(store)
    await store.jobs.cancel(job_id, "tester")
    await age(store, "jobs", "finished_at", "id = :j", j=job_id)
    keeper, before = Keeper(store), await traces_of(store, job_id)
    assert await keeper.preview() == {}
    await keeper.apply()
    assert await traces_of(store, job_id) == before


async def test_old_jobs_go_and_the_last_one_on_each_source_stays(store: Store) -> None:
    old, young = [await finished_job(store, ItemStatus.DONE) for _ in range(2)]
    uploads = "update jobs set reference = 'a.csv' where id in (:a, :b)"
    await execute(store, uploads, a=old, b=young)
    walked = await finished_job(store, ItemStatus.DONE)  # holds the position of its source
    await age(store, "jobs", "finished_at", "id in (:a, :b)", a=old, b=walked)
    keeper = Keeper(store, jobs_days=5)
    assert await keeper.preview() == {"jobs": 1}
    await keeper.apply()
    assert await jobs(store) == [young, walked]
    acts = await fetch(store, "select actor from audit where action = 'delete'")
    assert [act[0] for act in acts] == ["retention"]
    await assert_all_sound(store)


async def test_rows_of_many_kinds_go_by_age(store: Store) -> None:
    job_id = await rich_job(store)
    await store.jobs.cancel(job_id, "tester")
    for table, column, where in (
        ("jobs", "finished_at", "true"), ("decisions", "at", "true"),
        ("exports", "finished_at", "true"),
    ):  # fmt: skip
        await age(store, table, column, where)
    old, used = await stored_file(store), await stored_file(store)
    await age(store, "files", "created_at", "true")
    use = "update jobs set file_id = :f"
    await execute(store, use, f=used.id)
    keeper = Keeper(store, decisions_days=5, exports_days=5, files_days=5)
    preview = await keeper.preview()
    assert preview == {"decisions": 1, "files": 1, "exports": 1}
    await keeper.apply()
    assert not {"decisions", "exports"} & set(await traces_of(store, job_id))
    assert await fetch(store, "select id from files") == [(used.id,)]
    assert keeper.removed == [old.key]
    assert await keeper.preview() == {}


async def test_audit_goes_once_a_day_and_says_so(store: Store) -> None:
    add = (
        "insert into audit (actor, action, subject, detail, at)"
        " values ('ada', 'something', '', '{}', @after(:age))"
    )
    await execute(store, add, age=-5.5 * 86400)
    await execute(store, add, age=-4.5 * 86400)
    keeper = Keeper(store, audit_days=5)
    await keeper.apply()
    assert len(await fetch(store, "select 1 from audit")) == 2  # not for half a day's worth
    await execute(store, add, age=-7.0 * 86400)
    assert await keeper.preview() == {"audit": 2}
    await keeper.apply()
    acts = await fetch(store, "select actor, action from audit order by id")
    assert acts == [("ada", "something"), ("retention", "audit.pruned")]


async def test_items_of_a_pass_go_when_a_later_one_is_verified(store: Store) -> None:
    earlier = await superseded_pass(store, "town")
    later = (await jobs(store))[-1]
    unverified = await superseded_pass(store, "village")
    undo = "update streams set verified_at = null where source = 'village'"
    await execute(store, undo)
    keeper = Keeper(store)
    assert await keeper.preview() == {"items of earlier passes": 1}
    await keeper.apply()
    assert "items" not in await traces_of(store, earlier)
    assert (await store.reads.job(earlier)).pruned_at is not None
    assert (await store.reads.verify(earlier)).problems == []
    for kept in (later, unverified):
        assert (await traces_of(store, kept))["items"] == 3
    await keeper.apply()
    acts = await fetch(store, "select 1 from audit where action = 'job.pruned'")
    assert len(acts) == 1


async def test_export_is_kept_until_it_is_old(store: Store) -> None:
    job_id = await make_job(store)
    await open_console(store).exports.add_export(NewExport("ada", job_id, "csv", (), False))
    keeper = Keeper(store, exports_days=5)
    await keeper.apply()
    assert keeper.removed == []


async def test_old_items_of_standing_jobs_go(store: Store) -> None:
    standing = [await aged_standing_job(store) for _ in range(2)]
    ended = await finished_job(store, ItemStatus.DONE)
    await age(store, "outcomes", "updated_at", "job_id = :j", j=ended)
    for keeper in (Keeper(store), Keeper(store, items_days=30)):
        assert await keeper.preview() == {}
        await keeper.apply()
    keeper = Keeper(store, items_days=5)
    assert await keeper.preview() == {"items of standing jobs": 8}
    await keeper.apply()
    assert await keeper.preview() == {}
    for job_id in standing:
        assert (await traces_of(store, job_id))["items"] == 2  # with a decision, and open
        assert (await store.reads.job(job_id)).removed_items == 4
    assert (await traces_of(store, ended))["items"] == 1
    await assert_all_sound(store)
