"""Rulings: decisions of people about items, with their history.

They are never overwritten: each is a row of its own with the next version, and the last one counts
unless it revokes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import orjson

from holdfast.errors import NotThere, UserError
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Conflict, Row, Transaction
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.jobs.audit import add_audit
from holdfast.model import ItemStatus, Job, JobState
from holdfast.pipeline import Pipeline, with_defaults
from holdfast.rulings import (
    OutdatedRuling,
    Proposal,
    Ruled,
    Ruling,
    RulingKind,
    default_changes,
)

if TYPE_CHECKING:
    from holdfast.features.console import Console

_MOST_BYTES = 100_000

#: A pipeline's own judgement: returns the changes, or None for the usual ones.
Hook = Callable[[Transaction, Ruled], Awaitable[Mapping[str, Any] | None]]


@dataclass(frozen=True, slots=True)
class NewRuling:
    """A person's decision, made knowing `version` of the decisions before (0: none)."""

    kind: RulingKind
    value: Any
    reason: str
    author: str
    version: int


class Rulings:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def history(self, job_id: int, seq: int) -> list[Ruling]:
        """Lists all decisions about an item, the oldest first."""
        params = {"job_id": job_id, "seq": seq}
        return [ruling_of(row) for row in await self._database.fetch("rulings_of_item", params)]

    async def any(self, job_id: int) -> bool:
        """Whether there is a decision about any item of the job."""
        return bool(await self._database.fetch("job_has_rulings", {"job_id": job_id}))

    async def count(self, job_id: int, kinds: Sequence[str]) -> int:
        """Counts the items of a job about which such a decision counts."""
        params = {"job_id": job_id, "kinds": list(kinds)}
        return int((await self._database.fetch("count_ruled", params))[0][0])

    @verb
    async def rule(
        self, tx: Transaction, job: Job, seq: int, new: NewRuling, hook: Hook | None = None
    ) -> Ruling:
        """Writes a decision with the pipeline's own rows, unless it was made without knowing the
        last one."""
        item, history = await _item(tx, job, seq)
        if history and _is_same(history[-1], new):
            return history[-1]
        _check_version(seq, new, history)
        ruled = _ruled(job, seq, item, new, counting(history))
        return await _write(tx, ruled, new, hook)


async def rule_if_free(
    tx: Transaction, job: Job, proposal: Proposal, reason: str, author: str, hook: Hook | None
) -> bool:
    """Writes a decision unless one counts already, or the pipeline refuses it.

    An edit leaves an item to be decided about."""
    try:
        item, history = await _item(tx, job, proposal.seq)
        counts = counting(history)
        if counts is not None and counts.kind is not RulingKind.EDIT:
            return False
        version = history[-1].version if history else 0
        new = NewRuling(proposal.kind, proposal.value, reason, author, version)
        await _write(tx, _ruled(job, proposal.seq, item, new, counts), new, hook)
    except UserError:
        return False
    return True


async def _item(tx: Transaction, job: Job, seq: int) -> tuple[Row, list[Ruling]]:
    """Returns the item and all decisions about it.

    A deletion of the job waits for this transaction, and deletes what it writes."""
    key = {"job_id": job.id, "seq": seq}
    jobs = await tx.fetch("share_job", {"job_id": job.id})
    items = await tx.fetch("item_to_rule", key)
    if not items or not jobs or jobs[0]["state"] == JobState.DELETING:
        raise no_item(job, seq)
    return items[0], [ruling_of(row) for row in await tx.fetch("rulings_of_item", key)]


def no_item(job: Job, seq: int, hint: str = "GET …/items lists them.") -> NotThere:
    """Returns the error about an item that never was, or that retention removed."""
    why = "; its older finished items were removed by retention" if job.removed else ""
    return NotThere(f"job {job.id} has no item {seq}{why}", hint)


