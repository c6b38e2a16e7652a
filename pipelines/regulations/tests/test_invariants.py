"""What docs/invariants.md asks for beyond a run that works: INV-1 to 8, OPS-1 to 3."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest
import structlog

import holdfast_regulations as regulations
from holdfast.errors import SwitchedOff
from holdfast.kernel.worker.dry_discovery import DryDiscovery, DryLimits, DrySource
from holdfast.model import Job, JobState, Lane
from holdfast.reading import Reading
from holdfast_regulations.options import RegulationsOptions
from holdfast_regulations.pipeline import Regulations
from holdfast_regulations.planning import starts_of
from holdfast_regulations.runs import gates_of, run_of
from holdfast_regulations.sources_file import shipped_sources
from pipelines.regulations.tests.desk import Desk
from pipelines.regulations.tests.world import TAX
from tests.world import text_answer

on_sqlite = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)


async def dry_run(desk: Desk, **request: object) -> list[DrySource]:
    """As the command does it: one job after the other, none of which has a number."""
    run = run_of(request, desk.pipeline.known_sources, desk.pipeline.settings)
    walked: list[DrySource] = []
    for start in starts_of(run, await desk.store.plans.streams("regulations")):
        job = Job(0, "regulations", start.name, JobState.RUNNING, "tester", start.mode,
                  options=start.options, reading=Reading(plan=start.plan),
                  lane=start.lane or Lane.BACKFILL)  # fmt: skip
        limits = DryLimits(start.max_items, start.cap_of)
        dry = DryDiscovery(desk.store, desk.pipeline, job, limits)
        walked += await dry.run(desk.worker(dry=True), start)
    return walked


def test_gates_have_the_delays_of_the_source() -> None:
    """INV-3: minimum plus a random part up to the maximum, one at once."""
    gates = {gate.name: gate for gate in gates_of(shipped_sources().values())}
    gazette = gates["narodne-novine.nn.hr"]
    assert (gazette.spacing, gazette.jitter, gazette.concurrency) == (5, 5, 1)
    tax = gates["porezna-uprava.gov.hr"]
    assert (tax.spacing, tax.jitter, tax.concurrency) == (8, 7, 1)


def test_delay_of_a_run_only_makes_it_slower() -> None:
    [slower] = gates_of([shipped_sources()["narodne-novine"]], delay_ms=7000)
    assert (slower.spacing, slower.jitter) == (7, 3)
    [not_faster] = gates_of([shipped_sources()["narodne-novine"]], delay_ms=100)
    assert (not_faster.spacing, not_faster.jitter) == (5, 5)


@on_sqlite
async def test_delay_of_a_run_is_that_of_its_gate(desk: Desk) -> None:
    await desk.order("tax", delay_ms=1500)
    gates = {gate["name"]: gate for gate in await desk.store.gates.all()}
    assert gates[TAX]["spacing"] == 1.5


def test_caps_and_concurrency_are_small_by_default() -> None:
    """INV-5."""
    sources = shipped_sources()
    run = run_of({}, sources, RegulationsOptions())
    assert (run.max_urls, run.concurrency) == (1000, 2)
    assert {run.cap_of(source) for source in sources.values()} == {500}


def test_three_attempts_are_made_from_30_seconds_on() -> None:
    """ARC-3."""
    assert (Regulations.max_attempts, Regulations.backoff.base) == (3, 30.0)


def test_page_of_invariants_names_tests_that_exist() -> None:
    folder = Path(__file__).parents[3]
    page = (Path(regulations.__file__).parent / "docs" / "invariants.md").read_text()
    tests = "".join(path.read_text() for path in Path(__file__).parent.glob("test_*.py"))
    names = set(re.findall(r"`(test_\w+)`", page))
    assert len(names) > 25
    assert {name for name in names if f"def {name}(" not in tests} == set()
    assert all((folder / path).is_file() for path in re.findall(r"`(tests/\S+\.py)`", page))


@on_sqlite
async def test_run_reads_so_many_sources_at_once_as_it_says(desk: Desk) -> None:
    await desk.order("tax,fina", mode="pagination", concurrency=1)
    await desk.work()
    hosts = [
        visit.request.headers["host"]
        for visit in desk.world.visits
        if visit.request.path in ("/hr/vijesti/8", "/novosti")
    ]
    assert len(set(hosts)) == 2 and hosts == sorted(hosts, key=hosts.index)


async def test_run_is_tracked_with_everything_it_was_asked(desk: Desk) -> None:
    """INV-8."""
    job_id = await desk.run(max_urls=3, run_by="ana", date_to="2030-01-01", delay_ms=10)
    job = await desk.store.reads.job(job_id)
    options = job.options
    assert (options["sources"], options["run_by"], options["date_to"]) == (
        "gazette", "ana", "2030-01-01",
    )  # fmt: skip
    assert (options["concurrency"], options["delay_ms"], options["dry_run"]) == (2, 10, False)
    assert job.created_at and job.started_at and job.finished_at and job.updated_at
    rows = await desk.fetch("select action from audit where job_id = :job", job=job_id)
    assert {"start", "finish"} <= {action for (action,) in rows}


async def test_dry_run_counts_and_writes_only_its_audit_row(desk: Desk) -> None:
    """OPS-1."""
    tables = ("jobs", "items", "keys", "streams", "cache", "regulations_documents",
              "regulations_captures", "regulations_forms", "regulations_sitemaps",
              "regulations_indexes", "regulations_run_counts")  # fmt: skip
    assert (await dry_run(desk, sources="gazette"))[0].new == 18
    assert [await desk.fetch(f"select count(*) from {table}") for table in tables] == [[(0,)]] * 11
    await desk.run(max_urls=5)
    before = [await desk.fetch(f"select count(*) from {table}") for table in tables]
    audited = await desk.fetch("select count(*) from audit")
    [walked] = await dry_run(desk, sources="gazette", restart=True)
    # One of the six sitemaps was taken whole and did not change: it is not read again.
    assert (walked.discovered, walked.new, walked.known) == (20, 13, 7)
    assert [await desk.fetch(f"select count(*) from {table}") for table in tables] == before
    assert (await desk.fetch("select count(*) from audit"))[0][0] == audited[0][0] + 1
    gates = [(gate["name"], gate["spacing"]) for gate in await desk.store.gates.all()]
    [capped] = await dry_run(desk, sources="gazette", restart=True, max_urls=4, delay_ms=60_000)
    assert (capped.new, capped.capped) == (4, True)
    assert [(gate["name"], gate["spacing"]) for gate in await desk.store.gates.all()] == gates


@on_sqlite
async def test_dry_run_is_allowed_while_off_and_stopped_by_a_kill_switch(desk: Desk) -> None:
    await desk.switch(False)
    desk.pipeline.enabled_by = None  # as the command does it
    walked = await dry_run(desk, sources="gazette,tax")  # sources of two modes
    assert [(source.source, source.new) for source in walked] == [("gazette", 18), ("tax", 60)]
    await desk.control.switch("pipeline:regulations", True, "costs")
    with pytest.raises(SwitchedOff, match="costs"):
        await dry_run(desk, sources="tax")


@on_sqlite
async def test_progress_is_logged_where_a_count_crosses_an_interval(desk: Desk) -> None:
    """OPS-3: also where counters jump."""
    desk.pipeline = replace_interval(desk, 10)
    with structlog.testing.capture_logs() as logs:
        await desk.run("tax")
    progress = [entry for entry in logs if entry["event"] == "regulations.progress"]
    assert [entry["queued"] for entry in progress] == sorted(e["queued"] for e in progress)
    names = ("job_id", "discovered", "max_urls", "queued", "skipped", "errors")
    assert [progress[-1][name] for name in names] == [1, 60, 1000, 60, 0, 0]
    assert len(progress) >= 5


def replace_interval(desk: Desk, interval: int) -> Regulations:
    made = Regulations(replace(desk.pipeline.settings, progress_items=interval))
    desk.give_extension(made)
    return made


async def test_failed_run_continues_from_its_checkpoint(desk: Desk) -> None:
    """OPS-2: by the same job, or by the next run."""
    sitemap = desk.world.issues[2].sitemap
    desk.world.replaced[sitemap] = text_answer("<html>maintenance</html>", 200, "text/html")
    job_id = await desk.run()
    job = await desk.store.reads.job(job_id)
    assert job.state is JobState.FAILED and "HTML" in (job.error or "")
    assert (await desk.counters(job_id)).done == 15
    del desk.world.replaced[sitemap]
    await desk.control.resume(job_id)
    await desk.work()
    assert (await desk.store.reads.job(job_id)).state is JobState.DONE
    counters = await desk.counters(job_id)
    assert (counters.accepted, counters.done) == (18, 18)


@on_sqlite
async def test_backfill_and_daily_pass_write_the_same_items(desk: Desk) -> None:
    """INV-1: the same keys and columns; only how they were found differs."""
    await desk.run("tax", mode="pagination", max_urls=5)
    await desk.run("tax", lane="SENTINEL", max_urls=20)
    rows = await desk.fetch("select found_by, count(*) from regulations_documents group by 1")
    assert dict(rows) == {"BACKFILL": 5, "SENTINEL": 20}
    shapes = await desk.fetch("select distinct substr(key, 1, 13) from items")
    assert shapes == [("backfill-tax-",)]
