"""A full backfill gives exactly the site's set of pages, and a second one changes nothing."""

from __future__ import annotations

from typing import Any

from holdfast.kernel import Store
from holdfast.model import ItemStatus
from holdfast.pipeline import Settled
from holdfast_meetings.documents import KnownDocuments
from holdfast_meetings.rows import draft_of
from holdfast_meetings.saving import save
from pipelines.meetings.tests.front import Front
from pipelines.meetings.tests.site import Row, Site, each_generation, generated
from pipelines.meetings.tests.town import Town
from tests.store.checks import execute


async def snapshot(town: Town) -> list[tuple[Any, ...]]:
    """Everything of every page, when it was written included."""
    return await town.fetch(
        "select id, upstream_id, text, created_at, updated_at, vanished_at, job_id"
        " from meetings_pages order by id"
    )


@each_generation
async def test_full_walk_gives_exactly_the_upstream_set(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(1234))
    site.add("agendas", generated(321, seed=2))
    decisions = await town.backfill()
    assert [one["action"] for one in decisions] == ["start full", "start full"]
    for table in ("minutes", "agendas"):
        assert await town.pages(table) == site.rows(table)
        await town.assert_verified(table)
    assert max(front.walked("minutes").values()) == 1
    assert (await town.counts((await town.stream())["job_id"]))["created"] == 1234


async def test_second_full_walk_changes_nothing(town: Town, site: Site) -> None:
    rows = generated(300)
    duplicate = Row(rows[0].meeting, rows[0].date, rows[0].page, "the same page, once more")
    site.add("minutes", [*rows, duplicate])
    await town.backfill()
    before = await snapshot(town)
    await town.backfill(mode="full")
    assert await snapshot(town) == before
    stream = await town.stream()
    assert stream["generation"] == 2
    counts = await town.counts(stream["job_id"])
    assert (counts["created"], counts["updated"], counts["documents_created"]) == (0, 0, 0)
    assert counts["unchanged"] > 300
    documents = len({(row.meeting, row.date) for row in rows})
    assert (counts["documents_updated"], counts["documents_unchanged"]) == (0, documents)
    await town.assert_verified()


@each_generation
async def test_page_that_was_scanned_again_is_updated_in_place_with_its_history(
    town: Town, site: Site
) -> None:
    rows = generated(150)
    site.add("minutes", rows)
    await town.backfill()
    (before,) = await town.fetch(
        "select id from meetings_pages where upstream_id = :id", id=rows[0].upstream_id
    )
    changed = site.replace("minutes", rows[0], text="scanned again")
    await town.backfill(mode="full")
    assert await town.pages() == site.rows("minutes")
    assert await town.fetch(
        "select id, text from meetings_pages where upstream_id = :id", id=changed.upstream_id
    ) == [(before[0], "scanned again")]
    history = await town.fetch(
        "select upstream_id, text, page_id, state from meetings_page_history"
    )
    assert history == [(rows[0].upstream_id, rows[0].text, before[0], "SUPERSEDED")]
    counts = await town.counts((await town.stream())["job_id"])
    documents = len({(row.meeting, row.date) for row in rows})
    assert (counts["documents_updated"], counts["documents_unchanged"]) == (1, documents - 1)
    site.replace("minutes", changed, text=rows[0].text)
    await town.backfill(mode="full")
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()


async def test_same_upstream_id_in_two_towns_stays_two_pages(
    store: Store, town: Town, site: Site
) -> None:
    site.add("minutes", generated(120))
    other = Town(store, town.url, "berkeley.ca")
    await other.add()
    await other.order()
    await town.backfill()
    assert await town.pages() == await other.pages() == site.rows("minutes")
    (count,) = await town.fetch("select count(*), count(distinct upstream_id) from meetings_pages")
    assert count == (240, 120)


async def test_two_rows_for_one_page_are_one_page_and_a_duplicate(town: Town, site: Site) -> None:
    one = Row("CityCouncil", "2020-01-01", 1, "first text")
    other = Row("CityCouncil", "2020-01-01", 1, "second text")
    site.add("minutes", [one, other, *generated(150)])
    await town.backfill()
    await town.assert_verified()
    shown, hidden = sorted([one, other], key=lambda row: row.upstream_id, reverse=True)
    pages = {page[4]: page for page in await town.pages()}
    assert pages[shown.upstream_id][3] == shown.text and hidden.upstream_id not in pages
    assert await town.fetch("select upstream_id, text, state from meetings_page_history") == [
        (hidden.upstream_id, hidden.text, "DUPLICATE")
    ]
    site.remove("minutes", shown)
    await town.backfill(mode="full")
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()


async def test_page_that_vanished_gets_a_tombstone_and_comes_back(town: Town, site: Site) -> None:
    rows = generated(200)
    site.add("minutes", rows)
    await town.backfill()
    site.remove("minutes", *rows[:3])
    await town.backfill(mode="full")
    assert await town.pages() == site.rows("minutes")
    assert {page[4] for page in await town.pages(vanished=True)} == {
        row.upstream_id for row in rows[:3]
    }
    site.add("minutes", rows[:3])
    await town.backfill(mode="full")
    assert await town.pages() == site.rows("minutes")
    assert not await town.pages(vanished=True)
    await town.assert_verified()


