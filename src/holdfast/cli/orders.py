"""`pause`, `resume`, `cancel`, `reprocess`, `kill-switch`: what people order."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
import typer

from holdfast.cli.composition import opened_store, run_async
from holdfast.cli.inspecting import ready_settings, statuses_of
from holdfast.cli.output import JSON_OPTION, errors, print_json, print_table
from holdfast.engine.control import Caps, Control
from holdfast.errors import UserError

_JOB = typer.Argument(..., metavar="JOB", help="The job's number.")
_REASON = typer.Option("", "--reason", help="Why, for the audit and for those who wonder.")


def register(app: typer.Typer) -> None:
    app.command("pause")(pause)
    app.command("resume")(resume)
    app.command("cancel")(cancel)
    app.command("reprocess")(reprocess)
    app.command("kill-switch")(kill_switch)


def order(action: Callable[[Control], Awaitable[str]]) -> None:
    settings = ready_settings()

    async def main() -> str:
        async with opened_store(settings) as store:
            return await action(Control(store, settings.owner, structlog.get_logger()))

    errors.print(run_async(main()), markup=False)


def pause(job_id: int = _JOB) -> None:
    """Pause a job: no further item starts, what runs may settle."""

    async def action(control: Control) -> str:
        return f"Job {job_id} is {await control.pause(job_id)}."

    order(action)


def resume(
    job_id: int = _JOB,
    max_items: int | None = typer.Option(None, "--max-items", min=1, help="Raise the cap to this."),
    max_per_source: int | None = typer.Option(
        None, "--max-per-source", min=1, help="Raise each source's cap to this."
    ),
) -> None:
    """Go on with a job: after a pause, a failed discovery, or a cap that is raised."""

    async def action(control: Control) -> str:
        return f"Job {job_id} is {await control.resume(job_id, Caps(max_items, max_per_source))}."

    order(action)


def cancel(job_id: int = _JOB) -> None:
    """Cancel a job for good: its open items count as SKIPPED."""

    async def action(control: Control) -> str:
        return f"Job {job_id} is {await control.cancel(job_id)}."

    order(action)


def reprocess(
    job_id: int = _JOB,
    status: str | None = typer.Option(None, "--status", help="E.g. ERROR,NOT_FOUND."),
    item: list[int] = typer.Option([], "--item", help="An item's number. May be repeated."),
    keep_attempts: bool = typer.Option(
        False, "--keep-attempts", help="Count on from the attempts made, instead of from zero."
    ),
) -> None:
    """Open finished items again; what they came to before is kept as history."""
    statuses = statuses_of(status)
    if bool(statuses) == bool(item):
        raise UserError("say what to reprocess", "Either --status ERROR,NOT_FOUND or --item N.")

    async def action(control: Control) -> str:
        if item:
            opened = await control.reprocess_items(job_id, item, not keep_attempts)
        else:
            opened = await control.reprocess(job_id, statuses, not keep_attempts)
        if not opened:
            return f"Job {job_id} has no such items; nothing was opened."
        left = len(set(item)) - opened if item else 0
        told = f" {left:,} were open still, or are not there." if left else ""
        return f"{opened:,} items of job {job_id} are open again; a worker takes them.{told}"

    order(action)


def kill_switch(
    position: str = typer.Argument(
        ..., metavar="on|off|list", help="Switch it, or list the switches that are on."
    ),
    pipeline: str | None = typer.Option(None, "--pipeline", help="Only this pipeline."),
    source: str | None = typer.Option(None, "--source", help="Only this source or host."),
    reason: str = _REASON,
    as_json: bool = JSON_OPTION,
) -> None:
    """Stop everything, one pipeline or one source, for all workers, until switched off."""
    if position not in ("on", "off", "list"):
        raise UserError(f"{position!r} is not a position", "Use on, off or list.")
    if pipeline and source:
        raise UserError("one switch has one scope", "Give --pipeline or --source, not both.")
    if position == "list":
        _list_switches(as_json)
        return
    scope = f"pipeline:{pipeline}" if pipeline else f"source:{source}" if source else "all"

    async def action(control: Control) -> str:
        changed = await control.switch(scope, position == "on", reason)
        told = f"Kill switch {scope} {'is' if changed else 'was already'} {position}."
        left = [one["scope"] for one in await control.kill_switches()]
        if position == "off" and left:
            told += f" Still on: {', '.join(left)}."
        return told

    order(action)


def _list_switches(as_json: bool) -> None:
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            found = await store.reads.kill_switches()
        if as_json:
            print_json(found)
            return
        rows = [(one["scope"], one["since"], one["actor"], one["reason"]) for one in found]
        print_table(("scope", "since", "by", "reason"), rows, "No kill switch is on.")

    run_async(main())