async def _write(tx: Transaction, ruled: Ruled, new: NewRuling, hook: Hook | None) -> Ruling:
    changes = await _changes(tx, ruled, hook)
    ruling = Ruling(new.version + 1, new.kind, new.value, changes, new.reason, new.author)
    key = {"job_id": ruled.job.id, "seq": ruled.seq}
    if not await tx.take("add_ruling", {**key, **_columns(ruling)}):
        raise Conflict("another person decided at the same time")
    detail = {"seq": ruled.seq, "version": ruling.version, "reason": new.reason}
    action = f"ruling.{new.kind}"
    await add_audit(tx, new.author, action, ruled.job.id, str(ruled.seq), detail)
    return ruling


def counting(history: Sequence[Ruling]) -> Ruling | None:
    """Returns the decision that counts."""
    return history[-1] if history and history[-1].kind is not RulingKind.REVOKE else None


async def rulings_of(tx: Transaction, job_id: int, seqs: list[int]) -> dict[int, Ruling]:
    """Returns the decisions that count about these items.

    Most jobs have none, so that is checked first."""
    if not seqs or not await tx.fetch("job_has_rulings", {"job_id": job_id}):
        return {}
    rows = await tx.fetch("rulings_of_items", {"job_id": job_id, "seqs": seqs})
    return {row["seq"]: ruling_of(row) for row in rows}


def ruling_of(row: Row) -> Ruling:
    return Ruling(
        row["version"],
        RulingKind(row["kind"]),
        orjson.loads(row["value"]),
        orjson.loads(row["changes"]),
        row["reason"],
        row["author"],
        parse_instant(row["at"]),
    )


def _is_same(latest: Ruling, new: NewRuling) -> bool:
    """Whether the latest decision is this one, sent again after a lost commit reply."""
    sent = (new.version + 1, new.kind, new.value, new.reason, new.author)
    return sent == (latest.version, latest.kind, latest.value, latest.reason, latest.author)


def _check_version(seq: int, new: NewRuling, history: Sequence[Ruling]) -> None:
    latest = history[-1] if history else None
    if new.version != (latest.version if latest is not None else 0):
        raise OutdatedRuling(seq, latest)
    if new.kind is RulingKind.REVOKE and counting(history) is None:
        raise OutdatedRuling(seq, None)


async def _changes(tx: Transaction, ruled: Ruled, hook: Hook | None) -> Mapping[str, Any]:
    own = None if hook is None else await hook(tx, ruled)
    return default_changes(ruled) if own is None else own


def _ruled(job: Job, seq: int, item: Row, new: NewRuling, previous: Ruling | None) -> Ruled:
    return Ruled(
        job,
        seq,
        orjson.loads(item["input"]),
        ItemStatus(item["status"] or ItemStatus.PENDING),
        None if item["result"] is None else orjson.loads(item["result"]),
        new.kind,
        new.value,
        new.reason,
        new.author,
        previous,
        job.columns,
    )


def _columns(ruling: Ruling) -> dict[str, Any]:
    try:
        value, changes = (
            orjson.dumps(each).decode() for each in (ruling.value, dict(ruling.changes))
        )
    except TypeError as error:
        raise UserError(f"the decision cannot be stored as JSON: {error}") from None
    if len(value) + len(changes) > _MOST_BYTES:
        raise UserError("the decision is too large", f"It may have {_MOST_BYTES:,} bytes.")
    return {
        "version": ruling.version,
        "kind": str(ruling.kind),
        "value": value,
        "changes": changes,
        "reason": ruling.reason,
        "author": ruling.author,
    }


async def decide(
    console: Console, pipelines: Mapping[str, Pipeline], job: Job, seq: int, new: NewRuling
) -> None:
    """Stores a decision; the pipeline checks it, if this server has the pipeline and it rules."""
    pipeline = pipelines.get(job.pipeline)
    if pipeline is None or not pipeline.rules:
        await console.rulings.rule(job, seq, new)
    else:
        await console.rulings.rule(with_defaults(pipeline, job), seq, new, pipeline.ruling)
