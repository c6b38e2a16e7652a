"""Frees, finishes and removes what nobody else does."""

from __future__ import annotations

from holdfast.kernel import Store
from holdfast.kernel.worker.upkeep.parts import UpkeepParts

#: Chunks of expired cache entries that one sweep removes.
_PRUNES = 20


async def sweep(parts: UpkeepParts) -> None:
    """Frees what no living worker holds, ends finished jobs that were not ended, and removes ranges
    of cancelled jobs and old rows. Does nothing while another process has the duty."""
    store = parts.store
    if not await store.workers.hold_duty("sweep", parts.holder):
        return
    rescued = await store.workers.free_left_behind()
    finished = await store.reads.finishable_jobs()
    for job_id in {*rescued, *finished}:
        await store.outcomes.complete(job_id)
    cancelled = await store.reads.cancelled_jobs_with_ranges()
    for job_id in cancelled:
        await store.jobs.drop_ranges(job_id)
    await store.workers.forget_workers()
    await store.samples.take_samples()
    await store.counter_rows.fold()
    await _prune_cache(store)
    await store.gates.forget_passes()
    if rescued or cancelled:
        parts.log.info("sweep.acted", rescued=rescued, cancelled=cancelled)


async def _prune_cache(store: Store) -> None:
    for _ in range(_PRUNES):
        if not await store.cache.prune_cache():
            return
