"""Operations that routes of extensions start."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.features.accounts.person import Person
from holdfast.features.bulk.bulk import BulkRequest
from holdfast.features.bulk.operations import NewOperation
from holdfast.features.bulk.shapes import OperationShape, operation_shape
from holdfast.features.exports.shapes import Format
from holdfast.model import Json
from holdfast.server.dependencies import Parts


async def decide_in_bulk(
    criteria: Json, counts: Mapping[int, int], reason: str, person: Person, parts: Parts
) -> OperationShape:
    """Starts an operation that decides what `Pipeline.proposals` proposes for the criteria, in jobs
    with this many items each."""
    target = {"criteria": criteria, "reason": reason}
    expected = sum(counts.values())
    new = NewOperation(person.name, "decide", target, list(counts), expected)
    operations = parts.console.operations
    return operation_shape(await operations.operation(await operations.add(new)))


async def export_jobs(
    job_ids: Sequence[int], format: Format, person: Person, parts: Parts
) -> OperationShape:
    """Exports each of the jobs."""
    request = BulkRequest("export", job_ids=job_ids, format=format)
    return operation_shape(await parts.bulk.start(request, person))
