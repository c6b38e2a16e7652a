"""`holdfast dead`: items and messages that were set aside until a person decides."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.opening import opened_store, ready_settings, run_async
from holdfast.cli.output import cell, console, errors, instant, print_json, print_table
from holdfast.features.console import open_console
from holdfast.model import LetterState

_LETTER = typer.Argument(
    ..., metavar="ID", help="Number of the dead letter, as shown by `holdfast dead list`."
)


def register(app: typer.Typer) -> None:
    dead = typer.Typer(
        no_args_is_help=True, help="Dead letters: items and messages that were set aside."
    )
    dead.command("list")(dead_list)
    dead.command("show")(dead_show)
    dead.command("replay")(dead_replay)
    dead.command("drop")(dead_drop)
    app.add_typer(dead, name="dead")


def dead_list(
    state: LetterState = typer.Option(
        LetterState.OPEN, "--state", case_sensitive=False, help="Only dead letters in this state."
    ),
    limit: int = typer.Option(100, "--limit", min=1, help="Maximum number of dead letters."),
    as_json: bool = JSON,
) -> None:
    """List the dead letters, oldest first."""
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            letters = await open_console(store).dead_letters.oldest(state, limit)
        if as_json:
            print_json(letters)
            return
        names = ("id", "kind", "job_id", "seq", "pipeline", "code", "message", "created_at")
        rows = [[letter[name] for name in names] for letter in letters]
        print_table(
            ("id", "kind", "job", "item", "pipeline", "code", "message", "since"),
            rows,
            "No dead letters.",
        )

    run_async(main())


def dead_show(letter_id: int = _LETTER, as_json: bool = JSON) -> None:
    """Show one dead letter with its payload and history."""
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            letter = await open_console(store).dead_letters.letter(letter_id)
        if as_json:
            print_json(letter)
        else:
            _print_letter(letter)

    run_async(main())


def _print_letter(letter: dict[str, Any]) -> None:
    for name, value in letter.items():
        if name != "history" and value is not None:
            text = instant(value) if isinstance(value, datetime) else cell(value)
            console.print(f"[bold]{name}[/] {text}", soft_wrap=True)
    for death in letter["history"]:
        count = death["deliveries"]
        deliveries = f", {count} {'delivery' if count == 1 else 'deliveries'}" if count else ""
        at = f" at {death['at']}" if death["at"] else ""
        console.print(
            f"  {cell(death['reason'])} in queue {cell(death['queue'])}{deliveries}{at}",
            soft_wrap=True,
        )


def dead_replay(letter_id: int = _LETTER) -> None:
    """Process the item again, or send the message again."""
    _act(letter_id, replay=True)
    errors.print(f"Dead letter {letter_id} is open again; a worker will take it.", markup=False)


def dead_drop(letter_id: int = _LETTER) -> None:
    """Remove a dead letter from the list.

    Its item stays an error; its message is not sent.
    """
    _act(letter_id, replay=False)
    errors.print(f"Dead letter {letter_id} was dropped.", markup=False)


def _act(letter_id: int, replay: bool) -> None:
    settings = ready_settings()

    async def main() -> None:
        async with opened_store(settings) as store:
            await store.jobs.act_on_dead_letter(letter_id, replay, settings.owner)

    run_async(main())
