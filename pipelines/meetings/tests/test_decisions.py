"""The decision table, row by row, with real jobs behind every state."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from datetime import UTC, date, datetime
from typing import Any

import pytest

from holdfast.kernel import Store
from holdfast_meetings.deciding import Action, decide
from holdfast_meetings.planning import local_day
from holdfast_meetings.walking import window_of
from pipelines.meetings.tests.front import Front, is_walk
from pipelines.meetings.tests.site import Row, Site, generated
from pipelines.meetings.tests.town import Town
from tests.store.checks import execute
from tests.world import Answer, Request, json_answer

BROKEN = json_answer({"ok": False, "error": "broken"}, 500)


def breaks_at(number: int, kind: Callable[[dict[str, str]], bool]) -> Any:
    """Answers 500 from the request of that number on, of those that `kind` picks."""
    seen = [0]

    def rule(request: Request, _: int) -> Answer | None:
        seen[0] += kind(request.query)
        return BROKEN if kind(request.query) and seen[0] >= number else None

    return rule


def is_recent(query: dict[str, str]) -> bool:
    return "date__gte" in query


async def order(town: Town, **request: Any) -> str:
    (decision,) = await town.order(types=["minutes"], **request)
    return str(decision["action"])


def repair(front: Front) -> None:
    front.rule("minutes", lambda request, number: None)


async def test_new_municipality_gets_a_full_pass(town: Town) -> None:
    assert await order(town) == "start full"


async def test_existing_municipality_gets_an_incremental_pass(town: Town, site: Site) -> None:
    site.add("minutes", generated(50))
    await town.backfill()
    assert await order(town) == "start incremental"
    await town.work()
    assert (await town.stream(mode="incremental"))["job_state"] == "DONE"


async def test_half_done_full_is_resumed_though_it_has_pages_already(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(900))
    front.rule("minutes", breaks_at(5, is_walk))
    await town.backfill(types=["minutes"])
    assert len(await town.pages()) == 400
    stream = await town.stream()
    assert (stream["job_state"], stream["full_completed_at"]) == ("FAILED", None)
    repair(front)
    front.asked.clear()
    assert await order(town) == "resume"
    await town.work()
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()
    resumed = await town.stream()
    assert resumed["generation"] == stream["generation"] == 1
    assert "" not in front.walked("minutes"), "it continues from its checkpoint"


async def test_failed_full_that_is_resumed_after_another_pass_takes_what_the_site_has_now(
    town: Town, site: Site, front: Front
) -> None:
    """A page that a later job wrote, and that changed or vanished since, is not newer."""
    rows = generated(250)
    site.add("minutes", rows)
    front.rule("minutes", breaks_at(2, is_walk))
    await town.backfill(types=["minutes"])
    repair(front)
    await town.backfill(types=["minutes"], mode="incremental")
    unwalked = sorted(rows, key=lambda row: row.upstream_id)[100:]
    recent = [row for row in unwalked if row.date > "2025"]
    site.replace("minutes", recent[0], text="scanned again after the incremental pass")
    site.remove("minutes", recent[1])
    assert await order(town) == "resume"
    await town.work()
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()


async def test_failed_incremental_is_resumed_in_its_own_mode_and_then_run_again(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(400))
    await town.backfill(types=["minutes"])
    front.rule("minutes", breaks_at(4, is_recent))
    await town.backfill(types=["minutes"])
    failed = await town.stream(mode="incremental")
    assert failed["job_state"] == "FAILED"
    repair(front)
    front.asked.clear()
    assert await order(town) == "resume"
    await town.work()
    assert not front.walked("minutes"), "no full walk"
    assert [name.split()[-1] for name, _ in await town.jobs()] == [
        "full", "incremental", "incremental",
    ]  # fmt: skip
    await town.assert_verified(mode="incremental")
    assert (await town.stream(mode="incremental"))["generation"] == 2
    assert not (await town.stream(mode="incremental"))["rerun"]


async def test_request_during_a_run_is_marked_and_fulfilled_after_it(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(400))
    late = Row("CityCouncil", datetime.now(UTC).date().isoformat(), 7777, "said in mid-run")
    asked: list[Any] = []

    async def in_mid_run(request: Request, number: int) -> None:
        if request.query.get("_col") == "id" and not asked:
            asked.append(await town.order(types=["minutes"]))
            site.add("minutes", [late])

    front.rule("minutes", in_mid_run)
    await town.backfill(types=["minutes"])
    assert asked[0][0]["action"] == "mark for a rerun"
    assert [name.split()[-1] for name, _ in await town.jobs()] == ["full", "incremental"]
    assert await town.pages() == site.rows("minutes")
    assert not (await town.stream())["rerun"]


async def test_crashed_run_continues_by_itself_and_a_request_finds_it_live(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(900))
    await order(town)
    reached = asyncio.Event()

    async def hang(request: Request, number: int) -> None:
        if number == 4:
            reached.set()
            await asyncio.sleep(3600)

    front.rule("minutes", hang)
    crashed = asyncio.create_task(town.worker().run())
    await asyncio.wait_for(reached.wait(), 30)
    crashed.cancel()  # its leases stay behind
    await asyncio.gather(crashed, return_exceptions=True)
    await execute(town.store, "update streams set worker = 'gone', token = 'gone'")
    repair(front)
    assert await order(town) == "mark for a rerun"
    await town.work()
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()
    assert (await town.stream())["generation"] == 1
    ended = await town.fetch("select ended from stream_slices where ended = 'lost'")
    assert len(ended) >= 1


async def test_forced_opens_a_new_generation_from_the_beginning(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(300))
    await town.backfill(types=["minutes"])
    front.asked.clear()
    assert await order(town, force=True) == "start full"
    await town.work()
    assert (await town.stream())["generation"] == 2
    assert "" in front.walked("minutes")
    assert await order(town) == "start incremental", "the force was used up"


async def test_forced_twice_while_it_waits_makes_one_new_generation(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(300))
    forced: list[Any] = []

    async def force_twice(request: Request, number: int) -> None:
        if number == 2 and not forced:
            forced.append(await order(town, force=True))
            forced.append(await order(town, force=True))

    front.rule("minutes", force_twice)
    await town.backfill(types=["minutes"])
    assert forced == ["mark for a new full"] * 2
    stream = await town.stream()
    assert (stream["generation"], stream["job_state"]) == (2, "DONE")
    assert not stream["force_full"]
    assert [name.split()[-1] for name, _ in await town.jobs()] == ["full", "full"]


async def test_forced_after_a_failure_does_not_resume(town: Town, site: Site, front: Front) -> None:
    site.add("minutes", generated(300))
    front.rule("minutes", breaks_at(2, is_walk))
    await town.backfill(types=["minutes"])
    repair(front)
    assert await order(town, force=True) == "start full"
    await town.work()
    await town.assert_verified()
    assert (await town.stream())["generation"] == 2


async def test_cancelled_full_starts_again(town: Town, site: Site) -> None:
    site.add("minutes", generated(100))
    await order(town)
    await town.control.cancel((await town.stream())["job_id"])
    assert await order(town) == "start full"
    await town.work()
    assert await town.pages() == site.rows("minutes")


async def test_dry_run_only_shows_what_it_would_do(town: Town) -> None:
    assert await order(town, dry_run=True) == "start full"
    assert await town.jobs() == []


async def test_schedule_plans_every_municipality(store: Store, town: Town, site: Site) -> None:
    site.add("minutes", generated(30))
    other = Town(store, town.url, "berkeley.ca")
    await other.add()
    await town.backfill()
    decided = await town.ask({})
    found = {(one["subdomain"], one["document_type"]): one["action"] for one in decided}
    assert found == {
        ("alameda.ca", "agenda"): "start incremental",
        ("alameda.ca", "minutes"): "start incremental",
        ("berkeley.ca", "agenda"): "start full",
        ("berkeley.ca", "minutes"): "start full",
    }
    again = await town.ask({})
    assert {one["action"] for one in again} == {"mark for a rerun"}


async def test_job_that_was_walked_by_another_program_is_left_to_a_worker_with_the_pipeline(
    town: Town, site: Site
) -> None:
    """A sweeper without the pipeline must not end a job that its pipeline has to conclude."""
    site.add("minutes", generated(20))
    await order(town)
    job_id = (await town.stream())["job_id"]
    await execute(town.store, "update streams set state = 'COMPLETE'")
    assert await town.store.outcomes.complete(job_id) is None
    assert await town.jobs() == [("alameda.ca minutes full", "RUNNING")]


def test_nothing_known_is_a_full_pass() -> None:
    assert decide([], None, False).action is Action.START_FULL


@pytest.mark.parametrize(
    ("today", "first", "last"),
    [
        (date(2026, 11, 15), "2026-05-14", "2027-05-16"),
        (date(2026, 8, 31), "2026-02-27", "2027-03-01"),
        (date(2024, 2, 29), "2023-08-28", "2024-08-30"),
        (date(2026, 6, 30), "2025-12-29", "2026-12-31"),
    ],
)
def test_window_is_calendar_months_and_a_day_on_each_side(
    today: date, first: str, last: str
) -> None:
    assert window_of(today, 6) == (first, last)


def test_today_is_the_municipality_s_own() -> None:
    now = datetime(2026, 6, 30, 11, 30, tzinfo=UTC)
    assert local_day(now, "Pacific/Apia") == date(2026, 7, 1)
    assert local_day(now, "America/Los_Angeles") == date(2026, 6, 30)
