"""`holdfast migrate`: upgrades and downgrades the database schema."""

from __future__ import annotations

import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.opening import settings_from_environment
from holdfast.cli.output import print_json, print_table
from holdfast.errors import UserError
from holdfast.kernel.database.migrate import SchemaStatus, downgrade, status, upgrade


def register(app: typer.Typer) -> None:
    app.command("migrate")(migrate)


def migrate(
    direction: str = typer.Argument(
        ..., metavar="up|down|status", help="Upgrade, downgrade, or show the state."
    ),
    name: str | None = typer.Argument(
        None, metavar="[NAME]", help="core or a pipeline. Default for up: all that have tables."
    ),
    version: str | None = typer.Argument(
        None,
        metavar="[VERSION]",
        show_default=False,
        help="Target of down, or base to remove everything. Default: one step back.",
    ),
    yes: bool = typer.Option(False, "--yes", help="Do not ask before dropping data."),
    as_json: bool = JSON,
) -> None:
    """Upgrade or downgrade the database schema, or show its state.

    Core and each pipeline with tables have their own versions. `up` upgrades those that are there
    to the newest, and creates the core's tables; `up NAME` creates or upgrades those of one. The
    first use of a pipeline creates its tables too.
    """
    settings = settings_from_environment()
    url, schema = settings.database_url, settings.database_schema
    if version is not None and direction != "down":
        raise UserError(f"{direction} takes no version", "It means the newest.")
    if name is not None and direction == "status":
        raise UserError("status takes no name", "It shows all of them.")
    if direction == "up":
        upgrade(url, name, schema=schema, only_used=name is None)
    elif direction == "down":
        if name is None:
            names = ", ".join(branch.name for branch in status(url, schema=schema).branches)
            raise UserError("down needs the name of what to downgrade", f"Use one of: {names}.")
        if status(url, schema=schema).is_empty:
            raise UserError("the database has no tables yet", "There is nothing to downgrade.")
        if not yes and not typer.confirm(
            "A downgrade drops what the upgrade added; from version 1, all tables. Continue?"
        ):
            raise typer.Exit(1)
        downgrade(url, name, version or "-1", schema=schema)
    elif direction != "status":
        raise UserError(f"{direction!r} is not a direction", "Use up, down or status.")
    _show_schema(status(url, schema=schema), as_json)


def _show_schema(schema: SchemaStatus, as_json: bool) -> None:
    if as_json:
        print_json({"up_to_date": schema.up_to_date, "branches": schema.branches})
        return
    rows = [
        (branch.name, branch.current or "empty", branch.newest, branch.state)
        for branch in schema.branches
    ]
    print_table(("name", "schema", "newest", "state"), rows, "")
