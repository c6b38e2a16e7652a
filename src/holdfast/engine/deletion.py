"""Carries out deletions of jobs, wherever they were asked for and however often interrupted."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from holdfast.model import JobState
from holdfast.store import Store

#: Removes the bytes under a key of the file store; nothing happens if they are gone.
Remove = Callable[[str], Awaitable[None]]


class Deleter:
    """One for each process; two that delete the same job take turns at its row."""

    def __init__(self, store: Store, remove: Remove, log: Any) -> None:
        self._store = store
        self.remove = remove
        self._log = log

    async def begin(self, job_id: int, actor: str) -> JobState:
        """Commits to deleting the job. The rest is done by `look`, here or in another process."""
        state = await self._store.deletion.mark(job_id, actor)
        await self._store.jobs.drop_ranges(job_id)
        self._log.info("job.deleting", job_id=job_id, by=actor)
        return state

    async def look(self) -> None:
        """Deletes all jobs that are to be deleted, and what applications added to those that are
        gone."""
        deletion = self._store.deletion
        for job_id in await deletion.deleting_jobs():
            await self.delete(job_id)
        for job_id in await deletion.jobs_left_behind():
            while await deletion.delete_left_behind(job_id):
                pass

    async def delete(self, job_id: int) -> None:
        """Deletes a job in DELETING to its end."""
        deletion = self._store.deletion
        # The process that marked it may have died before it removed the ranges.
        await self._store.jobs.drop_ranges(job_id)
        for key in await deletion.export_keys(job_id):
            await self.remove(key)
        more = True
        while more:
            more = await deletion.delete_chunk(job_id)
        if await deletion.finish_deletion(job_id):
            self._log.info("job.deleted", job_id=job_id)
