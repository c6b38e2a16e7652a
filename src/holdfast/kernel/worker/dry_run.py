"""A dry run of items: rows are processed without storing anything, audited, and stopped by kill
switches."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from holdfast.errors import SwitchedOff
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import refuse_by_hand
from holdfast.kernel.worker.worker import Worker
from holdfast.model import Job, Outcome
from holdfast.pipeline import Pipeline

_LOOK_SECONDS = 0.5


async def dry_run(
    store: Store, worker: Worker, pipeline: Pipeline, job: Job, texts: Sequence[str]
) -> list[Outcome]:
    refuse_by_hand(pipeline)
    scopes = _scopes(pipeline, job)
    await require_no_switch(store, scopes)
    subject, detail = pipeline.name, {"rows": len(texts)}
    await store.audit.add(job.owner_id, "dry_run", None, subject, detail)
    trying = asyncio.create_task(worker.try_out(job, texts))
    try:
        while not (await asyncio.wait([trying], timeout=_LOOK_SECONDS))[0]:
            await require_no_switch(store, scopes)
        return trying.result()
    finally:
        trying.cancel()
        await asyncio.wait([trying])


def _scopes(pipeline: Pipeline, job: Job) -> set[str]:
    """Returns the kill switches that stop it: a dry run may reach every source and gate of its
    pipeline."""
    names = {gate.name for gate in pipeline.gates} | set(_sources(pipeline, job))
    return {"all", f"pipeline:{pipeline.name}"} | {f"source:{name}" for name in names}


def _sources(pipeline: Pipeline, job: Job) -> Sequence[str]:
    if not pipeline.discovers:
        return ()
    try:
        return pipeline.sources(job.options)
    except Exception:  # the user's code; the options for discovery need not be given here
        return ()


async def require_no_switch(store: Store, scopes: set[str]) -> None:
    for switch in await store.reads.kill_switches():
        if switch["scope"] in scopes:
            raise SwitchedOff(
                f"the kill switch {switch['scope']} is on: {switch['reason'] or 'no reason given'}",
                "An admin can turn it off: holdfast kill-switch off.",
            )
