"""The commands of `holdfast posts`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.opening import opened_store, ready_settings, run_async
from holdfast.cli.output import errors, print_json, print_table
from holdfast.errors import UserError
from holdfast_posts.releasing import release as release_events
from holdfast_posts.releasing import roll_back

app = typer.Typer(no_args_is_help=True)
_STATES = ("PARKED", "WAITING", "DEAD")
_SHOWN = ("key", "state", "code", "attempts", "due_at", "reason")
_LISTED = "`holdfast posts messages` lists them."


@app.callback()
def posts() -> None:
    """Process posts of social media from crawler events."""


@app.command("projects")
def projects(as_json: bool = JSON) -> None:
    """List the projects, with their posts and errors."""
    rows = _read("posts_projects", {"limit": 1000})
    if as_json:
        print_json(rows)
        return
    names = ("project", "posts", "negative", "risky", "viral", "errors", "last_day")
    table = [tuple(row[name] for name in names) for row in rows]
    print_table(names, table, "No posts yet.", right=names[1:6])


@app.command("status")
def status(as_json: bool = JSON) -> None:
    """Show what became of the messages, in numbers.

    Which are parked, waiting or dead, and why.
    """
    rows = _read("posts_event_counts", {})
    if as_json:
        print_json(rows)
        return
    names = ("state", "format", "code", "events")
    table = [tuple(row[name] for name in names) for row in rows]
    print_table(names, table, "No messages yet.", right=("events",))


@app.command("messages")
def messages(
    state: str | None = typer.Option(None, "--state", help="Only parked, waiting or dead ones."),
    limit: int = typer.Option(
        200, "--limit", min=1, max=100_000, help="Maximum number of messages."
    ),
    as_json: bool = JSON,
) -> None:
    """List the messages that were not processed.

    Those that are parked, waiting or dead, with the reason and the next try.
    """
    wanted = state.upper() if state else None
    if wanted and wanted not in _STATES:
        raise UserError(f"there is no state {state!r}", hint="It is parked, waiting or dead.")
    states = (wanted,) if wanted else _STATES
    rows = [_set_aside(row) for name in states for row in _events_of(name, limit)][:limit]
    if as_json:
        print_json(rows)
        return
    table = [tuple(row[name] for name in _SHOWN) for row in rows]
    print_table(_SHOWN, table, "No message is parked, waiting or dead.", right=("attempts",))


@app.command("release")
def release(
    key: str | None = typer.Argument(
        None, metavar="[KEY]", help="One message, as `holdfast posts messages` shows it."
    ),
    state: str | None = typer.Option(None, "--state", help="All that are parked, waiting or dead."),
) -> None:
    """Try parked, waiting or dead messages again now."""
    wanted = state.upper() if state else None
    if (key is None) == (wanted is None) or (wanted and wanted not in _STATES):
        raise UserError("name one message, or --state parked, waiting or dead", hint=_LISTED)
    settings = ready_settings("posts")

    async def main() -> int:
        async with opened_store(settings) as store:
            return await release_events(store, wanted, key, settings.owner)

    count = run_async(main())
    if key is not None and not count:
        raise UserError(f"no message {key!r} is parked, waiting or dead", hint=_LISTED)
    noun = "message" if count == 1 else "messages"
    errors.print(f"{count:,} {noun} will be tried again within seconds.", markup=False)


@app.command("rollback")
def rollback() -> None:
    """Go back to legacy messages.

    Events are parked from now on, and legacy messages processed. Takes effect in all processes
    within two seconds, without a restart. Nothing is lost: parked
    events are processed when the new mode is on again.
    """
    settings = ready_settings("posts")

    async def main() -> None:
        async with opened_store(settings) as store:
            await roll_back(store, settings.owner)

    run_async(main())
    if settings.of("posts").legacy_mode_enabled:
        errors.print("Events are parked, legacy messages are processed.", markup=False)
    else:
        errors.print("Events are parked.", markup=False)
        errors.print("Legacy messages are parked too: LEGACY_MODE_ENABLED=false.", markup=False)
    errors.print("Forward again: holdfast flag set posts_new_mode on", markup=False)


def _events_of(state: str, limit: int) -> list[dict[str, Any]]:
    return _read("posts_events_of", {"state": state, "word": None, "limit": limit})


def _set_aside(row: Mapping[str, Any]) -> dict[str, Any]:
    shown = {name: row[name] for name in _SHOWN}
    return shown if row["state"] == "WAITING" else {**shown, "due_at": None}


def _read(query: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    settings = ready_settings("posts")

    async def main() -> list[dict[str, Any]]:
        async with opened_store(settings) as store:
            return [dict(row) for row in await store.fetch(query, params)]

    return run_async(main())
