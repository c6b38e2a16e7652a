import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.opening import opened_store, run_async, settings_from_environment
from holdfast.cli.output import print_json, print_table

app = typer.Typer()


@app.command("count")
def count() -> None:
    """Show the number of stations."""
    print(settings_from_environment().of("weather").stations)


@app.command("readings")
def readings(as_json: bool = JSON) -> None:
    """List the latest reading of each station."""

    async def main() -> list[list[int]]:
        async with opened_store(settings_from_environment()) as store:
            return [
                [row["station"], row["degrees"]] for row in await store.fetch("weather_readings")
            ]

    rows = run_async(main())
    if as_json:
        print_json(rows)
    else:
        print_table(("station", "degrees"), rows, "No readings.")