async def test_collection_without_rows_is_complete_after_a_second_look(
    town: Town, site: Site
) -> None:
    site.add("minutes", generated(10))
    await town.backfill()
    await town.assert_verified("agendas")
    assert (await town.stream("agendas"))["actual"] == 0


async def test_slices_end_after_so_many_api_pages_and_leave_their_history(
    store: Store, town: Town, site: Site
) -> None:
    site.add("minutes", generated(950))
    small = Town(store, town.url, town.subdomain, batch_pages=3)
    await small.backfill(types=["minutes"])
    slices = await small.fetch(
        "select l.pages_count, l.ended from stream_slices l join streams s on s.id = l.stream_id"
        " where s.source = 'alameda.ca:minutes' order by l.id"
    )
    assert max(pages for pages, _ in slices) == 3
    assert sum(pages for pages, _ in slices) == (await small.stream())["pages_count"]
    assert slices[-1][1] == "complete" and slices[0] == (3, "released")
    assert await small.pages() == site.rows("minutes")


@each_generation
async def test_incremental_reads_the_months_around_today_alone(
    town: Town, site: Site, front: Front
) -> None:
    rows = generated(400)
    site.add("minutes", rows)
    await town.backfill()
    new = [Row("CityCouncil", rows[0].date, 9000 + number, "new") for number in range(5)]
    site.add("minutes", new)
    changed = site.replace("minutes", rows[0], text="scanned again")
    front.asked.clear()
    decisions = await town.backfill()
    assert [one["action"] for one in decisions] == ["start incremental"] * 2
    assert await town.pages() == site.rows("minutes")
    assert changed.upstream_id in {page[4] for page in await town.pages()}
    assert not front.walked("minutes")
    months = {query["date__gte"] for query in front.requests("minutes") if "date__gte" in query}
    assert len(months) in (13, 14)
    stream = await town.stream(mode="incremental")
    assert (stream["job_state"], stream["expected"]) == ("DONE", stream["actual"])
    assert stream["verified_at"] is None, "it took no inventory"


async def test_incremental_whose_count_differs_takes_an_inventory(town: Town, site: Site) -> None:
    rows = generated(300)
    site.add("minutes", rows)
    await town.backfill()
    late = [Row("CityCouncil", "2003-05-06", number, "posted late") for number in range(3)]
    site.add("minutes", late)
    site.remove("minutes", rows[1])
    await town.backfill()
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified(mode="incremental")


async def test_old_page_scanned_again_leaves_the_count_and_is_found_when_the_site_says_it_changed(
    town: Town, site: Site
) -> None:
    rows = generated(150)
    site.add("minutes", rows)
    await town.backfill(types=["minutes"])
    old = next(row for row in rows if row.date < "2005")
    site.replace("minutes", old, text="scanned again")
    await town.webhook(last_updated="2026-11-01")
    await town.work()
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified(mode="incremental")


async def test_inventory_is_taken_when_the_last_is_long_ago(town: Town, site: Site) -> None:
    rows = generated(150)
    site.add("minutes", rows)
    await town.backfill(types=["minutes"])
    old = next(row for row in rows if row.date < "2005")
    site.replace("minutes", old, text="scanned again")
    await town.backfill(types=["minutes"])
    assert (await town.stream(mode="incremental"))["verified_at"] is None, "equal counts"
    await execute(town.store, "update streams set verified_at = '2020-01-01T00:00:00.000Z'")
    await town.backfill(types=["minutes"])
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified(mode="incremental")


async def test_site_that_keeps_an_id_when_its_row_changes_is_followed_too(
    town: Town, site: Site
) -> None:
    rows = [
        Row(row.meeting, row.date, row.page, row.text, id=f"id-{number:04}")
        for number, row in enumerate(generated(150))
    ]
    site.add("minutes", rows)
    await town.backfill(types=["minutes"])
    site.execute("update minutes set text = 'changed' where id = 'id-0003'")
    site.execute("update minutes set date = '1999-01-01' where id = 'id-0004'")
    await town.backfill(types=["minutes"], mode="full")
    assert await town.pages() == site.rows("minutes")
    assert len(await town.pages(vanished=True)) == 1
    await town.assert_verified()


async def test_row_that_comes_twice_in_one_settlement_is_kept_as_it_came_last(
    town: Town, site: Site, front: Front
) -> None:
    """Its id is a hash of the text alone: what else the site adds to the row leaves it."""
    await town.backfill(types=["minutes"])
    job = await town.store.reads.job((await town.stream())["job_id"])
    row = {"id": "a", "meeting": "Parks", "date": "2026-01-01", "page": 1, "text": "text"}
    later = {**row, "page_image": "/a.png", "votes_json": "{}"}
    settled = [
        Settled(seq, ItemStatus.DONE, version, None, job, effects=draft_of(version))
        for seq, version in ((2, later), (1, row))
    ]
    await town.store.database.write("test", lambda tx: save(tx, settled, KnownDocuments()))
    stored = await town.fetch("select text, page_image, extra is not null from meetings_pages")
    assert [tuple(map(bool, one)) for one in stored] == [(True, True, True)]
