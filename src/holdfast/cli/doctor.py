"""`holdfast doctor`: checks the installation."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator, Sequence
from importlib.metadata import version

import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.composition import file_access
from holdfast.cli.opening import opened_store, require_extras, run_async
from holdfast.cli.output import console, print_json, text_cell
from holdfast.clock import duration_text
from holdfast.configuration import Settings, every_setting, load_settings
from holdfast.errors import DatabaseGone, FilesGone, UserError
from holdfast.extension import PARTS, installed
from holdfast.extras import EXTRAS, is_installed
from holdfast.files.probe import check_store
from holdfast.kernel.database.migrate import require_current, status
from holdfast.model import Finding
from holdfast.observe.log import configure
from holdfast.settings import installed_groups
from holdfast.urls import sqlite_file

_LEAST_FREE_BYTES = 1 << 30
_OLDEST = "oldest transaction"
#: The same limit as in the alert HoldfastOldTransaction.
_OLD_SECONDS = 600.0
SOMETHING_WRONG = 3


def register(app: typer.Typer) -> None:
    app.command("doctor")(doctor)


def doctor(as_json: bool = JSON) -> None:
    """Check the installation, and say what is wrong and how to fix it.

    Exit code 3 if something is wrong.
    """
    configure()
    findings = list(_check())
    if as_json:
        print_json(findings)
    else:
        for finding in findings:
            mark = "[green]ok[/]   " if finding.ok else "[red]wrong[/]"
            console.print(f"{mark} {finding.what}: {text_cell(finding.text)}", soft_wrap=True)
            if finding.fix and not finding.ok:
                console.print(f"      {text_cell(finding.fix)}", soft_wrap=True)
    if not all(finding.ok for finding in findings):
        raise typer.Exit(SOMETHING_WRONG)


def _check() -> Iterator[Finding]:
    yield Finding(
        "program", True, f"holdfast {version('holdfast')}, Python {sys.version.split()[0]}"
    )
    try:
        settings = load_settings(os.environ)
        for extension in every_setting(installed_groups()):
            if extension:
                settings.of(extension)
    except UserError as error:
        yield Finding("settings", False, error.message, error.hint)
        return
    yield Finding("settings", True, "all names and values are valid")
    yield _checked("extensions", _extensions, settings)
    parts = _checked("optional parts", _parts, settings)
    yield parts
    if not parts.ok:
        return
    database = list(_check_database(settings))
    yield from database
    is_there = all(finding.ok for finding in database)
    yield from _check_broker(settings, _nudged(settings) if is_there else ())
    yield _checked("files", _files, settings)


def _parts(settings: Settings) -> Finding:
    require_extras(settings)
    installed = [extra for extra in EXTRAS if is_installed(extra)]
    return Finding("optional parts", True, ", ".join(installed) or "none is installed")


def _check_database(settings: Settings) -> Iterator[Finding]:
    checks: tuple[tuple[str, Callable[[Settings], Finding]], ...] = (
        ("data folder", _folder),
        ("disk", _space),
        ("schema", _schema),
        ("database", _database),
        *(() if sqlite_file(settings.database_url) else ((_OLDEST, _oldest_transaction),)),
    )
    for name, check in checks:
        finding = _checked(name, check, settings)
        yield finding
        if name == "schema" and not finding.ok:
            return  # the check of the database would only repeat it


def _check_broker(settings: Settings, pipelines: Sequence[str]) -> list[Finding]:
    if settings.broker_url is None:
        return [
            Finding("broker", True, "not set; only messages from and to other programs need one")
        ]
    # Only here: commands that need no broker should not import it.
    from holdfast.messaging.queue_checks import check

    return run_async(check(settings.broker_url, settings.queue_prefix, pipelines))


def _nudged(settings: Settings) -> Sequence[str]:
    """Returns the pipelines with messages in the broker that say that they have work."""
    file = sqlite_file(settings.database_url)
    if settings.broker_url is None or (file is not None and not file.exists()):
        return ()

    async def ask() -> list[str]:
        async with opened_store(settings) as store:
            return sorted(await store.nudges.counts())

    return run_async(ask())


def _checked(name: str, check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings)
    except UserError as error:
        return Finding(name, False, error.message, error.hint)
    except DatabaseGone as error:
        text = f"{settings.masked_database_url} cannot be reached: {error}"
        return Finding(name, False, text, "Start it, or correct HOLDFAST_DATABASE_URL.")
    except FilesGone as error:
        return Finding(name, False, error.message, error.hint)
    except OSError as error:
        return Finding(
            name, False, str(error), "Fix it, or set HOLDFAST_DATA_DIR to another folder."
        )


def _extensions(settings: Settings) -> Finding:
    """Checks the extensions by importing every part; other commands import only those that they
    need."""
    for name, extension in installed().items():
        for part in PARTS:
            extension.load(part)
        extension.make(settings.of(name) if extension.options else None)
    return Finding("extensions", True, ", ".join(installed()) or "none installed")


def _folder(settings: Settings) -> Finding:
    folder = settings.data_dir
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        fix = "Make it writable, or set HOLDFAST_DATA_DIR."
        return Finding("data folder", False, f"{folder} is not writable", fix)
    return Finding("data folder", True, str(folder.resolve()))


def _space(settings: Settings) -> Finding:
    free = shutil.disk_usage(settings.data_dir).free
    fix = "Make room, or set HOLDFAST_DATA_DIR to a larger disk."
    return Finding("disk", free >= _LEAST_FREE_BYTES, f"{free / 2**30:,.1f} GiB free", fix)


def _schema(settings: Settings) -> Finding:
    url = settings.database_url
    file = sqlite_file(url)
    if file is not None and not file.exists():
        return Finding("schema", True, f"{file} will be created by the first command that needs it")
    require_current(url, schema=settings.database_schema)
    found = status(url, schema=settings.database_schema)
    used = [branch for branch in found.branches if branch.current is not None]
    versions = ", ".join(f"{branch.name} {branch.current}" for branch in used)
    return Finding("schema", True, f"{versions} in {settings.masked_database_url}")


def _files(settings: Settings) -> Finding:
    store = file_access(settings).store
    run_async(check_store(store))
    return Finding("files", True, f"{store.place}: a file was written, read, listed and deleted")


def _database(settings: Settings) -> Finding:
    file = sqlite_file(settings.database_url)
    if file is not None and not file.exists():
        return Finding("database", True, "not created yet")

    async def ask() -> tuple[int, int]:
        async with opened_store(settings) as store:
            live = [worker for worker in await store.workers.live() if worker["pipelines"]]
            return len(live), len(await store.reads.kill_switches())

    workers, switches = run_async(ask())
    text = f"reachable; {workers} live workers; {switches} kill switches on"
    return Finding("database", True, text)


def _oldest_transaction(settings: Settings) -> Finding:
    async def ask() -> float | None:
        async with opened_store(settings) as store:
            return await store.reads.oldest_transaction_seconds()

    return of_oldest_transaction(run_async(ask()))


def of_oldest_transaction(seconds: float | None) -> Finding:
    """Judges the oldest transaction; `seconds`: how long it has been open."""
    if seconds is None:
        return Finding(_OLDEST, True, "none is open")
    fix = (
        "Until it ends, PostgreSQL keeps every row that is deleted, and tables grow. To see whose"
        " it is: select pid, usename, application_name, query from pg_stat_activity order by"
        " xact_start limit 1. To end it: select pg_terminate_backend(pid)."
    )
    text = f"open for {duration_text(seconds)}"
    return Finding(_OLDEST, seconds <= _OLD_SECONDS, text, fix)
