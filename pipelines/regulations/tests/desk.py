"""The pipeline under test: its runs, the workers in this process, and what is stored.

The names of the world exist for these workers only: their network leads them to its port.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from holdfast.cli.composition import file_access, worker_options
from holdfast.cli.supervisor import worker_name
from holdfast.clock import Clock, SystemClock, system_random
from holdfast.configuration import load_settings
from holdfast.extension import installed
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control
from holdfast.kernel.worker.dry_discovery import dry_options
from holdfast.kernel.worker.own_files import OwnFiles
from holdfast.kernel.worker.worker import Worker
from holdfast.kernel.worker.worker_parts import WorkerParts
from holdfast.observe.metrics import Metrics
from holdfast_regulations import bodies
from holdfast_regulations.options import RegulationsOptions
from holdfast_regulations.pipeline import Regulations
from pipelines.regulations.tests.world import NAMES, PUBLIC_ADDRESS, SOURCES, RegulatoryWorld
from tests.http_client import PublicNames
from tests.store.checks import spelled

#: Short times: what is waited for comes at once or not at all.
HASTE = {
    "HOLDFAST_SWEEP_SECONDS": "0.2",
    "HOLDFAST_FLUSH_SECONDS": "0.02",
    "HOLDFAST_RETRY_BASE_SECONDS": "0.05",
}
#: No delays, as the other tests are not about them.
OPEN_GATES = "[source.gate]\nmin_delay_seconds = 0\nmax_delay_seconds = 0\nconcurrency = 8\n"


def hasty_sources(text: str = SOURCES) -> str:
    head, *tables = text.split("[[source]]")
    return head + "".join(f"[[source]]{table}\n{OPEN_GATES}" for table in tables)


class Desk:
    def __init__(
        self,
        store: Store,
        world: RegulatoryWorld,
        folder: Path,
        *,
        sources: str | None = None,
        clock: Clock | None = None,
        settings: Mapping[str, str] | None = None,
        **options: Any,
    ) -> None:
        self.store = store
        self.world = world
        self.log = structlog.get_logger()
        self.control = Control(store, "tester", self.log)
        self._file = folder / "sources.toml"
        self._file.write_text(sources if sources is not None else hasty_sources())
        self._clock = clock
        self._settings = {"HOLDFAST_DATA_DIR": str(folder), **(settings or {})}
        self._options = options
        self.pipeline = self.make()

    def make(self) -> Regulations:
        made = Regulations(self.options_for(self._file, **self._options), self._clock)
        self.give_extension(made)
        return made

    @staticmethod
    def options_for(sources: Path, **options: Any) -> RegulationsOptions:
        return RegulationsOptions(sources=str(sources), **options)

    @staticmethod
    def give_extension(made: Regulations) -> None:
        """As if the extension had created it."""
        extension = installed()["regulations"]
        made.extension, made.enabled_by = extension.name, extension.enabled_by

    async def switch(self, on: bool) -> None:
        await self.store.flags.set_flag("regulations_enabled", on, "tester")

    async def order(self, sources: str = "gazette", **request: Any) -> list[int]:
        request = {"sources": sources, **request}
        return (await self.control.request(self.pipeline, request)).job_ids

    def worker(self, *, dry: bool = False, gate_wait: float = 2.0, **settings: str) -> Worker:
        options = worker_options(load_settings({**HASTE, **self._settings, **settings}), None, True)
        options = replace(options, gate_max_wait_seconds=gate_wait)
        parts = WorkerParts(
            self.store,
            worker_name(),
            "tester",
            SystemClock(),
            system_random(),
            Metrics(),
            self.log,
            PublicNames(self.world.port, {name: [PUBLIC_ADDRESS] for name in NAMES}).checked(),
        )
        options = dry_options(options) if dry else options
        return Worker(parts, {"regulations": self.pipeline}, options)

    async def work(self, gate_wait: float = 2.0, **settings: str) -> None:
        """Until no job of the pipeline is running any more."""
        async with asyncio.timeout(60):
            await self.worker(gate_wait=gate_wait, **settings).run()

    async def run(self, sources: str = "gazette", **request: Any) -> int:
        """Orders a run, works on it, and returns its job."""
        (job_id,) = await self.order(sources, **request)
        await self.work()
        return job_id

    async def until_waiting(self, worker: Worker, reason: str) -> None:
        """Until a stream says that it waits for this; then the worker stops."""
        running = asyncio.create_task(worker.run())
        try:
            async with asyncio.timeout(20):
                while not await self.fetch(
                    "select 1 from streams where waiting_for like :reason", reason=f"%{reason}%"
                ):
                    await asyncio.sleep(0.05)
        finally:
            worker.stop()
            await running

    def due_now(self, name: str, options: dict[str, Any]) -> tuple[Any, ...]:
        """What `set_schedule` takes, for a schedule that is due."""
        return name, "regulations", "0 6 * * *", "Europe/Zagreb", options, SystemClock().now()

    @property
    def is_sqlite(self) -> bool:
        return self.store.database.driver.dialect == "sqlite"

    async def execute(self, sql: str) -> None:
        async with self.store.database.driver.transaction("test") as tx:
            await tx.execute(spelled(self.store, sql))

    async def tamper(self, sql: str) -> None:
        """As somebody would who may drop the triggers."""
        table = next(word for word in sql.split() if word.startswith("regulations_"))
        names = (
            [f"{table}_no_update", f"{table}_no_delete", f"{table}_no_replace"]
            if self.is_sqlite
            else [f"{table}_no_change", f"{table}_no_truncate"]
        )
        on = "" if self.is_sqlite else f" on holdfast.{table}"
        for name in names:
            whole = f"holdfast_{name}" if self.is_sqlite else name
            await self.execute(f"drop trigger if exists {whole}{on}")
        await self.execute(sql)

    async def age(self, days: int = 2) -> None:
        """As if all documents had been verified that long ago."""
        async with self.store.database.driver.transaction("test") as tx:
            sql = "update regulations_documents set last_verified_at = @after(:seconds)"
            await tx.execute(
                spelled(self.store, sql),
                {"seconds": -86400.0 * days},
            )

    # What is stored.

    async def fetch(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        rows = await self.store.database.fetch(spelled(self.store, sql), params or None)
        return [tuple(row) for row in rows]

    async def counters(self, job_id: int) -> Any:
        return await self.store.reads.counters(job_id)

    async def counts(self, job_id: int) -> dict[str, int]:
        rows = await self.store.database.fetch("regulations_run_counts", {"job_id": job_id})
        return {row["reason"]: row["count"] for row in rows}

    async def captures(self, path: str = "") -> list[tuple[Any, ...]]:
        """Path, status, reason and hash of each, in the order in which they were made."""
        rows = await self.fetch(
            "select url, status, reason, sha256 from regulations_captures order by id"
        )
        return [row for row in rows if row[0].endswith(path)]

    @property
    def files(self) -> OwnFiles:
        return OwnFiles(file_access(load_settings(self._settings)), "regulations")

    async def body(self, sha256: str) -> bytes:
        [row] = await self.store.database.fetch("regulations_body", {"sha256": sha256})
        return await bodies.load(row, self.files)


def paths(urls: Sequence[str]) -> list[str]:
    return [url.split("/", 3)[3] for url in urls]
