"""`holdfast up`: API, pages, timers and workers under one supervisor, with demo data if wanted."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from hashlib import sha256
from pathlib import Path
from typing import Any

import structlog
import typer

from holdfast.cli.arguments import HOST, OFFERED_PIPELINES
from holdfast.cli.composition import file_access
from holdfast.cli.demo_messages import DemoMessages
from holdfast.cli.opening import opened_store, run_async, settings_from_environment, wait_for_schema
from holdfast.cli.output import errors
from holdfast.cli.pipelines import load_all
from holdfast.cli.serve import listen
from holdfast.cli.served_flags import extensions_of, served_flags
from holdfast.cli.signals import STOP_SIGNALS
from holdfast.cli.supervisor import Child, Service, Supervisor, WorkerSetup
from holdfast.clock import SystemClock
from holdfast.columns import column_mapping
from holdfast.configuration import Settings
from holdfast.demo.part import Sample, demo_parts
from holdfast.errors import UserError
from holdfast.features.console import open_console
from holdfast.features.library.files import NewFile
from holdfast.features.switches.flags import FeatureFlags
from holdfast.files import FileAccess
from holdfast.files.contract import new_key
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control, JobFile, JobRequest
from holdfast.pipeline import Pipeline
from holdfast.stored_files import UPLOADS

_STOP_SECONDS = 6.5  # the server takes up to five to finish its requests
_DEMO_DIR = ".holdfast/demo"
_LIST = "shopping-list.csv"
_DEMO_NAMES = {"SKU no.": "sku", "Product title": "title", "Brand": "brand"}


def register(app: typer.Typer) -> None:
    app.command("up")(up)


def up(
    pipelines: list[str] = OFFERED_PIPELINES,
    demo: bool = typer.Option(
        False, "--demo", help="Add sample data, sample jobs and unreliable servers to fetch from."
    ),
    host: str = HOST,
    port: int = typer.Option(8000, "--port", min=1, max=65535, help="Port to listen on."),
    workers: int | None = typer.Option(
        None,
        "--workers",
        min=1,
        max=256,
        help="Number of worker processes. Default: HOLDFAST_WORKERS.",
    ),
) -> None:
    """Run everything on this host: pages, API, timers and workers. Prints a login link.

    With HOLDFAST_BROKER_URL set, it runs a relay too.

    Ctrl-C stops all of it cleanly; processes that die are restarted.
    """
    references = list(pipelines or [])
    # The server is a separate process; report a port in use before starting anything.
    listen(host, port).close()
    world_port = _prepare_demo(port + 1) if demo else None
    if demo:
        references += [part for part in (_demo_file(), *demo_parts()) if part not in references]
    settings = settings_from_environment()
    loaded = load_all(references, settings)
    wait_for_schema(settings, settings.health.port, extensions_of(loaded))
    run_async(_run(settings, references, loaded, host, port, workers, world_port))


def _prepare_demo(wanted: int) -> int:
    """Sets what the child processes need for the demo, unless the user has set it."""
    world_port = _free_port(wanted)
    os.environ.setdefault("HOLDFAST_DATA_DIR", _DEMO_DIR)
    os.environ.setdefault("HOLDFAST_LOG_LEVEL", "error")  # the demo servers fail on purpose
    os.environ["HOLDFAST_ALLOW_PRIVATE_ADDRESSES"] = "true"
    os.environ["DEMO_WORLD_URL"] = f"http://127.0.0.1:{world_port}"
    folder = Path(os.environ["HOLDFAST_DATA_DIR"]).resolve()
    folder.mkdir(parents=True, exist_ok=True)
    for name, part in demo_parts().items():
        url = f"http://127.0.0.1:{world_port}/{name}"
        os.environ.update(part.environment(url))
        for setting, (file, text) in part.files(url).items():
            (folder / file).write_text(text)
            os.environ[setting] = str(folder / file)
    return world_port


def _free_port(wanted: int) -> int:
    """Returns a free port, the same at every start if possible, because gates are named by it."""
    for port in (wanted, 0):
        with suppress(OSError, OverflowError), socket.create_server(("127.0.0.1", port)) as server:
            return int(server.getsockname()[1])
    raise UserError("no port on the loopback address is free")


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
    server = ["holdfast", "api", *references, "--host", host, "--port", str(port), "--supervised"]
    children: list[Child] = [Service("the server", server, clock, log)]
    if references:
        timers = ["holdfast", "timers", *references, "--supervised"]
        children.append(Service("timers", timers, clock, log))
    if settings.broker_url is not None:
        relay = ["holdfast", "relay", "--supervised"]
        children.append(Service("the relay", relay, clock, log))
    if world_port is not None:
        world = ["holdfast.demo.world", str(world_port)]
        children.append(Service("the demo servers", world, clock, log))
    async with opened_store(settings) as store:
        if world_port is not None:
            await _fill(store, loaded, settings, log)
        if references:
            setup = WorkerSetup(references, until_idle=False)
            children += setup.children(store, workers or settings.workers, log)
        await _run_until_stopped(Supervisor(children, max(settings.drain_seconds, _STOP_SECONDS)))
    errors.print("Stopped.")


async def _run_until_stopped(supervisor: Supervisor) -> None:
    """Runs until the user stops it, or one of the processes cannot be started."""
    stopped = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in STOP_SIGNALS:
        loop.add_signal_handler(number, stopped.set)
    running = asyncio.create_task(supervisor.run())
    waiting = asyncio.create_task(stopped.wait())
    await asyncio.wait([waiting, running], return_when=asyncio.FIRST_COMPLETED)
    waiting.cancel()
    await supervisor.stop()
    await running


async def _fill(store: Store, loaded: dict[str, Pipeline], settings: Settings, log: object) -> None:
    """Creates sample jobs, unless there are jobs already."""
    from holdfast.demo.goods import write_shopping_list

    path = (settings.data_dir / _LIST).resolve()
    write_shopping_list(path)
    errors.print(f"Sample file to upload: {path}", markup=False)
    control = Control(store, "admin", log)
    uploads = _Uploads(store, control, file_access(settings))
    if not await open_console(store).jobs.page(None, 1):
        table = {"names": _DEMO_NAMES}
        content = path.read_bytes()
        await uploads.start(loaded["prices"], path.name, content, list(_DEMO_NAMES), table, {})
        await control.start(JobRequest(loaded["catalogue"], by_admin=True))
    await _switch_on(store, settings, loaded)
    for name, part in demo_parts().items():
        upload = partial(uploads.start_csv, loaded[name])
        messages = DemoMessages(store, settings, loaded[name], log)
        await part.fill(Sample(control, loaded[name], store.fetch, upload, messages.take))


async def _switch_on(store: Store, settings: Settings, pipelines: Mapping[str, Pipeline]) -> None:
    """Switches on in the demo what is off after installation, unless a person has decided."""
    served = served_flags(settings, extensions_of(pipelines))
    flags = FeatureFlags(open_console(store), served)
    enabling = {pipeline.enabled_by for pipeline in pipelines.values()}
    for flag in await flags.all():
        if flag.name in enabling and flag.actor is None:
            await flags.change(flag.name, True, "admin")


@dataclass(frozen=True, slots=True)
class _Uploads:
    """Starts jobs over files that the demo brings."""

    store: Store
    control: Control
    files: FileAccess

    async def start_csv(
        self, pipeline: Pipeline, name: str, text: str, options: Mapping[str, Any]
    ) -> int:
        columns = text.partition("\n")[0].split(",")
        table = {"names": column_mapping(columns, pipeline.inputs)}
        return await self.start(pipeline, name, text.encode(), columns, table, options)

    async def start(
        self,
        pipeline: Pipeline,
        name: str,
        content: bytes,
        columns: Sequence[str],
        table: Mapping[str, Any],
        options: Mapping[str, Any],
    ) -> int:
        key, stored = sha256(content).hexdigest(), new_key(UPLOADS)
        await self.files.store.put(stored, content, max_bytes=self.files.max_bytes)
        detected = {"format": "csv", "columns": list(columns), "notes": []}
        new = NewFile("admin", name, "upload", stored, len(content), key, detected)
        file_id = await open_console(self.store).files.add_file(new)
        file = JobFile(name, stored, key, table, file_id=file_id)
        return await self.control.start(JobRequest(pipeline, options, file))
