"""Carries out deletions of jobs, wherever they were requested and however often they were
interrupted."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

from holdfast.features.deletion.job_rows import JobRows
from holdfast.kernel import Store
from holdfast.model import JobState
from holdfast.stored_files import FileInfo, files_of_job

#: Removes the bytes under a key of the file store; nothing happens if they are gone.
Remove = Callable[[str], Awaitable[None]]
#: Lists the files of the file store whose keys begin with a prefix.
ListFiles = Callable[[str], AsyncIterator[FileInfo]]


async def no_files(prefix: str) -> AsyncIterator[FileInfo]:
    """Lists nothing: the files of a store in which pipelines keep none."""
    nothing: tuple[FileInfo, ...] = ()
    for info in nothing:
        yield info


class Deleter:
    """Deletes jobs for its process; two processes that delete the same job take turns at its
    row."""

    def __init__(
        self, store: Store, remove: Remove, log: Any, list_files: ListFiles = no_files
    ) -> None:
        self._store = store
        self._job_rows = JobRows(store.database)
        self.remove = remove
        self._list_files = list_files
        self._log = log

    async def begin(self, job_id: int, actor: str) -> JobState:
        """Commits to deleting the job. The rest is done by `look`, here or in another process."""
        state = await self._job_rows.mark(job_id, actor)
        await self._store.jobs.drop_ranges(job_id)
        self._log.info("job.deleting", job_id=job_id, by=actor)
        return state

    async def look(self) -> None:
        """Deletes all jobs that are to be deleted, and what applications added to those that are
        gone."""
        rows = self._job_rows
        for job_id in await rows.deleting_jobs():
            await self.delete(job_id)
        for job_id in await rows.jobs_left_behind():
            while await rows.delete_left_behind(job_id):
                pass

    async def delete(self, job_id: int) -> None:
        """Deletes a job in DELETING to its end."""
        rows = self._job_rows
        # The process that marked it may have died before it removed the ranges.
        await self._store.jobs.drop_ranges(job_id)
        exports = await rows.export_keys(job_id)
        for key in exports:
            await self.remove(key)
        await self._remove_files(job_id)
        more = True
        while more:
            more = await rows.delete_chunk(job_id)
        late = await rows.finish_deletion(job_id)
        for key in set(late or ()).difference(exports):
            await self.remove(key)
        if late is not None:
            self._log.info("job.deleted", job_id=job_id)

    async def _remove_files(self, job_id: int) -> None:
        """Removes the files that its pipeline kept for the job alone."""
        pipeline = await self._job_rows.pipeline_of(job_id)
        if pipeline is not None:
            prefix = files_of_job(pipeline, job_id)
            for key in [info.key async for info in self._list_files(prefix)]:
                await self.remove(key)
