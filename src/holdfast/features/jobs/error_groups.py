"""Groups a job's errors by code.

If there are many, the latest are counted and the rest is estimated from them, so that it costs the
same for a thousand as for ten million."""

from __future__ import annotations

from dataclasses import dataclass, replace
from datetime import datetime

from holdfast.kernel.database.database import Database
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.database.rows import fields_of, removed_of
from holdfast.kernel.jobs.reads import counters_of

_COUNTED = 10_000
_COUNTED_OF_RARE = 500


@dataclass(frozen=True, slots=True)
class CodeGroup:
    code: str | None
    count: int
    exact: bool  # otherwise the count is an estimate
    first_at: datetime | None
    last_at: datetime | None
    sample: str | None


async def errors_by_code(database: Database, job_id: int) -> list[CodeGroup]:
    """Returns the groups, the most frequent first."""
    async with database.driver.reading() as tx:
        rows = await tx.fetch("latest_errors_by_code", {"job_id": job_id, "limit": _COUNTED})
        groups = [_group(row, _COUNTED + 1) for row in rows]
        counted = sum(group.count for group in groups)
        if counted == _COUNTED:
            groups = await _estimated(tx, job_id, groups)
    return sorted(groups, key=lambda group: -group.count)


async def _estimated(tx: Transaction, job_id: int, latest: list[CodeGroup]) -> list[CodeGroup]:
    """Scales the groups up: all errors are assumed to be distributed as the latest; other codes are
    added."""
    counters = counters_of((await tx.fetch("counters", {"job_id": job_id}))[0])
    removed = removed_of((await tx.fetch("job", {"job_id": job_id}))[0]["removed"])
    total = max(_COUNTED, counters.error - removed.get("ERROR", 0))
    codes = {row[0] for row in await tx.fetch("codes_of_job", {"job_id": job_id})}
    groups = []
    for group in latest:
        began = await tx.fetch("code_began", {"job_id": job_id, "code": group.code})
        groups.append(
            replace(
                group,
                count=round(group.count * total / _COUNTED),
                exact=total == _COUNTED,
                first_at=parse_instant(began[0][0]) or group.first_at,
            )
        )
    for code in sorted(codes - {group.code for group in latest}):
        params = {"job_id": job_id, "code": code, "limit": _COUNTED_OF_RARE}
        rows = await tx.fetch("latest_errors_of_code", params)
        groups += [_group(row, _COUNTED_OF_RARE) for row in rows]
    return groups


def _group(row: Row, limit: int) -> CodeGroup:
    fields = fields_of(row)
    return CodeGroup(
        fields["error_code"],
        fields["count"],
        fields["count"] < limit,
        fields["first_at"],
        fields["last_at"],
        fields["sample"],
    )
