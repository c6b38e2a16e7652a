"""Rules that every new job must obey, whichever way it was ordered: a command, the API, a page, a
schedule, a message or a plan. They are checked in the transaction that creates the job."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from holdfast.errors import (
    Disabled,
    InputError,
    NotAllowed,
    SwitchedOff,
    Throttled,
    UnfitState,
    UserError,
)
from holdfast.model import JobState, Lane
from holdfast.reading import Reading
from holdfast.settings import setting

if TYPE_CHECKING:
    from holdfast.kernel.database.driver import Transaction
    from holdfast.kernel.jobs.jobs import NewJob

_UNFINISHED = (JobState.QUEUED, JobState.RUNNING, JobState.PAUSED)
_SHORTEST_SECONDS = 5
_LONGEST_SECONDS = 300
_ITEMS_HINT = "Wait until some are done, or ask an admin; HOLDFAST_QUOTA_ITEMS sets the limit."


@dataclass(frozen=True, slots=True)
class JobRules:
    """Limits that every new job must obey; None means no limit."""

    backfill_enabled: bool = setting(
        True,
        "`false` stops every backfill, like the kill switch, and refuses new ones.",
        aliased=True,
    )
    max_items: int | None = setting(
        None,
        "Maximum number of new items in any job.",
        1,
        10**12,
        name="MAX_URLS_PER_RUN",
        aliased=True,
        shown="no limit",
    )
    max_items_per_source: int | None = setting(
        None,
        "Maximum number of new items from one source in any job.",
        1,
        10**12,
        name="MAX_URLS_PER_SOURCE",
        aliased=True,
        shown="no limit",
    )
    backlog_max_items: int | None = setting(
        None,
        "With more open items than this, sources wait and uploads are refused.",
        1,
        10**12,
        shown="no limit",
    )


NO_RULES = JobRules()


@dataclass(frozen=True, slots=True)
class Quota:
    """How many unfinished jobs and open items an owner may have; None means no limit.

    None means no limit."""

    jobs: int | None = None
    items: int | None = None


NO_QUOTA = Quota()


async def admit(tx: Transaction, new: NewJob) -> NewJob:
    """Returns the job with the caps that it gets; raises the reason if it cannot be created now."""
    rules = tx.rules
    require_table(new.reading)
    _refuse_backfill(rules, new.pipeline, new.lane)
    await _refuse_until_enabled(tx, new)
    await refuse_switched_off(tx, new.pipeline, [stream.source for stream in new.streams])
    await _refuse_while_pressed(tx, rules.backlog_max_items)
    await _refuse_beyond_quota(tx, new)
    return await _within_quota(tx, _capped(new, rules))


async def admit_records(tx: Transaction, pipeline: str) -> None:
    """Raises if a standing job of the pipeline may not be given records now.

    An application's own transaction does not ask: what it commits must not be lost."""
    await refuse_switched_off(tx, pipeline, ())
    await _refuse_while_pressed(tx, tx.rules.backlog_max_items)


async def within_items(tx: Transaction, owner_id: str, most: int) -> None:
    """Refuses the records that this transaction added if their owner now has too many open
    items."""
    count = await _open_items(tx, owner_id)
    if count > most:
        raise UnfitState(
            f"that would be {count:,} open items; the limit per owner is {most:,}", _ITEMS_HINT
        )


async def hold_quota(tx: Transaction, owner_id: str) -> None:
    """Locks the owner's quota: requests that arrive together would otherwise all find room."""
    await tx.fetch("hold_input", {"input": f"quota {owner_id}"})


async def require_owner(tx: Transaction, owner_id: str) -> None:
    """Refuses a request if its owner's account was deleted after it began: an upload may take
    long."""
    owner = {"owner_id": owner_id}
    if not await tx.fetch("hold_account", owner) and not await tx.fetch("hold_adapters", owner):
        raise NotAllowed(f"there is no account {owner_id}, or it is being deleted", "Ask an admin.")


async def admit_resumed(
    tx: Transaction, job_id: int, max_items: int | None, quota: Quota
) -> int | None:
    """Returns the new cap of a job that continues, checked as for a new job, or None."""
    cap = None if max_items is None else cap_of_job(tx.rules, max_items)
    for row in await tx.fetch("job_to_resume", {"job_id": job_id}):
        if cap is not None and row["standing"]:
            raise UserError(
                "a standing job does not end, so its items have no maximum",
                "Leave the maximum out.",
            )
        if quota.jobs is not None and row["state"] not in _UNFINISHED:
            await _refuse_more_jobs(tx, row["owner_id"], quota.jobs)
        if quota.items is not None and cap is not None and cap > row["accepted"]:
            await hold_quota(tx, row["owner_id"])
            left = await _items_left(tx, row["owner_id"], quota.items)
            cap = min(cap, int(row["accepted"]) + left)
    return cap


async def admit_again(tx: Transaction, job_id: int) -> None:
    """Raises if a plan may not let one of its jobs continue now."""
    for row in await tx.fetch("job_controls", {"job_ids": [job_id]}):
        _refuse_backfill(tx.rules, row["pipeline"], row["lane"])
        await refuse_switched_off(tx, row["pipeline"], ())


def _refuse_backfill(rules: JobRules, pipeline: str, lane: str) -> None:
    if lane == Lane.BACKFILL and not rules.backfill_enabled:
        raise Disabled(
            "Backfill disabled. Set BACKFILL_ENABLED=true to enable.",
            f"{pipeline} needs it where its jobs are made and where they run.",
        )


