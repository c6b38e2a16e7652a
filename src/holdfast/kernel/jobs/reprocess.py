"""Opens finished items again, a chunk at a time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from holdfast.errors import UserError
from holdfast.kernel.database.chunks import EARLIEST, FinishedItems, NamedItems, Reprocessed
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.database.notices import tell_workers
from holdfast.kernel.jobs.audit import rows_detail
from holdfast.kernel.jobs.job_states import move, require
from holdfast.kernel.record.counters import add_counts
from holdfast.model import FINAL, ItemStatus

_CHUNK = 500


class Candidate(NamedTuple):
    """A finished item that may be opened again."""

    seq: int
    status: ItemStatus
    error_code: str | None
    attempts: int
    misses: int


Fits = Callable[[Candidate], bool]


def fits_always(candidate: Candidate) -> bool:
    return True


async def reprocess(
    tx: Transaction,
    job_id: int,
    items: NamedItems | FinishedItems,
    actor: str,
    reset: bool,
    fits: Fits = fits_always,
) -> Reprocessed:
    """Opens those of the chunk that fit. With `reset`, their attempts start from zero."""
    await require(tx, job_id, "reprocess")
    rows = await _finished(tx, job_id, items)
    candidates = [_candidate(row) for row in rows]
    fitting = [candidate for candidate in candidates if fits(candidate)]
    await _open(tx, job_id, fitting, actor, reset)
    if isinstance(items, NamedItems):
        return Reprocessed(len(fitting), len(items.seqs) - len(fitting), None)
    return Reprocessed(len(fitting), len(rows) - len(fitting), _next(items, rows))


async def _finished(
    tx: Transaction, job_id: int, items: NamedItems | FinishedItems
) -> Sequence[Row]:
    params: dict[str, Any] = {"job_id": job_id, "until": items.until}
    if isinstance(items, NamedItems):
        return await tx.fetch("finished_items", {**params, "seqs": sorted(set(items.seqs))})
    if items.status not in FINAL:
        raise UserError(
            f"{items.status} items are not finished", "Only finished items can be reprocessed."
        )
    params |= {"status": items.status, "since": items.since, "seq": items.seq, "limit": _CHUNK}
    params |= {"any_code": int(items.code is None), "code": items.code or ""}
    return await tx.fetch("next_finished_items", params)


def _next(items: FinishedItems, rows: Sequence[Row]) -> FinishedItems | None:
    if len(rows) < _CHUNK:
        return None
    since = parse_instant(rows[-1]["updated_at"]) or EARLIEST
    return replace(items, since=since, seq=rows[-1]["seq"])


def _candidate(row: Row) -> Candidate:
    return Candidate(
        row["seq"], ItemStatus(row["status"]), row["error_code"], row["attempts"], row["misses"]
    )


async def _open(
    tx: Transaction, job_id: int, items: Sequence[Candidate], actor: str, reset: bool
) -> None:
    if not items:
        return
    seqs = sorted(item.seq for item in items)
    range_id = await _add_range(tx, job_id, seqs)
    await tx.run("keep_attempts", {"job_id": job_id, "seqs": seqs})
    await tx.run("replay_dead_letters", {"job_id": job_id, "seqs": seqs, "actor": actor})
    opening = {"job_id": job_id, "seqs": seqs, "range_id": range_id, "reset": int(reset)}
    await tx.run("open_again", opening)
    counts = Counter(item.status.lower() for item in items)
    await add_counts(tx, job_id, **{name: -count for name, count in counts.items()})
    await tell_workers(tx, job_id)
    await move(tx, job_id, "reprocess", actor, {"items": len(seqs), **rows_detail(seqs)})


async def _add_range(tx: Transaction, job_id: int, seqs: Sequence[int]) -> int:
    size = await tx.fetch("mean_input_bytes", {"job_id": job_id, "seqs": list(seqs)})
    params = {
        "job_id": job_id,
        "lo": seqs[0],
        "hi": seqs[-1],
        "again": 1,
        "delay": 0.0,
        "settled": 0,
        "expiries": 0,
        "item_bytes": size[0][0],
        "waiting_for": None,
    }
    return int((await tx.take("add_range", params))[0][0])
