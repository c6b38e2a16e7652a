import typer

from holdfast.cli.composition import settings_from_environment

app = typer.Typer()


@app.command("count")
def count() -> None:
    """Show the number of stations."""
    print(settings_from_environment().of("weather").stations)
