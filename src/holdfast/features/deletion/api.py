"""Deletes a job, a file, an export, or an account with everything that belongs to it."""

from __future__ import annotations

from fastapi import APIRouter, Response
from pydantic import Field

from holdfast.features.accounts.shapes import NameInPath
from holdfast.features.jobs.scoped_job import ScopedJob
from holdfast.features.jobs.shapes import describe_job
from holdfast.server.identity import Admin, Operator, PartsOf, Someone, require_session
from holdfast.server.shapes import Id, JobShape, Shape

router = APIRouter(prefix="/api", tags=["deletion"])


class DeletedUser(Shape):
    name: str = Field(examples=["ada"])
    state: str = Field(examples=["DELETING"])


@router.delete("/jobs/{jobId}", status_code=202, summary="Delete a job")
async def delete_job(job: ScopedJob, person: Operator, parts: PartsOf) -> JobShape:
    """Its items, outcomes, keys, exports and the rows of its pipeline go with it; its entries in
    the audit log stay. Responds when the job is DELETING; the rest is deleted in the background,
    and `why` says how much is left. When nothing is left, the job no longer exists."""
    await parts.deletions.jobs.begin(job.id, person.name)
    return await describe_job(await parts.store.reads.job(job.id), person, parts)


@router.delete("/files/{file_id}", status_code=204, summary="Delete a stored file")
async def delete_file(file_id: Id, person: Operator, parts: PartsOf) -> Response:
    """The file stays while an unfinished job may read it.

    Jobs over images read them whenever an item is processed: delete those jobs first."""
    await parts.deletions.delete_file(file_id, person.scope, person.name)
    return Response(status_code=204)


@router.delete("/exports/{export_id}", status_code=204, summary="Delete an export")
async def delete_export(export_id: Id, person: Someone, parts: PartsOf) -> Response:
    await parts.deletions.delete_export(export_id, person.own_scope, person.name)
    return Response(status_code=204)


@router.delete("/users/{name}", status_code=202, summary="Delete an account and its data")
async def delete_user(name: NameInPath, person: Admin, parts: PartsOf) -> DeletedUser:
    """The person is locked out at once.

    Their jobs, files, exports, tokens and sessions are deleted in the background, finally the
    account. The audit log keeps their name."""
    require_session(person, "delete an account")
    await parts.deletions.begin_other(name, person)
    return DeletedUser(name=name, state="DELETING")
