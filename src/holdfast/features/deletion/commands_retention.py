"""`holdfast retention`: what the policies keep, and what they would remove now."""

from __future__ import annotations

import structlog
import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.opening import opened_store, ready_settings, run_async
from holdfast.cli.output import errors, print_json, print_table
from holdfast.features.deletion.compose import retention_of
from holdfast.features.deletion.retention import Kept


def register(app: typer.Typer) -> None:
    app.command("retention")(retention)


def retention(
    as_json: bool = JSON,
    now: bool = typer.Option(False, "--now", help="Apply the policies once, now."),
) -> None:
    """Show what the retention policies would remove now, without removing anything.

    Workers and timers apply them in the background.
    """
    settings = ready_settings()

    async def main() -> list[Kept]:
        async with opened_store(settings) as store:
            policies = retention_of(settings, store, structlog.get_logger())
            removed = await policies.preview()
            if now:
                await policies.apply()
            return removed

    kept = run_async(main())
    if as_json:
        print_json([each._asdict() for each in kept])
        return
    print_table(("what", "keeps", "removes now"), [tuple(each) for each in kept], "")
    if now:
        errors.print("Applied once; what is left goes in the next rounds.")
