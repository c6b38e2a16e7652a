"""A full backfill gives exactly the site's set of pages, and a second one changes nothing."""

from __future__ import annotations

from tests.pipelines.meetings.front import Front
from tests.pipelines.meetings.site import Site, generated
from tests.pipelines.meetings.town import Town


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