async def refuse_switched_off(tx: Transaction, pipeline: str, sources: Sequence[str]) -> None:
    """Refuses a job if none of its sources may be read; a job with some allowed sources begins with
    those."""
    rows = await tx.fetch(
        "switches_over_job",
        {"pipeline": pipeline, "sources": [f"source:{name}" for name in sources]},
    )
    reasons = {row["scope"]: row["reason"] for row in rows}
    covering = [scope for scope in ("all", f"pipeline:{pipeline}") if scope in reasons]
    off = [f"source:{name}" for name in sources if f"source:{name}" in reasons]
    if sources and len(off) == len(sources):
        covering += off
    if covering:
        raise SwitchedOff(
            f"the kill switch {covering[0]} is on: {reasons[covering[0]] or 'no reason given'}",
            f"An admin switches it off again: holdfast kill-switch off{_scope_words(covering[0])}.",
        )


def _scope_words(scope: str) -> str:
    """Returns the scope as options of the command."""
    kind, _, name = scope.partition(":")
    return f" --{kind} {shlex.quote(name)}" if name else ""


async def _refuse_until_enabled(tx: Transaction, new: NewJob) -> None:
    if new.enabled_by is None:
        return
    rows = await tx.fetch("flag_value", {"name": new.enabled_by})
    if not rows or rows[0]["value"] != "true":
        what = "Backfill" if new.lane == Lane.BACKFILL else f"The pipeline {new.pipeline}"
        raise Disabled(
            f"{what} disabled. Set {new.enabled_by}=on to enable.",
            f"It is off until an admin switches it on: holdfast flag set {new.enabled_by} on",
        )


async def _refuse_while_pressed(tx: Transaction, most: int | None) -> None:
    if most is None:
        return
    seconds = wait_for(most, int((await tx.fetch("backlog"))[0]["items"]))
    if seconds is not None:
        raise Throttled("too many items are waiting already", seconds, "Try again later.")


async def _refuse_beyond_quota(tx: Transaction, new: NewJob) -> None:
    if new.most_open is not None:
        await require_owner(tx, new.owner_id)
        await _refuse_more_jobs(tx, new.owner_id, new.most_open)


async def _refuse_more_jobs(tx: Transaction, owner_id: str, most: int) -> None:
    await hold_quota(tx, owner_id)
    count = int((await tx.fetch("count_open_jobs", {"owner_id": owner_id}))[0][0])
    if count >= most:
        raise UnfitState(
            f"that would be {count + 1:,} unfinished jobs; the limit per owner is {most:,}",
            "Ask an admin; HOLDFAST_QUOTA_JOBS sets the limit.",
        )


async def _within_quota(tx: Transaction, new: NewJob) -> NewJob:
    """Returns the job, capped at the number of open items that its owner may still have."""
    if new.most_items is None or new.standing:
        return new
    left = await _items_left(tx, new.owner_id, new.most_items)
    return replace(new, max_items=min(left, new.max_items or left))


async def _items_left(tx: Transaction, owner_id: str, most: int) -> int:
    count = await _open_items(tx, owner_id)
    if count >= most:
        raise UnfitState(
            f"there are {count:,} open items; the limit per owner is {most:,}", _ITEMS_HINT
        )
    return most - count


async def _open_items(tx: Transaction, owner_id: str) -> int:
    return int((await tx.fetch("count_open_items", {"owner_id": owner_id}))[0][0])


def require_table(reading: Reading) -> None:
    """Refuses what another version of the program may have stored about a job's file."""
    table = {} if reading.table is None else reading.table
    names = table.get("names") or {} if isinstance(table, Mapping) else None
    if not isinstance(names, Mapping) or not all(isinstance(name, str) for name in names.values()):
        raise InputError(
            "the options that say how the file is read do not name columns",
            'Give an object such as {"names": {"Column": "field"}}, or leave them out.',
        )


def wait_for(most: int, items: int) -> int | None:
    """Returns how many seconds to wait, longer the further above the limit; None while there is
    room."""
    if items <= most:
        return None
    return min(_LONGEST_SECONDS, round(_SHORTEST_SECONDS * items / most))


def _capped(new: NewJob, rules: JobRules) -> NewJob:
    """Returns the job with its caps. A standing job does not end, so it has no cap."""
    if new.standing:
        return new
    streams = [
        replace(stream, max_items=cap_of_source(rules, stream.max_items)) for stream in new.streams
    ]
    return replace(new, max_items=cap_of_job(rules, new.max_items), streams=streams)


def cap_of_job(rules: JobRules, wanted: int | None) -> int | None:
    return _cap(wanted, rules.max_items, "items in a job", "MAX_URLS_PER_RUN")


def cap_of_source(rules: JobRules, wanted: int | None) -> int | None:
    return _cap(wanted, rules.max_items_per_source, "items from a source", "MAX_URLS_PER_SOURCE")


def _cap(wanted: int | None, limit: int | None, what: str, setting: str) -> int | None:
    """Returns the requested cap if it is within the limit, or the limit if none is requested."""
    if wanted is not None and limit is not None and wanted > limit:
        raise UserError(
            f"{wanted:,} {what} are more than the limit of {limit:,}",
            f"Ask for fewer; {setting} sets the limit.",
        )
    return limit if wanted is None else wanted
