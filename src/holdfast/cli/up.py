"""`holdfast up`: API, pages, timers and workers under one supervisor; with --demo, a world too."""

from __future__ import annotations

import asyncio
import os
import signal
import socket
from contextlib import suppress
from pathlib import Path

import structlog
import typer

from holdfast.cli.composition import (
    ensure_schema,
    opened_store,
    run_async,
    settings_from_environment,
)
from holdfast.cli.keeping import Kept
from holdfast.cli.listening import listening
from holdfast.cli.loading import load_all
from holdfast.cli.output import errors
from holdfast.cli.supervising import Supervisor
from holdfast.clock import SystemClock
from holdfast.console import open_console
from holdfast.console.files import NewFile
from holdfast.demo.part import Sample, demo_parts
from holdfast.engine.control import NO_CAPS, Asked, Control
from holdfast.errors import UserError
from holdfast.pipeline import Pipeline
from holdfast.settings import Settings
from holdfast.store import Store
from holdfast.tables.files import content_key

_DEMO_DIR = ".holdfast/demo"
_LIST = "shopping-list.csv"
_DEMO_NAMES = {"SKU no.": "sku", "Product title": "title", "Brand": "brand"}


def register(app: typer.Typer) -> None:
    app.command("up")(up)


def up(
    pipelines: list[str] = typer.Argument(
        None, metavar="[PIPELINE.py …]", help="Whose pipelines jobs can be made of."
    ),
    demo: bool = typer.Option(
        False, "--demo", help="Add a small world of flaky upstreams with sample data and jobs."
    ),
    host: str = typer.Option("127.0.0.1", "--host", help="The address to listen at."),
    port: int = typer.Option(8000, "--port", min=1, max=65535, help="The port."),
    workers: int | None = typer.Option(
        None, "--workers", min=1, max=256, help="Worker processes; else HOLDFAST_WORKERS."
    ),
) -> None:
    """Run everything on this host: pages, API, timers and workers, and print a login link.

    Ctrl-C stops all of it cleanly; a process that dies is started again.
    """
    references = list(pipelines or [])
    # The server is a process of its own; what it cannot have is said before anything is begun.
    listening(host, port).close()
    world_port = _prepare_demo(port + 1) if demo else None
    if demo:
        references += [each for each in (_demo_file(), *demo_parts()) if each not in references]
    settings = settings_from_environment()
    loaded = load_all(references, settings)
    ensure_schema(settings)
    run_async(_run(settings, references, loaded, host, port, workers, world_port))


def _prepare_demo(wanted: int) -> int:
    """The children inherit what the demo needs; what somebody set stays."""
    world_port = _free_port(wanted)
    os.environ.setdefault("HOLDFAST_DATA_DIR", _DEMO_DIR)
    os.environ.setdefault("HOLDFAST_LOG_LEVEL", "error")  # the upstreams fail on purpose
    os.environ["HOLDFAST_ALLOW_PRIVATE_ADDRESSES"] = "true"
    os.environ["DEMO_WORLD_URL"] = f"http://127.0.0.1:{world_port}"
    for name, part in demo_parts().items():
        os.environ.update(part.environment(f"http://127.0.0.1:{world_port}/{name}"))
    return world_port


def _free_port(wanted: int) -> int:
    """The same at every start if it can be: gates are named by it."""
    for port in (wanted, 0):
        with suppress(OSError, OverflowError), socket.create_server(("127.0.0.1", port)) as found:
            return int(found.getsockname()[1])
    raise UserError("no port is free on the loopback address")


def _demo_file() -> str:
    from holdfast import demo

    return str(Path(demo.__file__).parent / "pipelines.py")


async def _run(
    settings: Settings,
    references: list[str],
    loaded: dict[str, Pipeline],
    host: str,
    port: int,
    workers: int | None,
    world_port: int | None,
) -> None:
    log, clock = structlog.get_logger(), SystemClock()
    address = ["--host", host, "--port", str(port)]
    kept = [
        Kept("the server", ["holdfast", "api", *references, *address, "--supervised"], clock, log)
    ]
    if references:
        arguments = ["holdfast", "timers", *references, "--supervised"]
        kept.append(Kept("timers", arguments, clock, log))
    if world_port is not None:
        kept.append(Kept("the world", ["holdfast.demo.world", str(world_port)], clock, log))
    async with opened_store(settings) as store:
        if world_port is not None:
            await _fill(store, loaded, settings, log)
        count = (workers or settings.workers) if references else 0
        supervisor = Supervisor(store, references, count, settings.drain_seconds, None, log)
        await _until_stopped(kept, supervisor)
    errors.print("Stopped.")


async def _until_stopped(kept: list[Kept], supervisor: Supervisor) -> None:
    """Until somebody stops it, or one of the processes cannot be started at all."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stopped.set)
    working = asyncio.create_task(supervisor.run())
    running = [asyncio.create_task(each.run()) for each in kept]
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait([waiting, *running], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    await asyncio.gather(supervisor.stop(), *(each.stop() for each in kept))
    await asyncio.gather(working, *running)


async def _fill(store: Store, loaded: dict[str, Pipeline], settings: Settings, log: object) -> None:
    """Jobs to look at, unless there are some."""
    from holdfast.demo.goods import write_shopping_list

    path = (settings.data_dir / _LIST).resolve()
    write_shopping_list(path)
    errors.print(f"A list to upload yourself: {path}", markup=False)
    control = Control(store, "admin", log)
    if not await open_console(store).jobs.page(None, 1):
        await _start_jobs(store, control, loaded, path)
    for name, part in demo_parts().items():
        await part.fill(Sample(control, loaded[name], store.database.fetch))


async def _start_jobs(
    store: Store, control: Control, loaded: dict[str, Pipeline], path: Path
) -> None:
    key = content_key(path)
    detected = {"format": "csv", "columns": list(_DEMO_NAMES), "notes": []}
    new = NewFile("admin", path.name, "upload", str(path), path.stat().st_size, key, detected)
    asked = Asked(file_id=await open_console(store).files.add_file(new))
    table = {"names": _DEMO_NAMES}
    await control.start_upload(loaded["prices"], path, key, table, {}, NO_CAPS, asked=asked)
    await control.start_discovery(loaded["catalogue"], {})
