"""`holdfast kill-switch`: stops everything, one pipeline or one source."""

from __future__ import annotations

import structlog
import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.opening import opened_store, ready_settings, run_async
from holdfast.cli.output import errors, print_json, print_table
from holdfast.errors import UserError
from holdfast.extension import installed
from holdfast.features.switches.kill_switches import switch
from holdfast.kernel.jobs.control import Control


def register(app: typer.Typer) -> None:
    app.command("kill-switch")(kill_switch)


def kill_switch(
    position: str = typer.Argument(
        ..., metavar="on|off|list", help="Turn a switch on or off, or list those that are on."
    ),
    pipeline: str | None = typer.Option(None, "--pipeline", help="Stop only this pipeline."),
    source: str | None = typer.Option(None, "--source", help="Stop only this source or host."),
    reason: str = typer.Option(
        "", "--reason", help="Reason, shown to others and recorded in the audit log."
    ),
    as_json: bool = JSON,
) -> None:
    """Stop everything, one pipeline or one source on all workers, until it is turned off."""
    if position not in ("on", "off", "list"):
        raise UserError(f"{position!r} is not an action", "Use on, off or list.")
    if pipeline is not None and source is not None:
        raise UserError("a switch has only one scope", "Give --pipeline or --source, not both.")
    if position == "list":
        _list_switches(as_json)
        return
    scope = _scope(pipeline, source)

    message = _switch(scope, position == "on", reason)
    errors.print(message + _warning(pipeline if position == "on" else None), markup=False)


def _switch(scope: str, on: bool, reason: str) -> str:
    settings = ready_settings()

    async def main() -> str:
        async with opened_store(settings) as store:
            control = Control(store, settings.owner, structlog.get_logger())
            changed = await switch(control, scope, on, reason)
            remaining = [other["scope"] for other in await store.reads.kill_switches()]
        state = "on" if on else "off"
        message = f"Kill switch {scope} {'is' if changed else 'was already'} {state}."
        if remaining and not on:
            message += f" Still on: {', '.join(remaining)}."
        return message

    return run_async(main())


def _scope(pipeline: str | None, source: str | None) -> str:
    """An empty name, as of a variable of the shell that is not set, never means everything."""
    if pipeline is not None:
        return f"pipeline:{pipeline}"
    return "all" if source is None else f"source:{source}"


def _warning(pipeline: str | None) -> str:
    """Warns if no installed pipeline has the name.

    It may exist only on other hosts, so a typo cannot be refused."""
    if pipeline is None or pipeline in installed():
        return ""
    return (
        f" Check the name: no installed pipeline is called {pipeline!r}, so that this stops only "
        "jobs of a pipeline with that name from a file or on another host."
    )


def _list_switches(as_json: bool) -> None:
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            switches = await store.reads.kill_switches()
        if as_json:
            print_json(switches)
            return
        rows = [(row["scope"], row["since"], row["actor"], row["reason"]) for row in switches]
        print_table(("scope", "since", "by", "reason"), rows, "No kill switch is on.")

    run_async(main())
