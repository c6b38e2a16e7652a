"""Removes what is older than the policies keep, a bounded amount at a time."""

from __future__ import annotations

from collections import deque
from typing import Any, NamedTuple

from holdfast.features.deletion.deleter import Deleter
from holdfast.features.deletion.job_rows import JobRows
from holdfast.features.deletion.retention_rows import Policies, RetentionRows, ago
from holdfast.kernel import Store

_ROUNDS = 50
_CHUNKS = 100
_JOBS = 20
_MANY = 10**9


class Kept(NamedTuple):
    """A policy, and how much it would remove now."""

    what: str
    keeps: str
    removes: int | None


class Retention:
    def __init__(self, store: Store, deleter: Deleter, policies: Policies, log: Any) -> None:
        self._store = store
        self._rows = RetentionRows(store.database)
        self._job_rows = JobRows(store.database)
        self._deleter = deleter
        self._policies = policies
        self._log = log

    async def apply(self) -> None:
        """Runs one round; what is left after it goes in the next."""
        policies, rows = self._policies, self._rows
        jobs = await self._old_jobs(_JOBS)
        for job_id in jobs:
            await self._deleter.begin(job_id, "retention")
        await self._deleter.look()
        items = await self._remove_items()
        for _ in range(_ROUNDS):
            if not await rows.drop_old_decisions(policies.decisions_days):
                break
        await rows.drop_old_samples(policies.samples_days)
        await self._store.taken_keys.forget_keys(-ago(policies.keys_days)["ago"])
        files, exports = await self._drop_files(), await self._drop_exports()
        audit, pruned = await self._prune_audit(), await self._prune_passes()
        if jobs or items or files or exports or audit or pruned:
            self._log.info(
                "retention.applied", jobs=len(jobs), items=items, files=files, exports=exports,
                audit=audit, pruned=pruned,
            )  # fmt: skip

    async def _old_jobs(self, limit: int) -> list[int]:
        days = self._policies.jobs_days
        return [] if days is None else await self._rows.old_jobs(days, limit)

    async def _remove_items(self) -> int:
        """Removes finished items of standing jobs, a chunk of each in turn."""
        if self._policies.items_days is None:
            return 0
        waiting = deque(await self._rows.old_items(self._policies.items_days))
        removed = 0
        for _ in range(max(_CHUNKS, len(waiting))):
            if not waiting:
                break
            count, following = await self._rows.remove_items(waiting.popleft())
            removed += count
            if following is not None:
                waiting.append(following)
        return removed

    async def _drop_files(self) -> int:
        if self._policies.files_days is None:
            return 0
        files = await self._rows.old_files(self._policies.files_days, _ROUNDS)
        dropped = 0
        for file in files:
            if await self._rows.mark_old_file(file):
                await self._deleter.remove(file["key"])
                await self._rows.drop_file(file)
                dropped += 1
        return dropped

    async def _drop_exports(self) -> int:
        if self._policies.exports_days is None:
            return 0
        exports = await self._rows.old_exports(self._policies.exports_days, _ROUNDS)
        for export in exports:
            if export["key"] is not None:
                await self._deleter.remove(export["key"])
            await self._rows.drop_export(export)
        return len(exports)

    async def _prune_audit(self) -> int:
        """Prunes the audit log a day late, so that its own note of it is written once a day and not
        all the time."""
        days = self._policies.audit_days
        if days is None or not await self._rows.count("count_old_audit", **ago(days + 1)):
            return 0
        return await self._store.audit.prune_audit(-ago(days)["ago"], "retention")

    async def _prune_passes(self) -> int:
        """Prunes the items of passes that a later, verified one has made obsolete."""
        jobs = await self._rows.superseded_jobs(_JOBS)
        for job_id in jobs:
            await self._rows.mark_pruned(job_id)
        for job_id in await self._rows.pruned_jobs_with_items(_JOBS):
            for _ in range(_ROUNDS):
                if not await self._job_rows.delete_items(job_id):
                    break
        return len(jobs)

    async def preview(self) -> list[Kept]:
        """Returns what each policy would remove now."""
        policies, rows = self._policies, self._rows
        kept = [Kept("jobs", _days(policies.jobs_days), len(await self._old_jobs(_MANY)))]
        for what, days, query in (
            ("items of standing jobs", policies.items_days, "count_old_items"),
            ("decisions", policies.decisions_days, "count_old_decisions"),
            ("keys", policies.keys_days, "count_old_keys"),
            ("audit", policies.audit_days, "count_old_audit"),
        ):
            count = 0 if days is None else await rows.count(query, **ago(days))
            kept.append(Kept(what, _days(days), count))
        return [*kept, *await self._preview_others()]

    async def _preview_others(self) -> list[Kept]:
        policies, rows = self._policies, self._rows
        files = exports = 0
        bucket = await rows.sample_bucket(policies.samples_days)
        samples = await rows.count("count_old_samples", bucket=bucket)
        if policies.files_days is not None:
            files = len(await rows.old_files(policies.files_days, _MANY))
        if policies.exports_days is not None:
            exports = len(await rows.old_exports(policies.exports_days, _MANY))
        superseded = len(await rows.superseded_jobs(_MANY))
        return [
            Kept("samples", _days(policies.samples_days), samples),
            Kept("files", _days(policies.files_days), files),
            Kept("exports", _days(policies.exports_days), exports),
            Kept("items of earlier passes", "until a later pass is verified", superseded),
        ]


def _days(days: float | None) -> str:
    return "everything" if days is None else f"{days:,.12g} days"
