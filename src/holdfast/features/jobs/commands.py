"""`holdfast jobs` and `holdfast show`: the jobs, and the state of one of them."""

from __future__ import annotations

from typing import Any

import typer

from holdfast.cli.arguments import JOB, JSON
from holdfast.cli.opening import opened_store, ready_settings, run_async
from holdfast.cli.output import (
    cell,
    console,
    instant,
    print_json,
    print_table,
    reason_text,
    text_cell,
)
from holdfast.configuration import Settings
from holdfast.features.console import open_console
from holdfast.features.jobs.reads import states_of
from holdfast.features.jobs.why import why_not_running
from holdfast.kernel import Store
from holdfast.model import IDLE, Counters, Job, is_idle
from holdfast.observe.tracing import parse

_NO_JOBS = "No jobs yet. Start one: holdfast run PIPELINE.py INPUT.csv --out RESULTS.xlsx"


def register(app: typer.Typer) -> None:
    app.command("jobs")(jobs)
    app.command("show")(show)


def jobs(
    limit: int = typer.Option(50, "--limit", min=1, help="Maximum number of jobs."),
    state: str = typer.Option(
        "",
        "--state",
        help="Only these states, e.g. RUNNING,PAUSED. IDLE: standing jobs with nothing open.",
    ),
    pipeline: list[str] = typer.Option(
        [], "--pipeline", metavar="NAME", help="Only jobs of this pipeline. Can be repeated."
    ),
    as_json: bool = JSON,
) -> None:
    """List the jobs, newest first."""
    states = states_of(state)
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            newest = await open_console(store).jobs.page(
                None, limit, states=states, pipelines=pipeline
            )
            rows = [(job, counters) for job, counters, _ in newest]
        if as_json:
            print_json([_job_json(job, counters) for job, counters in rows])
            return
        print_table(
            ("job", "pipeline", "name", "state", "accepted", "done", "not found", "error", "open",
             "created"),
            [
                (job.id, job.pipeline, job.name, _shown_state(job, c), c.accepted, c.done,
                 c.not_found, c.error, c.open, job.created_at)
                for job, c in rows
            ],
            "No job matches." if states or pipeline else _NO_JOBS,
            right=("job", "accepted", "done", "not found", "error", "open"),
        )  # fmt: skip

    run_async(main())


def show(
    job_id: int = JOB,
    verify: bool = typer.Option(
        False, "--verify", help="Count the rows and compare them with the counters."
    ),
    as_json: bool = JSON,
) -> None:
    """Show the state, counters, streams and ranges of a job, and why it is not running."""
    settings = ready_settings()

    async def main() -> int:
        async with opened_store(settings) as store:
            details = await _job_details(store, settings, job_id, verify)
        if as_json:
            print_json(details)
        else:
            _print_job(details)
        return 1 if details.get("problems") else 0

    raise typer.Exit(run_async(main()))


async def _job_details(
    store: Store, settings: Settings, job_id: int, verify: bool
) -> dict[str, Any]:
    job = await store.reads.job(job_id)
    details = _job_json(job, await store.reads.counters(job_id))
    details["heartbeat_at"] = await open_console(store).jobs.heartbeat(job_id)
    enabled = settings.rules.backfill_enabled
    details["why"] = await why_not_running(open_console(store), job, enabled)
    details["streams"] = await store.streams.of_job(job_id)
    details["ranges_count"] = await open_console(store).ranges.count(job_id)
    details["ranges"] = await open_console(store).ranges.of_job(job_id, 20)
    details["errors"] = await open_console(store).jobs.errors_by_code(job_id)
    details["decisions"] = await open_console(store).jobs.decisions(job_id, 10)
    if verify:
        details["problems"] = (await store.reads.verify(job_id)).problems
    return details


def _job_json(job: Job, counters: Counters) -> dict[str, Any]:
    names = ("id", "pipeline", "name", "state", "owner_id", "mode", "lane", "max_items", "error",
             "created_at", "started_at", "finished_at", "updated_at", "discovered_at")  # fmt: skip
    counts = {name: getattr(counters, name) for name in
              ("accepted", "done", "not_found", "skipped", "error", "open", "retried",
               "throttled", "known")}  # fmt: skip
    ids = parse(job.trace)
    fields = {name: getattr(job, name) for name in names}
    fields |= {"standing": job.standing, "idle": is_idle(job, counters)}
    fields["read_as"], fields["removed"] = list(job.reading.read_as), dict(job.removed)
    return fields | {"trace_id": ids and ids.trace_id, "counters": counts}


def _shown_state(job: Job, counters: Counters) -> str:
    return IDLE if is_idle(job, counters) else str(job.state)


def _print_job(details: dict[str, Any]) -> None:
    counts = details["counters"]
    state = IDLE if details["idle"] else details["state"]
    console.print(
        f"[bold]Job {details['id']}[/] {cell(state)} · {cell(details['pipeline'])} · "
        f"{cell(details['name'])}"
    )
    console.print(" · ".join(f"{n.replace('_', ' ')} {c:,}" for n, c in counts.items()))
    if details["removed"]:
        removed = sum(details["removed"].values())
        console.print(f"{removed:,} older finished items were removed by retention")
    for name in ("created_at", "started_at", "finished_at", "heartbeat_at"):
        if details[name]:
            console.print(f"{name.removesuffix('_at')} {instant(details[name])}")
    if details["trace_id"]:
        console.print(f"trace {details['trace_id']}")
    for number, sentence in enumerate(details["read_as"]):
        console.print(f"{'  ' if number else 'read as '}{cell(sentence)}")
    if details["error"]:
        console.print(f"[red]{cell(details['error'])}[/]")
    why = details["why"]
    if why is not None and why.kind == "leased by":
        console.print(f"Processed by {cell(why.text)}")
    elif why is not None:
        text = reason_text(why.kind, why.text, why.until)
        console.print(f"[yellow]Not running: {text_cell(text)}[/]")
    if "problems" in details:
        verdict = "; ".join(details["problems"]) or "the counters match the rows"
        console.print(f"Verified: {verdict}")
    _print_details(details)


def _print_details(details: dict[str, Any]) -> None:
    console.print()
    print_table(
        ("stream", "state", "pages", "records", "items", "error or wait"),
        [(s.source, s.state, s.pages_count, s.records_count, s.items_count,
          s.error or (s.waiting_for and f"waits for {s.waiting_for}"))
         for s in details["streams"]],
        "No streams.",
    )  # fmt: skip
    if details["ranges"]:
        count = details["ranges_count"]
        console.print("\n1 range:" if count == 1 else f"\n{count:,} ranges; the first ones:")
        print_table(
            ("range", "items", "kind", "due", "leased by", "losses"),
            [(r.id, f"{r.lo}..{r.hi}", "again" if r.again else "fresh", r.available_at, r.worker,
              r.expiries) for r in details["ranges"]],
            "",
        )  # fmt: skip
    if details["errors"]:
        console.print()
        print_table(
            ("error", "items", "first", "last", "example"),
            [(e.code, e.count if e.exact else f"about {e.count:,}", e.first_at, e.last_at,
              (e.sample or "")[:60]) for e in details["errors"]],
            "",
        )  # fmt: skip
    if details["decisions"]:
        console.print("\nAdjustments, newest first:")
        for decision in details["decisions"]:
            change = f"{decision['was']:g} → {decision['became']:g}"
            console.print(f"  {decision['what']} {change}: {cell(decision['why'])}")
