"""`pause`, `resume`, `cancel` and `reprocess`: actions on a job."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import structlog
import typer

from holdfast.cli.arguments import JOB, STATUS, parse_statuses
from holdfast.cli.opening import opened_store, ready_settings, run_async
from holdfast.cli.output import errors
from holdfast.errors import UserError
from holdfast.kernel.jobs.control import Control


def register(app: typer.Typer) -> None:
    app.command("pause")(pause)
    app.command("resume")(resume)
    app.command("cancel")(cancel)
    app.command("reprocess")(reprocess)


def act(action: Callable[[Control], Awaitable[str]]) -> None:
    settings = ready_settings()

    async def main() -> str:
        async with opened_store(settings) as store:
            return await action(Control(store, settings.owner, structlog.get_logger()))

    errors.print(run_async(main()), markup=False)


def pause(job_id: int = JOB) -> None:
    """Pause a job: no more items are started, running ones may finish."""

    async def action(control: Control) -> str:
        return f"Job {job_id} is {await control.pause(job_id)}."

    act(action)


def resume(
    job_id: int = JOB,
    max_items: int | None = typer.Option(
        None, "--max-items", min=1, help="Raise the cap on items to N."
    ),
    max_per_source: int | None = typer.Option(
        None, "--max-per-source", min=1, help="Raise the cap of each source to N."
    ),
) -> None:
    """Continue a job after a pause, a failed discovery, or with a higher cap."""

    async def action(control: Control) -> str:
        return f"Job {job_id} is {await control.resume(job_id, max_items, max_per_source)}."

    act(action)


def cancel(job_id: int = JOB) -> None:
    """Cancel a job permanently: its open items count as SKIPPED."""

    async def action(control: Control) -> str:
        return f"Job {job_id} is {await control.cancel(job_id)}."

    act(action)


def reprocess(
    job_id: int = JOB,
    status: str | None = STATUS,
    item: list[int] = typer.Option([], "--item", help="Number of an item. Can be repeated."),
    keep_attempts: bool = typer.Option(
        False, "--keep-attempts", help="Keep counting attempts instead of starting from zero."
    ),
) -> None:
    """Process finished items again; their earlier outcomes are kept as history."""
    statuses = parse_statuses(status)
    if bool(statuses) == bool(item):
        raise UserError(
            "nothing is selected to reprocess", "Use either --status ERROR,NOT_FOUND or --item N."
        )

    async def action(control: Control) -> str:
        if item:
            opened = await control.reprocess_items(job_id, item, not keep_attempts)
        else:
            opened = await control.reprocess(job_id, statuses, not keep_attempts)
        if not opened:
            return f"Job {job_id} has no such items; nothing to reprocess."
        left = len(set(item)) - opened if item else 0
        note = f" {left:,} are still open, or do not exist." if left else ""
        return f"{opened:,} items of job {job_id} are open again; a worker will process them.{note}"

    act(action)
