"""`holdfast api`: serves the pages and the HTTP API."""

from __future__ import annotations

import typer

from holdfast.cli.composition import ensure_schema, run_async, settings_from_environment
from holdfast.cli.loading import load_all


def register(app: typer.Typer) -> None:
    app.command("api")(api)


def api(
    pipelines: list[str] = typer.Argument(
        None, metavar="[PIPELINE.py …]", help="Whose pipelines jobs can be made of."
    ),
    host: str = typer.Option("127.0.0.1", "--host", help="The address to listen at."),
    port: int = typer.Option(8000, "--port", min=0, max=65535, help="The port; 0 for a free one."),
    supervised: bool = typer.Option(False, "--supervised", hidden=True),
) -> None:
    """Serve the pages and the HTTP API; `holdfast work` does the jobs' work."""
    # Other commands need not wait for what only a server needs.
    from holdfast.cli.server import serve

    settings = settings_from_environment()
    loaded = load_all(pipelines or [], settings)
    ensure_schema(settings)
    run_async(serve(settings, loaded, host, port, supervised))
