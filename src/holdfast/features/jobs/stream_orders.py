"""Orders about streams: resume one that stopped, and read one again from the beginning."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from holdfast.features.accounts.person import Person
from holdfast.features.jobs.new_jobs import NewJobs
from holdfast.kernel.arrivals.idempotency import RequestKey
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.kernel.record.streams import StreamView
from holdfast.model import Job

if TYPE_CHECKING:
    from holdfast.features.console import Console


@dataclass(frozen=True, slots=True)
class StreamOrders:
    """The orders of one person."""

    console: Console
    new_jobs: NewJobs
    control: Control
    person: Person

    async def resume(self, stream_id: int) -> int:
        """Continues its job from the stream's cursor, after a failure or at a cap; returns the
        job's number."""
        job_id = await self.console.streams.job_of(stream_id, self.person.scope)
        await self.control.resume(job_id, quota=self.console.quotas.of_jobs)
        return job_id

    async def of(self, stream_id: int) -> tuple[StreamView, Job]:
        """Returns a stream that the person may see, and the job that read it last."""
        job_id = await self.console.streams.job_of(stream_id, self.person.scope)
        streams = await self.console.store.streams.of_job(job_id)
        stream = next(stream for stream in streams if stream.id == stream_id)
        return stream, await self.console.store.reads.job(job_id)

    async def force_full(
        self, stream_id: int, ip: str | None, key: RequestKey | None
    ) -> tuple[int, bool]:
        """Starts a new generation of the stream in a job of its own.

        Returns the job's number; or, with False, that of the job that reads the stream now, after
        which it starts."""
        stream, job = await self.of(stream_id)
        request = JobRequest(
            self.new_jobs.pipeline(job.pipeline),
            take_over=self.person.is_admin,
            by_admin=self.person.is_admin,
            quota=self.console.quotas.of_jobs,
            ip=ip,
            key=key,
        )
        started = await self.control.force_full(request, job, stream.source)
        return (started[-1], True) if started else (job.id, False)
