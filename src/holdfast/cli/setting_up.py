"""`migrate` and `doctor`: the set-up, and what is wrong with it."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from importlib.metadata import version
from typing import Any

import typer

from holdfast.cli.composition import opened_store, run_async, settings_from_environment
from holdfast.cli.output import JSON_OPTION, console, print_json, print_table, text_cell
from holdfast.database_url import sqlite_file
from holdfast.errors import DatabaseGone, UserError
from holdfast.findings import Finding
from holdfast.observe.log import configure
from holdfast.settings import Setting, Settings, every_setting, installed_groups, load_settings
from holdfast.store.migrate import SchemaStatus, downgrade, require_current, status, upgrade

_LEAST_FREE_BYTES = 1 << 30
SOMETHING_WRONG = 3


def register(app: typer.Typer) -> None:
    app.command("migrate")(migrate)
    app.command("doctor")(doctor)
    app.command("settings")(show_settings)


def migrate(
    direction: str = typer.Argument(..., metavar="up|down|status", help="What to do."),
    name: str | None = typer.Argument(
        None, metavar="[NAME]", help="core or an extension; up: all of them if left out."
    ),
    revision: str = typer.Argument(
        "-1", metavar="[REVISION]", help="down: where to, or base for none; else one step back."
    ),
    yes: bool = typer.Option(False, "--yes", help="Do not ask before data is dropped."),
    as_json: bool = JSON_OPTION,
) -> None:
    """Upgrade or downgrade the database's schema, or show its state.

    Core and each extension have migrations of their own: `up` brings all of them to the newest,
    `up NAME` and `down NAME` only one.
    """
    settings = settings_from_environment()
    url = settings.database_url
    if direction == "up":
        upgrade(url, name)
    elif direction == "down":
        if name is None:
            names = ", ".join(branch.name for branch in status(url).branches)
            raise UserError("down needs a name", f"Use one of: {names}.")
        if not yes and not typer.confirm("A step back drops the tables it added. Continue?"):
            raise typer.Exit(1)
        downgrade(url, name, revision)
    elif direction != "status":
        raise UserError(f"{direction!r} is not a direction", "Use up, down or status.")
    _show_schema(status(url), as_json)


def _show_schema(found: SchemaStatus, as_json: bool) -> None:
    if as_json:
        print_json({"up_to_date": found.up_to_date, "branches": found.branches})
        return
    rows = [
        (branch.name, branch.current or "empty", branch.head, branch.state)
        for branch in found.branches
    ]
    print_table(("name", "schema", "newest", "state"), rows, "")


def show_settings(as_json: bool = JSON_OPTION) -> None:
    """List every setting, its value here and what it is for."""
    settings = load_settings(os.environ)
    values = [
        (each.name, _shown(settings.of(group) if group else settings, each), each.help)
        for group, declared in every_setting(installed_groups()).items()
        for each in declared
    ]
    if as_json:
        print_json({name: value for name, value, _ in values})
        return
    print_table(("setting", "value", "what it is for"), values, "")


def _shown(group: Any, each: Setting) -> str:
    """Its value in this group; of a secret only whether there is one, or a URL without it."""
    if not each.secret:
        return str(getattr(group, each.field))
    if hasattr(group, f"masked_{each.field}"):
        return str(getattr(group, f"masked_{each.field}"))
    return "***" if getattr(group, each.field) else ""


def doctor(as_json: bool = JSON_OPTION) -> None:
    """Check the set-up, and say what is wrong and how to mend it. Exit code 3 if something is."""
    configure()
    findings = list(_examine())
    if as_json:
        print_json(findings)
    else:
        for found in findings:
            mark = "[green]ok[/]   " if found.ok else "[red]wrong[/]"
            console.print(f"{mark} {found.what}: {text_cell(found.text)}", soft_wrap=True)
            if found.mend and not found.ok:
                console.print(f"      {text_cell(found.mend)}", soft_wrap=True)
    if not all(found.ok for found in findings):
        raise typer.Exit(SOMETHING_WRONG)


def _examine() -> Iterator[Finding]:
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
    yield Finding("settings", True, "all names and values are known")
    yield from _examine_database(settings)
    yield from _examine_broker(settings)


def _examine_database(settings: Settings) -> Iterator[Finding]:
    checks: tuple[tuple[str, Callable[[Settings], Finding]], ...] = (
        ("data folder", _folder),
        ("disk", _space),
        ("schema", _schema),
        ("database", _database),
    )
    for name, check in checks:
        found = _examined(name, check, settings)
        yield found
        if name == "schema" and not found.ok:
            return  # the database would only say the same again


def _examine_broker(settings: Settings) -> list[Finding]:
    if settings.broker_url is None:
        return [Finding("broker", True, "none set; workers poll the database")]
    # Not above: the commands that need no broker start without it.
    from holdfast.messaging.queue_checks import check

    return run_async(check(settings.broker_url, settings.queue_prefix))


def _examined(name: str, check: Callable[[Settings], Finding], settings: Settings) -> Finding:
    try:
        return check(settings)
    except UserError as error:
        return Finding(name, False, error.message, error.hint)
    except DatabaseGone as error:
        text = f"{settings.masked_database_url} cannot be reached: {error}"
        return Finding(name, False, text, "Start it, or mend HOLDFAST_DATABASE_URL.")
    except OSError as error:
        return Finding(name, False, str(error), "Mend it, or set HOLDFAST_DATA_DIR to another.")


def _folder(settings: Settings) -> Finding:
    folder = settings.data_dir
    folder.mkdir(parents=True, exist_ok=True)
    if not os.access(folder, os.W_OK):
        mend = "Make it writable, or set HOLDFAST_DATA_DIR."
        return Finding("data folder", False, f"{folder} cannot be written", mend)
    return Finding("data folder", True, str(folder.resolve()))


def _space(settings: Settings) -> Finding:
    free = shutil.disk_usage(settings.data_dir).free
    mend = "Make room, or set HOLDFAST_DATA_DIR to a larger disk."
    return Finding("disk", free >= _LEAST_FREE_BYTES, f"{free / 2**30:,.1f} GiB free", mend)


def _schema(settings: Settings) -> Finding:
    url = settings.database_url
    file = sqlite_file(url)
    if file is not None and not file.exists():
        return Finding("schema", True, f"{file} is made by the first command that needs it")
    require_current(url)
    revisions = ", ".join(branch.current or "" for branch in status(url).branches)
    return Finding("schema", True, f"{revisions} in {settings.masked_database_url}")


def _database(settings: Settings) -> Finding:
    file = sqlite_file(settings.database_url)
    if file is not None and not file.exists():
        return Finding("database", True, "not made yet")

    async def ask() -> tuple[int, int]:
        async with opened_store(settings) as store:
            live = await store.reads.live_workers(settings.worker_lost_seconds)
            return len(live), len(await store.reads.kill_switches())

    workers, switches = run_async(ask())
    text = f"reachable; {workers} live workers; {switches} kill switches on"
    return Finding("database", True, text)
