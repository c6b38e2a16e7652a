"""`holdfast delete`: a job, a file, an export, an account with everything that belongs to it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import structlog
import typer

from holdfast.cli.opening import opened_store, ready_settings, run_async
from holdfast.cli.output import errors, print_table
from holdfast.configuration import Settings
from holdfast.errors import UserError
from holdfast.features.console import open_console
from holdfast.features.deletion.compose import deletions_of
from holdfast.features.deletion.rules import Deletions
from holdfast.kernel import Store
from holdfast.model import JobState

_NEWEST = 100
_YES = typer.Option(False, "--yes", help="Do not ask first.")


def register(app: typer.Typer) -> None:
    family = typer.Typer(
        no_args_is_help=True, help="Delete jobs, files, exports and people's data for good."
    )
    family.command("job")(delete_job)
    family.command("file")(delete_file)
    family.command("export")(delete_export)
    family.command("user")(delete_user)
    app.add_typer(family, name="delete")


def delete_job(
    job_id: int = typer.Argument(..., metavar="JOB", help="Number of the job."), yes: bool = _YES
) -> None:
    """Delete a job and everything that belongs to it.

    Its items, results, keys, exports and the rows of its pipeline go with it. This is safe
    while workers run. If it is interrupted, the same command continues, and so does
    any worker. The job's entries in the audit log stay."""

    async def question(store: Store) -> str:
        job = await store.reads.job(job_id)
        counters = await store.reads.counters(job_id)
        return f"Delete job {job_id}, {job.name}, with its {counters.accepted:,} items?"

    async def delete(store: Store, deletions: Deletions, actor: str) -> str:
        if (await store.reads.job(job_id)).state is not JobState.DELETING:
            await deletions.jobs.begin(job_id, actor)
        await deletions.jobs.delete(job_id)
        return f"Job {job_id} is deleted."

    _carry_out(question, delete, yes)


def delete_file(
    file_id: int | None = typer.Argument(
        None, metavar="FILE", help="Number of the stored file. Default: list the newest files."
    ),
    yes: bool = _YES,
) -> None:
    """Delete a stored file.

    Without a number, list the newest files and delete nothing.
    """
    if file_id is None:
        _print_newest(_file_rows, ("file", "name", "size", "owner", "stored"), "No stored files.")
        return

    async def question(store: Store) -> str:
        file = await open_console(store).files.file(file_id)
        return f"Delete file {file_id}, {file.name} of {file.owner_id}?"

    async def delete(store: Store, deletions: Deletions, actor: str) -> str:
        await deletions.delete_file(file_id, None, actor)
        return f"File {file_id} is deleted."

    _carry_out(question, delete, yes)


def delete_export(
    export_id: int | None = typer.Argument(
        None, metavar="EXPORT", help="Number of the export. Default: list the newest exports."
    ),
    yes: bool = _YES,
) -> None:
    """Delete an export that was created on the pages or through the API.

    Without a number, list the newest exports and delete nothing."""
    if export_id is None:
        names = ("export", "job", "format", "state", "size", "owner", "created")
        _print_newest(_export_rows, names, "No exports.")
        return

    async def question(store: Store) -> str:
        export = await open_console(store).exports.export(export_id)
        return f"Delete export {export_id} of job {export.job_id}?"

    async def delete(store: Store, deletions: Deletions, actor: str) -> str:
        await deletions.delete_export(export_id, None, actor)
        return f"Export {export_id} is deleted."

    _carry_out(question, delete, yes)


async def _file_rows(store: Store) -> list[tuple[Any, ...]]:
    files = await open_console(store).files.page(None, _NEWEST)
    return [(each.id, each.name, each.size, each.owner_id, each.created_at) for each in files]


async def _export_rows(store: Store) -> list[tuple[Any, ...]]:
    exports = await open_console(store).exports.page(None, _NEWEST)
    return [
        (each.id, each.job_id, each.format, each.state, each.size, each.owner_id, each.created_at)
        for each in exports
    ]


def _print_newest(
    rows_of: Callable[[Store], Awaitable[list[tuple[Any, ...]]]], names: Sequence[str], empty: str
) -> None:
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            print_table(names, await rows_of(store), empty, right=(names[0], "job", "size"))

    run_async(main())


def delete_user(
    name: str = typer.Argument(..., metavar="NAME", help="Name of the account."), yes: bool = _YES
) -> None:
    """Delete an account and everything of its owner.

    Jobs, files, exports, tokens and sessions go with it. The person is locked out at once. The
    audit log keeps the name."""

    async def question(store: Store) -> str:
        await open_console(store).people.user(name)
        return f"Delete the account {name} with all its jobs, files and exports?"

    async def delete(store: Store, deletions: Deletions, actor: str) -> str:
        await deletions.begin_user(name, actor)
        await deletions.delete_user(name, actor)
        return f"The account {name} and everything that belonged to it are deleted."

    _carry_out(question, delete, yes)


def _carry_out(
    question: Callable[[Store], Awaitable[str]],
    delete: Callable[[Store, Deletions, str], Awaitable[str]],
    yes: bool,
) -> None:
    """Asks first, naming what would be deleted."""
    settings = ready_settings()
    text = run_async(_with_store(settings, question))
    if not yes and not typer.confirm(f"{text} This cannot be undone."):
        raise UserError("nothing was deleted", "Confirm it, or use --yes.")

    async def act(store: Store) -> str:
        deletions = deletions_of(settings, open_console(store), structlog.get_logger())
        return await delete(store, deletions, settings.owner)

    errors.print(run_async(_with_store(settings, act)), markup=False)


async def _with_store(settings: Settings, act: Callable[[Store], Awaitable[str]]) -> str:
    async with opened_store(settings) as store:
        return await act(store)
