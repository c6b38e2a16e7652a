"""A municipality under test: its backfills, the workers in this process, and what is stored."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import structlog

from holdfast.cli.composition import worker_options
from holdfast.cli.supervisor import worker_name
from holdfast.clock import SystemClock, system_random
from holdfast.configuration import load_settings
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control
from holdfast.kernel.worker.worker import Worker
from holdfast.kernel.worker.worker_parts import WorkerParts
from holdfast.observe.metrics import Metrics
from holdfast_meetings.options import MeetingsOptions
from holdfast_meetings.pipeline import Meetings
from tests.store.checks import spelled

#: Short times: what is waited for comes at once or not at all.
HASTE = {
    "HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "true",
    "HOLDFAST_HTTP_OBEY_ROBOTS": "false",
    "HOLDFAST_SWEEP_SECONDS": "0.2",
    "HOLDFAST_FLUSH_SECONDS": "0.02",
    "HOLDFAST_RETRY_BASE_SECONDS": "0.05",
}


class Town:
    def __init__(
        self, store: Store, url: str, subdomain: str = "alameda.ca", **options: Any
    ) -> None:
        defaults: dict[str, Any] = {
            "page_size": 100,
            "rebuild_seconds": 0.05,
            "webhook_secret": "s3cret",
        }
        self.store = store
        self.url = url
        self.subdomain = subdomain
        self.pipeline = Meetings(MeetingsOptions(**(defaults | options)))
        self.log = structlog.get_logger()
        self.control = Control(store, "tester", self.log)

    async def ask(self, request: Mapping[str, Any]) -> Any:
        return (await self.control.request(self.pipeline, request)).answer

    async def add(self, **fields: Any) -> None:
        await self.ask({"add": {"subdomain": self.subdomain, "url": self.url, **fields}})

    async def order(self, **request: Any) -> list[dict[str, Any]]:
        answer: list[dict[str, Any]] = await self.ask({"backfill": self.subdomain, **request})
        return answer

    async def webhook(self, **fields: Any) -> Any:
        fields = {"subdomain": self.subdomain, "name": "Alameda", "url": self.url, **fields}
        return await self.ask({"webhook": fields})

    def worker(self, **settings: str) -> Worker:
        options = worker_options(load_settings({**HASTE, **settings}), None, True)
        parts = WorkerParts(
            self.store,
            worker_name(),
            "tester",
            SystemClock(),
            system_random(),
            Metrics(),
            self.log,
        )
        return Worker(parts, {"meetings": self.pipeline}, options)

    async def work(self, **settings: str) -> None:
        """Until no job of the pipeline is running any more."""
        async with asyncio.timeout(60):
            await self.worker(**settings).run()

    async def backfill(self, **request: Any) -> list[dict[str, Any]]:
        decisions = await self.order(**request)
        await self.work()
        return decisions

    # What is stored.

    async def fetch(self, sql: str, **params: Any) -> list[tuple[Any, ...]]:
        rows = await self.store.database.fetch(spelled(self.store, sql), params or None)
        return [tuple(row) for row in rows]

    async def pages(self, table: str = "minutes", *, vanished: bool = False) -> set[Any]:
        """Meeting, date, number, text and upstream id of each page that is shown."""
        rows = await self.fetch(
            "select d.meeting, d.date, p.number, p.text, p.upstream_id"
            " from meetings_pages p join meetings_documents d on d.id = p.document_id"
            " join meetings_municipalities m on m.id = p.municipality_id"
            " where m.subdomain = :subdomain and p.document_type = :type"
            f" and p.vanished_at is {'not ' if vanished else ''}null",
            subdomain=self.subdomain,
            type="agenda" if table == "agendas" else "minutes",
        )
        assert len(rows) == len(set(rows))
        return set(rows)

    async def stream(self, table: str = "minutes", mode: str = "full") -> dict[str, Any]:
        kind = "agenda" if table == "agendas" else "minutes"
        names = (
            "state",
            "generation",
            "job_id",
            "job_state",
            "expected",
            "actual",
            "verified_at",
            "full_completed_at",
            "error",
            "force_full",
            "rerun",
            "pages_count",
            "cursor",
        )
        rows = await self.fetch(
            "select s.state, s.generation, s.job_id, j.state, s.expected_count, s.actual_count,"
            " s.verified_at, s.full_completed_at, s.error, s.force_full, s.rerun_requested,"
            " s.pages_count, s.cursor"
            " from streams s join jobs j on j.id = s.job_id"
            " where s.source = :source and s.mode = :mode",
            source=f"{self.subdomain}:{kind}",
            mode=mode,
        )
        assert len(rows) == 1, rows
        return dict(zip(names, rows[0], strict=True))

    async def counts(self, job_id: int) -> dict[str, int]:
        names = (
            "documents_created",
            "documents_updated",
            "documents_unchanged",
            "created",
            "updated",
            "unchanged",
            "rejected",
        )
        rows = await self.store.database.fetch("meetings_counts", {"job_id": job_id})
        return dict(zip(names, rows[0], strict=True))

    async def jobs(self) -> list[tuple[Any, ...]]:
        """Name and state of every job, in the order of their making."""
        return await self.fetch("select name, state from jobs order by id")

    async def assert_verified(self, table: str = "minutes", mode: str = "full") -> None:
        stream = await self.stream(table, mode)
        assert stream["state"] == "COMPLETE" and stream["job_state"] == "DONE", stream["error"]
        assert stream["verified_at"] is not None and stream["full_completed_at"] is not None
        assert stream["expected"] == stream["actual"]
