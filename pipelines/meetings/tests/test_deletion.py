"""Deleted jobs take what is theirs alone; earlier passes lose their items, and nothing else."""

from __future__ import annotations

from holdfast.configuration import load_settings
from holdfast.features.deletion.compose import retention_of
from pipelines.meetings.tests.site import Site, generated
from pipelines.meetings.tests.town import Town
from tests.store.deletion_scenarios import delete_all, traces_of


async def test_job_is_deleted_and_the_pages_of_the_town_stay(town: Town, site: Site) -> None:
    site.add("minutes", generated(120))
    await town.backfill()
    job_id = (await town.stream())["job_id"]
    before = await town.pages()
    await delete_all(town.store, job_id)
    assert await traces_of(town.store, job_id) == {}
    for table in ("meetings_counts", "meetings_differences", "meetings_rejects"):
        assert await town.fetch(f"select 1 from {table} where job_id = :j", j=job_id) == []
    assert await town.pages() == before
    await town.backfill()  # its position is gone: a full pass again, which changes nothing
    assert await town.pages() == before
    await town.assert_verified()


async def test_items_of_a_pass_go_when_a_later_one_is_verified(town: Town, site: Site) -> None:
    site.add("minutes", generated(120))
    await town.backfill()
    first = (await town.stream())["job_id"]
    retention = retention_of(load_settings({}), town.store, town.log)
    await retention.apply()
    assert (await traces_of(town.store, first))["items"] >= 120
    await town.backfill(mode="full")
    await town.assert_verified()
    await retention.apply()
    assert "items" not in await traces_of(town.store, first)
    assert (await town.store.reads.counters(first)).done >= 120
    assert (await town.store.reads.verify(first)).problems == []
    second = (await town.stream())["job_id"]
    assert (await traces_of(town.store, second))["items"] >= 120
    assert await town.pages() == site.rows("minutes")
