"""`holdfast posts ...`."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Any

import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.opening import opened_store, ready_settings, run_async
from holdfast.cli.output import errors, print_json, print_table
from holdfast.errors import UserError
from holdfast.pipelines.posts.quality.measuring import SETS, measure, read_labelled
from holdfast.pipelines.posts.releasing import release as release_events
from holdfast.pipelines.posts.releasing import roll_back

app = typer.Typer(no_args_is_help=True)
_STATES = ("PARKED", "WAITING", "DEAD")


@app.callback()
def posts() -> None:
    """Posts of social media from crawler events."""


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
    """Show how many messages were processed, and which are parked, waiting or dead, and why."""
    rows = _read("posts_event_counts", {})
    if as_json:
        print_json(rows)
        return
    names = ("state", "format", "code", "events")
    table = [tuple(row[name] for name in names) for row in rows]
    print_table(names, table, "No messages yet.", right=("events",))


@app.command("release")
def release(
    key: str | None = typer.Argument(
        None, metavar="[KEY]", help="One message, as `/posts/messages` shows it."
    ),
    state: str | None = typer.Option(None, "--state", help="All that are parked, waiting or dead."),
) -> None:
    """Try parked, waiting or dead messages again now."""
    wanted = state.upper() if state else None
    if (key is None) == (wanted is None) or (wanted and wanted not in _STATES):
        raise UserError("name one message, or --state parked, waiting or dead")
    settings = ready_settings()

    async def main() -> int:
        async with opened_store(settings) as store:
            return await release_events(store, wanted, key, settings.owner)

    count = run_async(main())
    errors.print(f"{count:,} messages will be tried again within seconds.", markup=False)


@app.command("rollback")
def rollback() -> None:
    """Go back to legacy messages: events are parked from now on, legacy messages processed.

    Takes effect in all processes within two seconds, without a restart. Nothing is lost: parked
    events are processed when the new mode is on again.
    """
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            await roll_back(store, settings.owner)

    run_async(main())
    errors.print("Events are parked, legacy messages are processed.", markup=False)
    errors.print("Forward again: holdfast flag set posts_new_mode on", markup=False)
    if not settings.of("posts").legacy_mode_enabled:
        errors.print("Legacy messages stay off while LEGACY_MODE_ENABLED=false.", markup=False)


@app.command("quality")
def quality(
    file: Path | None = typer.Option(
        None, "--file", help="Your own posts with labels, as a table of tab-separated values."
    ),
    as_json: bool = JSON,
) -> None:
    """Measure sentiment and intent on labelled posts.

    Without --file, on the three sets that come with the package.
    Prints the macro-F1 of each language beside that of counting words from a list, and of always
    choosing the most frequent label.
    """
    if file is not None and not file.is_file():
        raise UserError(f"there is no file {file}")
    files = SETS if file is None else (file,)
    scores = [
        {"set": path.stem, **asdict(score)}
        for path in files
        for score in measure(read_labelled(path))
    ]
    if as_json:
        print_json(scores)
        return
    names = ("set", "task", "language", "posts", "ours", "words", "majority")
    table = [
        tuple(f"{row[name]:.3f}" if isinstance(row[name], float) else row[name] for name in names)
        for row in scores
    ]
    print_table(names, table, "No posts.", right=names[3:])


def _read(query: str, params: dict[str, Any]) -> list[dict[str, Any]]:
    settings = ready_settings()

    async def main() -> list[dict[str, Any]]:
        async with opened_store(settings) as store:
            return [dict(row) for row in await store.fetch(query, params)]

    return run_async(main())
