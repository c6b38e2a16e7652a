"""`holdfast api`: serves the pages and the HTTP API."""

from __future__ import annotations

import errno
import socket

import typer

from holdfast.cli.arguments import HOST, OFFERED_PIPELINES
from holdfast.cli.opening import run_async, settings_from_environment, wait_for_schema
from holdfast.cli.pipelines import load_all
from holdfast.cli.served_flags import extensions_of
from holdfast.errors import UserError

#: Connections are accepted before the first can be refused, so this must stay well below the limit
#: on open files.
BACKLOG = 256


def register(app: typer.Typer) -> None:
    app.command("api")(api)


def api(
    pipelines: list[str] = OFFERED_PIPELINES,
    host: str = HOST,
    port: int = typer.Option(
        8000, "--port", min=0, max=65535, help="Port to listen on; 0 picks a free one."
    ),
    supervised: bool = typer.Option(False, "--supervised", hidden=True),
) -> None:
    """Serve the pages and the HTTP API. `holdfast work` processes the jobs."""
    # Only here: other commands should not wait for imports that only a server needs.
    from holdfast.cli.server import serve

    settings = settings_from_environment()
    loaded = load_all(pipelines or [], settings)
    wait_for_schema(settings, settings.health.port, extensions_of(loaded))
    run_async(serve(settings, loaded, host, port, supervised))


def listen(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        in_use = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
        raise UserError(
            f"cannot listen on {host}:{port}: "
            f"{'another program is listening there' if in_use else error}",
            "Choose another port with --port (make up PORT=8080), or stop that program.",
        ) from error
