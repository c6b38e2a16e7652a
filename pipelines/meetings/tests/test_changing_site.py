"""A site that changes while it is read: the pass ends with what the site has then."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pipelines.meetings.tests.front import Front, is_walk
from pipelines.meetings.tests.site import Row, Site, each_generation, generated
from pipelines.meetings.tests.town import Town
from tests.world import Request


def at_walk_page(number: int, act: Callable[[], None]) -> Callable[[Request, int], None]:
    """Does something to the site just before the walk's page of that number is read."""
    seen = [0]

    def rule(request: Request, _: int) -> None:
        if is_walk(request.query):
            seen[0] += 1
            if seen[0] == number:
                act()

    return rule


@each_generation
async def test_rows_added_changed_deleted_and_back_dated_in_mid_walk_end_up_right(
    town: Town, site: Site, front: Front
) -> None:
    rows = sorted(generated(800), key=lambda row: row.upstream_id)
    site.add("minutes", rows)

    def change() -> None:
        recent = next(row for row in rows if row.date > "2025")
        old = next(row for row in rows if row.date < "2025")
        site.add("minutes", [Row("Parks", "2002-02-02", number, "added") for number in range(40)])
        site.replace("minutes", recent, text="changed, recent")
        site.replace("minutes", old, text="changed, old")
        site.remove("minutes", rows[5], rows[700])
        site.replace("minutes", rows[10], date="1999-09-09")
        site.replace("minutes", rows[650], date="1999-09-10")

    front.rule("minutes", at_walk_page(5, change))
    await town.backfill(types=["minutes"])
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()


async def test_more_added_behind_the_walk_than_can_be_asked_for_by_id(
    town: Town, site: Site, front: Front
) -> None:
    rows = generated(600)
    site.add("minutes", rows)
    added = [Row("Parks", "2002-02-02", number, f"added {number}") for number in range(4500)]
    front.rule("minutes", at_walk_page(4, lambda: site.add("minutes", added)))
    await town.backfill(types=["minutes"])
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()


async def test_site_that_is_rebuilt_in_mid_walk_is_waited_for(
    town: Town, site: Site, front: Front
) -> None:
    rows = generated(700)
    site.add("minutes", rows)
    rebuilt = [*rows[20:], Row("CityCouncil", "2010-10-10", 1, "new in the rebuilt site")]
    walked = [0]

    def rebuild(request: Request, _: int) -> None:
        """The table is gone, then empty, then half there, then whole."""
        if not is_walk(request.query):
            return
        walked[0] += 1
        if walked[0] == 3:
            site.drop("minutes")
        elif walked[0] == 5:
            site.create("minutes")
        elif walked[0] == 7:
            site.add("minutes", rebuilt)

    front.rule("minutes", rebuild)
    await town.backfill(types=["minutes"])
    assert walked[0] > 7
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()


@pytest.mark.parametrize("pages", [400, 12])
async def test_much_that_vanished_for_a_moment_keeps_its_pages(
    town: Town, site: Site, front: Front, pages: int
) -> None:
    rows = generated(pages)
    site.add("minutes", rows)
    await town.backfill(types=["minutes"])
    lost = rows[: pages // 2]
    inventories = [0]

    def short(request: Request, _: int) -> None:
        if request.query.get("_col") == "id" and "_next" not in request.query:
            if request.query.get("_sort") != "id":
                return
            inventories[0] += 1
            if inventories[0] == 1:
                site.remove("minutes", *lost)
            elif inventories[0] == 2:
                site.add("minutes", lost)

    front.rule("minutes", short)
    await town.backfill(types=["minutes"], mode="full")
    assert inventories[0] >= 2
    assert await town.pages() == site.rows("minutes")
    assert not await town.pages(vanished=True)
    await town.assert_verified()


async def test_table_that_is_empty_of_a_sudden_is_not_believed(town: Town, site: Site) -> None:
    rows = generated(150)
    site.add("minutes", rows)
    await town.backfill(types=["minutes"])
    before = await town.pages()
    site.remove("minutes", *rows)
    await town.backfill(types=["minutes"], mode="full")
    stream = await town.stream()
    assert stream["job_state"] == "FAILED" and "empty table" in stream["error"]
    assert await town.pages() == before
    site.add("minutes", rows)
    decisions = await town.backfill(types=["minutes"])
    assert [one["action"] for one in decisions] == ["resume"]
    await town.assert_verified()
    assert await town.pages() == before


async def test_site_that_never_stops_changing_fails_and_says_so(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(150))
    number = [0]

    def grow(request: Request, _: int) -> None:
        if request.query.get("_col") == "id" and request.query.get("_sort") == "id":
            number[0] += 1
            site.add("minutes", [Row("Parks", "2002-02-02", number[0], "one more")])

    front.rule("minutes", grow)
    await town.backfill(types=["minutes"])
    stream = await town.stream()
    assert stream["job_state"] == "FAILED" and "changes as fast" in stream["error"]
    assert stream["full_completed_at"] is None
