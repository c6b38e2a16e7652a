import typer

from holdfast.cli.opening import opened_store, run_async, settings_from_environment

app = typer.Typer(no_args_is_help=True)


@app.command("list")
def list_heights() -> None:
    """List the harbours with their high tides."""

    async def main() -> list[str]:
        async with opened_store(settings_from_environment()) as store:
            rows = await store.fetch("tides_heights")
            return [f"{row['harbour']} {row['metres']}" for row in rows]

    for line in run_async(main()):
        print(line)


@app.command("highest")
def highest() -> None:
    """Show the height of a high tide."""
    print(settings_from_environment().of("tides").metres)
