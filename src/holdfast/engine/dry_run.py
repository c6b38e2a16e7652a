"""A dry run: rows worked on without keeping anything, audited, and stopped by kill switches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.engine.control import refuse_planning
from holdfast.engine.worker import Worker
from holdfast.errors import UnfitState
from holdfast.model import Job, Outcome
from holdfast.pipeline import Pipeline
from holdfast.store import Store

_LOOK_SECONDS = 0.5


async def dry_run(
    store: Store, worker: Worker, pipeline: Pipeline, job: Job, texts: Sequence[str]
) -> list[Outcome]:
    refuse_planning(pipeline)
    await _require_no_switch(store, pipeline.name)
    subject, detail = pipeline.name, {"rows": len(texts)}
    await store.audit.add(job.owner_id, "dry_run", None, subject, detail)
    trying = asyncio.create_task(worker.try_out(job, texts))
    try:
        while not (await asyncio.wait([trying], timeout=_LOOK_SECONDS))[0]:
            await _require_no_switch(store, pipeline.name)
        return trying.result()
    finally:
        trying.cancel()
        await asyncio.wait([trying])


async def _require_no_switch(store: Store, pipeline: str) -> None:
    scopes = ("all", f"pipeline:{pipeline}")
    for switch in await store.reads.kill_switches():
        if switch["scope"] in scopes:
            raise UnfitState(
                f"the kill switch {switch['scope']} is on: {switch['reason'] or 'no reason given'}",
                "An admin can turn it off: holdfast kill-switch off.",
            )
