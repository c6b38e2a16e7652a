"""`flag`: values that an admin changes while processes run."""

from __future__ import annotations

from typing import Any

import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.opening import opened_store, ready_settings, run_async
from holdfast.cli.output import errors, print_json, print_table
from holdfast.cli.served_flags import served_flags
from holdfast.extension import installed
from holdfast.features.console import open_console
from holdfast.features.switches.flags import FeatureFlags


def register(app: typer.Typer) -> None:
    family = typer.Typer(no_args_is_help=True, help="Flags: values changed at run time.")
    family.command("list")(list_flags)
    family.command("set")(set_flag)
    app.add_typer(family, name="flag")


def list_flags(as_json: bool = JSON) -> None:
    """List the flags of the core and of all extensions."""
    settings = ready_settings()
    served = served_flags(settings, installed())

    async def main() -> None:
        async with opened_store(settings) as store:
            flags = await FeatureFlags(open_console(store), served).all()
        rows: list[dict[str, Any]] = [
            {
                "name": flag.name,
                "value": flag.value,
                "kind": flag.kind,
                "by": flag.actor,
                "at": flag.at,
                "help": flag.help,
            }
            for flag in flags
        ]
        if as_json:
            print_json(rows)
            return
        names = ("name", "value", "kind", "by", "at", "help")
        table = [row | {"value": _as_typed(row["value"])} for row in rows]
        print_table(names, [[row[name] for name in names] for row in table], "No flags.")

    run_async(main())


def _as_typed(value: Any) -> Any:
    """Formats a value as `flag set` accepts it."""
    return ("off", "on")[value] if isinstance(value, bool) else value


def set_flag(
    name: str = typer.Argument(..., metavar="NAME", help="As `holdfast flag list` shows it."),
    value: str = typer.Argument(..., metavar="VALUE", help="on, off, a number or a choice."),
) -> None:
    """Set a flag, for all processes within seconds."""
    settings = ready_settings()
    served = served_flags(settings, installed())

    async def main() -> None:
        async with opened_store(settings) as store:
            flags = FeatureFlags(open_console(store), served)
            await flags.change_to(name, value, settings.owner)

    run_async(main())
    errors.print(f"The flag {name} is {value.strip()}.", markup=False)
    if not served[name].allowed:
        errors.print(f"It stays off while {served[name].setting}=false.", markup=False)
