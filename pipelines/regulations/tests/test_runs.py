"""Runs from beginning to end: URLs are found, fetched and stored, within their caps."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from holdfast.errors import SwitchedOff, UnfitState, UserError
from holdfast.features.schedules.chores import DueSchedules
from holdfast.features.schedules.table import Schedules
from holdfast.kernel import Store
from holdfast.model import JobState, Lane, StreamState
from pipelines.regulations.tests.desk import Desk, hasty_sources, paths
from pipelines.regulations.tests.world import (
    GAZETTE,
    SOURCES,
    TAX,
    Issue,
    RegulatoryWorld,
    answered_twice,
    assert_never_asked,
    markup,
)
from tests.store.deletion_scenarios import delete_all
from tests.world import Answer, text_answer

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def test_run_stores_evidence_of_every_act_once(desk: Desk) -> None:
    job_id = await desk.run(mode="sitemap")
    job = await desk.store.reads.job(job_id)
    assert (job.state, job.lane, job.mode) == (JobState.DONE, Lane.BACKFILL, "sitemap")
    counters = await desk.counters(job_id)
    assert (counters.accepted, counters.done, counters.known) == (18, 18, 6)
    captures = await desk.captures()
    assert len(captures) == 18
    assert {(status, reason) for _, status, reason, _ in captures} <= {(200, "NEW"), (200, "COPY")}
    assert answered_twice(desk.world.visits) == []
    assert_never_asked(desk.world.visits_to(GAZETTE), lambda path: path.startswith("/oglasi"))


@on_sqlite
async def test_second_url_of_an_act_is_known_with_that_reason(desk: Desk) -> None:
    job_id = await desk.run()
    assert (await desk.counters(job_id)).known == 6
    counts = await desk.counts(job_id)
    assert counts["known.OTHER_URL_OF_ACT"] == 6
    assert counts["sitemaps_left_out.NOT_WANTED"] == 1


@on_sqlite
async def test_cut_page_counts_only_the_forms_it_took(desk: Desk) -> None:
    first, second = await desk.run(max_urls=1), await desk.run(max_urls=1, restart=True)
    assert (await desk.counters(first)).known == 0
    assert "known.OTHER_URL_OF_ACT" not in await desk.counts(first)
    assert (await desk.counters(second)).known == 2  # the first act, in both forms
    assert (await desk.counts(second))["known.OTHER_URL_OF_ACT"] == 1


@on_sqlite
async def test_item_shows_its_id_and_what_came(desk: Desk) -> None:
    job_id = await desk.run(max_urls=1)
    [row] = await desk.fetch("select result from outcomes where job_id = :job", job=job_id)
    result = json.loads(row[0])
    assert result["id"].startswith("backfill-gazette-") and len(result["id"]) == 17 + 32
    assert result["act"].startswith("/eli/sluzbeni/")
    assert (result["class"], result["evidence"], result["found_by"]) == ("HTML", "NEW", "BACKFILL")
    assert result["title"] and result["published"]


async def test_caps_are_exact_and_the_next_run_continues(desk: Desk) -> None:
    taken = []
    for _ in range(4):
        job_id = await desk.run(max_urls=5)
        taken.append((await desk.counters(job_id)).accepted)
    assert taken == [5, 5, 5, 3]
    assert len(await desk.captures()) == 18
    fetched = [path for path in answered_twice(desk.world.visits) if "/clanci/" in path]
    assert fetched == []


@on_sqlite
async def test_cap_of_a_source_leaves_room_for_the_others(desk: Desk) -> None:
    (job_id,) = await desk.order("tax,fina", mode="pagination", max_urls=12, max_urls_per_source=7)
    await desk.work()
    streams = await desk.store.streams.of_job(job_id)
    assert sorted(stream.items_count for stream in streams) == [5, 7]
    assert {stream.state for stream in streams} == {StreamState.CAPPED}
    assert (await desk.counters(job_id)).done == 12


@on_sqlite
async def test_cap_in_the_sources_file_holds(
    store: Store, world: RegulatoryWorld, tmp_path: Path
) -> None:
    text = hasty_sources().replace('slug = "tax"', 'slug = "tax"\ncaps = {max_urls = 4}')
    desk = Desk(store, world, tmp_path, sources=text)
    await desk.switch(True)
    assert (await desk.counters(await desk.run("tax"))).accepted == 4
    assert (await desk.counters(await desk.run("tax", max_urls_per_source=9))).accepted == 9


async def test_unchanged_sitemaps_are_not_read_again(desk: Desk) -> None:
    await desk.run()
    before = len(desk.world.visits)
    job_id = await desk.run()
    targets = [visit.request.target for visit in desk.world.visits[before:]]
    assert targets == ["/sitemap.xml"]  # robots.txt is shared between workers
    assert (await desk.counts(job_id))["sitemaps.unchanged"] == 6


@on_sqlite
async def test_sitemap_without_lastmod_is_asked_for_by_its_etag(desk: Desk) -> None:
    desk.world.lastmod = None
    await desk.run()
    before = len(desk.world.visits)
    await desk.run()
    statuses = [visit.answer.status for visit in desk.world.visits[before:] if visit.answer]  # type: ignore[union-attr]
    assert statuses == [200, *[304] * 6]


@on_sqlite
async def test_sitemap_that_a_cap_cut_is_read_again(desk: Desk) -> None:
    await desk.run(max_urls=2)
    job_id = await desk.run(restart=True)
    assert (await desk.counters(job_id)).accepted == 16


@on_sqlite
async def test_dates_leave_out_what_is_outside_or_undated(desk: Desk) -> None:
    issue = desk.world.issues[2]
    day = f"{issue.year}-01-01"
    job_id = await desk.run(date_from=day, date_to=f"{issue.year}-12-31")
    counters, counts = await desk.counters(job_id), await desk.counts(job_id)
    # The URLs name that year; the pages say that they were published in 2024.
    assert (counters.accepted, counters.skipped) == (3, 3)
    assert counts["sitemaps_left_out.OUT_OF_RANGE"] == 5
    # Nothing is marked as read: a run without dates wants everything.
    assert (await desk.counters(await desk.run())).done == 18


@on_sqlite
async def test_undated_urls_are_counted_and_excluded(desk: Desk) -> None:
    job_id = await desk.run("tax", date_from="2024-01-01")
    assert (await desk.counters(job_id)).accepted == 0
    assert (await desk.counts(job_id))["dates.UNDATED"] == 60


@on_sqlite
async def test_capital_parameter_and_redirects_home(desk: Desk) -> None:
    job_id = await desk.run("tax")
    counters = await desk.counters(job_id)
    assert (counters.accepted, counters.done, counters.error) == (60, 60, 0)
    assert desk.world.visits_to(TAX)


@on_sqlite
async def test_soft_404_and_redirect_home_are_not_evidence(desk: Desk) -> None:
    desk.world.replaced[desk.world.issues[0].legacy(2)] = text_answer(
        "<html><title>Stranica nije pronađena</title><body>Žao nam je.</body></html>",
        200,
        "text/html",
    )
    job_id = await desk.run()
    counters = await desk.counters(job_id)
    assert (counters.done, counters.error) == (17, 1)
    rows = await desk.fetch("select error_code from outcomes where status = 'ERROR'")
    assert rows == [("CONTENT_NOT_FOUND",)]
    assert len(await desk.captures()) == 17


async def test_failed_url_is_taken_again_by_the_next_run(desk: Desk) -> None:
    path = desk.world.issues[0].legacy(2)
    desk.world.replaced[path] = text_answer("gone", 404)
    job_id = await desk.run()
    assert (await desk.counters(job_id)).not_found == 1
    del desk.world.replaced[path]
    desk.world.lastmod = "2024-04-01"
    job_id = await desk.run()
    counters = await desk.counters(job_id)
    assert (counters.accepted, counters.done) == (1, 1)


async def test_url_that_failed_is_taken_again_though_its_sitemap_is_unchanged(desk: Desk) -> None:
    desk.pipeline.max_attempts = 1
    path = desk.world.issues[0].legacy(2)
    desk.world.replaced[path] = text_answer("", 500)
    job_id = await desk.run()
    assert (await desk.counters(job_id)).error == 1
    del desk.world.replaced[path]
    before = len(desk.world.visits)
    counters = await desk.counters(await desk.run())
    assert (counters.accepted, counters.done) == (1, 1)
    asked = [visit.request.path for visit in desk.world.visits[before:]]
    assert asked == ["/sitemap.xml", desk.world.issues[0].sitemap, path]


@on_sqlite
async def test_new_sitemaps_are_read_although_an_old_one_never_can_be(desk: Desk) -> None:
    world, new = desk.world, Issue(7)
    world.replaced[world.issues[0].sitemap] = text_answer("", 404)
    for daily in (False, True):
        request = {"lane": "SENTINEL"} if daily else {}
        job_id = await desk.run(**request)
        assert (await desk.store.reads.job(job_id)).state is JobState.FAILED
    listed = [f"http://{GAZETTE}{issue.sitemap}" for issue in (*world.issues, new)]
    world.replaced["/sitemap.xml"] = Answer(200, markup("sitemapindex", listed))
    urls = [f"http://{GAZETTE}{new.legacy(act)}" for act in (1, 2)]
    world.replaced[new.sitemap] = Answer(200, markup("urlset", urls))
    before = len(world.visits)
    job_id = await desk.run(lane="SENTINEL")
    assert (await desk.counters(job_id)).done == 2
    asked = {visit.request.path for visit in world.visits[before:]} - set(paths(urls))
    sitemaps = {"/sitemap.xml", new.sitemap, world.issues[0].sitemap}
    assert {path for path in asked if "sitemap" in path} == sitemaps, "others are unchanged"


@pytest.mark.parametrize("deleted", [False, True], ids=["cancelled", "deleted"])
@on_sqlite
async def test_urls_of_a_run_that_was_cancelled_are_taken_by_the_next(
    desk: Desk, deleted: bool
) -> None:
    """Its sitemaps were read whole and are unchanged, but nobody fetched what they list."""
    world, refusal = desk.world, text_answer("", 500)
    for issue in world.issues:
        paths = [issue.eli(1), *(issue.legacy(act) for act in (1, 2, 3))]
        world.replaced |= dict.fromkeys(paths, refusal)
    (job_id,) = await desk.order()
    worker = desk.worker()
    running = asyncio.create_task(worker.run())
    async with asyncio.timeout(20):
        while not await desk.fetch("select 1 from streams where state = 'COMPLETE'"):
            await asyncio.sleep(0.02)
    await desk.control.cancel(job_id)
    worker.stop()
    await running
    if deleted:
        await delete_all(desk.store, job_id)
    world.replaced.clear()
    counters = await desk.counters(await desk.run())
    assert (counters.accepted, counters.done) == (18, 18)


async def test_content_that_changes_and_returns_is_captured_each_time(desk: Desk) -> None:
    path = desk.world.issues[0].eli(1)  # which is listed before its other form
    await desk.run()
    for text in ("Drugi tekst. " * 40, None, None):
        if text is None:
            desk.world.versions.pop(path, None)
        else:
            desk.world.versions[path] = text
        await desk.age()
        await desk.run(mode="recheck", recheck_days=1)
    seen = await desk.captures(path)
    assert [(status, reason) for _, status, reason, _ in seen] == [
        (200, seen[0][2]), (200, "CHANGED"), (200, "RETURNED"), (304, "UNCHANGED"),
    ]  # fmt: skip
    hashes = [sha256 for *_, sha256 in seen]
    assert hashes[0] == hashes[2] == hashes[3] != hashes[1]
    rows = await desk.fetch(
        "select captures_count, versions_count from regulations_documents where key = "
        "(select key from regulations_captures where url = :url limit 1)", url=seen[0][0]
    )  # fmt: skip
    assert rows == [(4, 2)]


@on_sqlite
async def test_content_returns_in_both_sources_that_list_a_url(
    store: Store, world: RegulatoryWorld, tmp_path: Path
) -> None:
    table = SOURCES.split("[[source]]")[1]
    twice = [table, table.replace('"gazette"', '"copy"')]
    desk = Desk(store, world, tmp_path, sources=hasty_sources("[[source]]".join(["", *twice])))
    await desk.switch(True)
    path = world.issues[-1].eli(1)
    await desk.run("gazette,copy", max_urls_per_source=1)
    for text in ("Drugi tekst. " * 40, ""):
        world.versions = {path: text} if text else {}
        await desk.age()
        await desk.run("gazette,copy", mode="recheck", recheck_days=1)
    reasons = [reason for _, _, reason, _ in await desk.captures(path)]
    assert reasons[2:] == ["CHANGED"] * 2 + ["RETURNED"] * 2


@on_sqlite
async def test_daily_pass_reads_what_is_new_and_stops_at_what_is_known(desk: Desk) -> None:
    await desk.run("tax", mode="pagination")
    before = len(desk.world.visits)
    job_id = await desk.run("tax", lane="SENTINEL")
    job = await desk.store.reads.job(job_id)
    assert (job.lane, job.mode) == (Lane.SENTINEL, "sentinel")
    listed = [v.request.target for v in desk.world.visits[before:] if "vijesti" in v.request.path]
    assert len(listed) == 2  # of six pages
    assert (await desk.counters(job_id)).known == 20


@on_sqlite
async def test_daily_pass_runs_beside_a_backfill_of_the_same_source(desk: Desk) -> None:
    await desk.order("tax", mode="pagination")
    await desk.order("tax", lane="SENTINEL")
    await desk.work()
    assert len(await desk.captures()) == 60
    assert answered_twice([v for v in desk.world.visits if "vijest-" in v.request.path]) == []


@on_sqlite
async def test_source_that_is_being_read_is_not_read_twice(desk: Desk) -> None:
    await desk.order("tax")
    with pytest.raises(UnfitState, match="already being read by job 1"):
        await desk.order("tax")
    assert await desk.order("tax", lane="SENTINEL") == [2]
    assert await desk.order("tax", lane="SENTINEL") == []  # yesterday's continues


async def test_pipeline_is_off_until_switched_on_and_stops_when_switched_off(desk: Desk) -> None:
    await desk.switch(False)
    with pytest.raises(SwitchedOff, match="Backfill disabled"):
        await desk.order()
    await desk.switch(True)
    await desk.order()
    await desk.switch(False)
    worker = desk.worker()
    await desk.until_waiting(worker, "regulations_enabled is off")
    assert desk.world.visits == []


@on_sqlite
@pytest.mark.parametrize(
    ("request_", "message"),
    [
        ({"sources": "nobody"}, "no source 'nobody'"),
        ({"mode": "archive"}, "cannot be read by archive"),
        ({"mode": "guess"}, "no mode 'guess'"),
        ({"date_from": "1.1.2024"}, "not a day"),
        ({"date_from": "2024-02-01", "date_to": "2024-01-01"}, "ends"),
        ({"max_urls": 0}, "max_urls is 0"),
        ({"recheck_days": 3}, "mode recheck"),
    ],
)
async def test_wrong_runs_are_refused(
    desk: Desk, request_: dict[str, object], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        await desk.order(**request_)  # type: ignore[arg-type]


async def test_daily_schedule_is_set_once_when_the_pipeline_is_on(desk: Desk) -> None:
    await desk.switch(False)
    schedules = DueSchedules(desk.worker()._upkeep)
    await schedules.fire()
    assert await Schedules(desk.store.database).all() == []
    await desk.switch(True)
    await schedules.fire()
    [schedule] = await Schedules(desk.store.database).all()
    assert (schedule["name"], schedule["cron"]) == ("regulations-daily", "0 6 * * *")
    assert schedule["zone"] == "Europe/Zagreb"
    await Schedules(desk.store.database).remove_schedule("regulations-daily", "tester")
    await DueSchedules(desk.worker()._upkeep).fire()
    assert await Schedules(desk.store.database).all() == []  # a person removed it


@on_sqlite
async def test_schedule_starts_the_daily_pass(desk: Desk) -> None:
    due = desk.due_now("regulations-daily", {"lane": "SENTINEL", "sources": "tax"})
    await Schedules(desk.store.database).set_schedule(*due)
    await DueSchedules(desk.worker()._upkeep).fire()
    job = await desk.store.reads.job(1)
    assert (job.lane, job.mode) == (Lane.SENTINEL, "sentinel")
