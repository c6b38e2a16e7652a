"""A linker under test: its jobs, a worker in this process, and what is stored."""

from __future__ import annotations

import asyncio
import csv
import io
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import orjson
import structlog

from holdfast.cli.composition import discover_limits
from holdfast.clock import SystemClock, system_random
from holdfast.configuration import load_settings
from holdfast.features.console import open_console
from holdfast.features.rulings.rules import NewRuling
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control, JobFile, JobRequest
from holdfast.kernel.record.discover import WalkParts
from holdfast.kernel.worker.own_walk import OwnWalk
from holdfast.model import Job
from holdfast.observe.metrics import Metrics
from holdfast.rulings import RulingKind
from holdfast.tables.files import content_key, open_table
from holdfast.tables.plan import reading_plan
from holdfast_linker.options import LinkerOptions, mapping_text
from holdfast_linker.pipeline import Linker
from holdfast_linker.projects import Project, ProjectRules, add_project
from pipelines.linker.tests.labelled import AGENT, MAPPING
from tests.engine.one_worker import work
from tests.store.checks import spelled

HASTE = {
    "HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "true",
    "HOLDFAST_HTTP_USER_AGENT": AGENT,
    "HOLDFAST_SWEEP_SECONDS": "0.2",
    "HOLDFAST_FLUSH_SECONDS": "0.02",
    "HOLDFAST_RETRY_BASE_SECONDS": "0.05",
}
OWNER = "tester"


class LinkerScene:
    def __init__(self, store: Store, folder: Path, url: str, spacing_seconds: float = 0.0) -> None:
        self.store = store
        self.folder = folder
        self.pipeline = Linker(
            LinkerOptions(
                wikidata_url=url,
                spacing_seconds=spacing_seconds,
                batch_wait_seconds=0.005,
                concurrency=20,
            )
        )
        self.pipeline.extension = "linker"
        self.control = Control(store, OWNER, structlog.get_logger())
        self.console = open_console(store)

    async def project(self, name: str = "people", **rules: Any) -> Project:
        made: Project = await self.control.change(add_project(OWNER, name, ProjectRules(**rules)))
        return made

    async def upload(self, rows: Sequence[dict[str, str]], **options: Any) -> int:
        """A job over these rows, all of them read in."""
        path = self.folder / f"rows{len(list(self.folder.iterdir()))}.jsonl"
        path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
        file = open_table(path, {})
        mapping = {"mapping": mapping_text(MAPPING)}
        plan = reading_plan(file.detected, (), {}, {})
        over = JobFile(path.name, str(path), content_key(path), plan)
        job_id = await self.control.start(JobRequest(self.pipeline, mapping | options, over))
        settings = load_settings(HASTE)
        walk = WalkParts(
            self.store, discover_limits(settings), SystemClock(), system_random(), Metrics(),
            structlog.get_logger(),
        )  # fmt: skip
        await self.store.workers.add_worker(f"reader {job_id}", "here", 1, [])
        own = OwnWalk(walk, f"reader {job_id}", file, asyncio.Event())
        await own.run(self.pipeline, job_id)
        return job_id

    async def work(self) -> None:
        await work(self.store, self.pipeline, **HASTE)

    async def matched(self, rows: Sequence[dict[str, str]], **options: Any) -> Job:
        job_id = await self.upload(rows, **options)
        await self.work()
        return await self.store.reads.job(job_id)

    async def decide(
        self, job: Job, seq: int, kind: str, value: Any = None, version: int = 0, by: str = "ann"
    ) -> Any:
        new = NewRuling(RulingKind(kind), value, "", by, version)
        return await self.console.rulings.rule(job, seq, new, self.pipeline.ruling)

    async def fetch(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        rows = await self.store.database.fetch(spelled(self.store, sql), params or None)
        return [tuple(row) for row in rows]

    async def states(self, job: Job) -> list[tuple[Any, ...]]:
        return await self.fetch(
            "select seq, state, item, reviewer from linker_tasks where job_id = :job order by seq",
            job=job.id,
        )

    async def candidates(self, job: Job, seq: int) -> dict[str, str]:
        rows = await self.fetch(
            "select item, status from linker_candidates where job_id = :job and seq = :seq"
            " order by position",
            job=job.id,
            seq=seq,
        )
        return dict(rows)


def read_csv(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(path.read_text(encoding="utf-8-sig"))))
