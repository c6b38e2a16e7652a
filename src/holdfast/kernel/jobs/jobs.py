"""Implements what people do to jobs: create, pause, resume, cancel, reprocess, skip, switch off."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

import orjson

from holdfast.errors import NotThere, StreamOwned, UnfitState, UserError
from holdfast.kernel.arrivals.idempotency import RequestKey, note_made
from holdfast.kernel.database.chunks import (
    EARLIEST,
    FinishedItems,
    FreeRanges,
    NamedItems,
    Reprocessed,
    Skipped,
)
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.database.instants import parse_instant
from holdfast.kernel.database.notices import tell_workers
from holdfast.kernel.jobs.admission import NO_QUOTA, Quota, admit, admit_resumed, cap_of_source
from holdfast.kernel.jobs.audit import add_audit, rows_detail
from holdfast.kernel.jobs.job_states import locked_state, move
from holdfast.kernel.jobs.reprocess import reprocess
from holdfast.kernel.jobs.skips import skip
from holdfast.model import JobState, Lane
from holdfast.reading import Reading


@dataclass(frozen=True, slots=True)
class NewStream:
    source: str
    fingerprint: str
    max_items: int | None = None


@dataclass(frozen=True, slots=True)
class NewJob:
    pipeline: str
    name: str
    streams: Sequence[NewStream]
    owner_id: str = "local"
    mode: str | None = None
    lane: Lane = Lane.UPLOAD
    reference: str | None = None
    input_key: str | None = None
    columns: Sequence[str] = ()
    options: Mapping[str, Any] = field(default_factory=dict)
    reading: Reading = field(default_factory=Reading)
    max_items: int | None = None
    trace: str | None = None
    ip: str | None = None
    file_id: int | None = None
    concludes: bool = False  # ends only after its pipeline's `conclude`
    request: RequestKey | None = None
    standing: bool = False  # accepts records at any time and does not end
    topic: str = ""  # of a standing job; there is one job for each topic
    takes_over: bool = False  # streams of other owners too, with their checkpoints
    enabled_by: str | None = None  # the flag without which the pipeline is off
    most_open: int | None = None  # unfinished jobs that its owner may have, this one included
    most_items: int | None = None  # open items that its owner may have
    drafts: Sequence[int] = ()  # files that came with the request; kept only if the job is created
    files: Sequence[int] = ()  # stored files that the rows of its file refer to


class Jobs:
    def __init__(self, database: Database) -> None:
        self._database = database

    @verb
    async def create(
        self, tx: Transaction, new: NewJob, actor: str, only_first: bool = False
    ) -> int:
        """Creates a job with its streams and starts it.

        With `only_first`, returns an earlier job on the same input instead."""
        if only_first:
            await tx.fetch("hold_input", {"input": f"{new.pipeline} {new.input_key}"})
            key = {"owner_id": new.owner_id, "input_key": new.input_key}
            live = await tx.fetch("live_job_by_input", {"pipeline": new.pipeline, **key})
            if live:
                return int(live[0]["id"])
        if new.drafts:
            await _keep_files(tx, new)
        job_id = await create_job(tx, new, actor)
        await note_made(tx, new.request, job_id)
        return job_id

    @verb
    async def open(self, tx: Transaction, new: NewJob, actor: str) -> tuple[int, bool]:
        """Returns the standing job of this pipeline, owner and topic, and whether it was created
        now."""
        job_id, is_new = await open_job(tx, new, actor)
        await note_made(tx, new.request, job_id)
        return job_id, is_new

    @verb
    async def pause(self, tx: Transaction, job_id: int, actor: str) -> JobState:
        """Pauses the job: no further item starts; running ones may settle."""
        return await move(tx, job_id, "pause", actor)

    @verb
    async def resume(
        self,
        tx: Transaction,
        job_id: int,
        actor: str,
        max_items: int | None = None,
        max_per_source: int | None = None,
        quota: Quota = NO_QUOTA,
    ) -> JobState:
        """Continues a job after a pause, after a failed discovery, or past a cap that was
        raised."""
        if max_per_source is not None:
            cap_of_source(tx.rules, max_per_source)
        cap = await admit_resumed(tx, job_id, max_items, quota)
        if cap is not None:
            await tx.run("set_job_cap", {"job_id": job_id, "max_items": cap})
        caps = {"max_items": cap, "max_per_source": max_per_source}
        return await resume_job(tx, job_id, actor, caps)

    async def cancel(self, job_id: int, actor: str) -> JobState:
        """Commits the new state first and removes the ranges after it: a split that is not yet
        committed would escape a single transaction."""
        state = await self._cancel(job_id, actor)
        await self.drop_ranges(job_id)
        return state

    @verb
    async def _cancel(self, tx: Transaction, job_id: int, actor: str) -> JobState:
        return await move(tx, job_id, "cancel", actor)

    @verb
    async def drop_ranges(self, tx: Transaction, job_id: int) -> None:
        job = {"job_id": job_id}
        await tx.run("drop_ranges", job)
        while await tx.fetch("open_range_exists", job):
            await tx.run("drop_ranges", job)

    async def now(self) -> datetime:
        """Returns the database's time."""
        return parse_instant((await self._database.fetch("database_now"))[0][0]) or EARLIEST

    @verb
    async def reprocess(
        self,
        tx: Transaction,
        job_id: int,
        items: NamedItems | FinishedItems,
        actor: str,
        reset: bool = True,
    ) -> Reprocessed:
        """Opens a chunk of finished items; continue with its `next`."""
        return await reprocess(tx, job_id, items, actor, reset)

    @verb
    async def skip(
        self, tx: Transaction, job_id: int, items: NamedItems | FreeRanges, actor: str, reason: str
    ) -> Skipped:
        """Skips a chunk of open items that are not being processed; continue with its `next`."""
        step = await skip(tx, job_id, items, reason)
        if step.skipped:
            detail = {"items": step.skipped, "reason": reason}
            if isinstance(items, NamedItems):
                detail |= rows_detail(items.seqs)
            await add_audit(tx, actor, "skip", job_id, "", detail)
        return step

    @verb
    async def act_on_dead_letter(
        self, tx: Transaction, letter_id: int, replay: bool, actor: str
    ) -> None:
        """Replays a dead letter (its item is open again, its message is sent again) or drops
        it."""
        state = "REPLAYED" if replay else "DROPPED"
        params = {"id": letter_id, "state": state, "actor": actor}
        rows = await tx.take("act_on_dead_letter", params)
        if not rows:
            raise UnfitState(
                f"there is no open dead letter {letter_id}", "See `holdfast dead list`."
            )
        job_id, seq, kind = rows[0]
        if replay and kind == "message":
            await _send_again(tx, letter_id)
        elif replay:
            await reprocess(tx, job_id, NamedItems([seq]), actor, reset=True)
        await add_audit(tx, actor, "dead." + state.lower(), job_id, str(letter_id))

    @verb
    async def switch(
        self, tx: Transaction, scope: str, on: bool, actor: str, reason: str = ""
    ) -> bool:
        """Sets or clears a kill switch; False if nothing changed."""
        if on:
            params = {"scope": scope, "actor": actor, "reason": reason}
            changed = await tx.take("set_kill_switch", params)
        else:
            changed = await tx.take("clear_kill_switch", {"scope": scope})
        if changed:
            action = f"kill_switch.{'on' if on else 'off'}"
            await add_audit(tx, actor, action, None, scope, {"reason": reason})
        return bool(changed)

    @verb
    async def prepare(self, tx: Transaction, statements: Sequence[str]) -> None:
        """Creates the tables that a pipeline's `save` writes."""
        for statement in statements:
            await self._prepare_one(tx, statement)

    async def _prepare_one(self, tx: Transaction, statement: str) -> None:
        try:
            await tx.execute(statement)
        except Exception as error:
            if self._database.driver.is_passing(error):
                raise
            raise UserError(
                f"the pipeline's schema is refused by the database: {error}",
                "Fix the statements in its `schema`; they must fit the database in use.",
            ) from error


async def create_job(tx: Transaction, new: NewJob, actor: str) -> int:
    """Creates and starts a job with its streams.

    Every way to a new job ends here, so that all of them obey the same rules."""
    new = await admit(tx, new)
    await _hold_files(tx, new)
    job_id = await _add_job(tx, new)
    for stream in new.streams:
        await _add_stream(tx, new, job_id, stream)
    await move(tx, job_id, "start", actor, {"pipeline": new.pipeline, "name": new.name})
    await tell_workers(tx, job_id)
    return job_id


async def open_job(tx: Transaction, new: NewJob, actor: str) -> tuple[int, bool]:
    """Returns the standing job, and whether it was created now.

    Waits for others only if it has to be created."""
    standing = {"pipeline": new.pipeline, "owner_id": new.owner_id, "topic": new.topic}
    rows = await tx.fetch("standing_job", standing)
    if not rows:
        held = f"standing {new.pipeline} {new.owner_id} {new.topic}"
        await tx.fetch("hold_input", {"input": held})
        rows = await tx.fetch("standing_job", standing)
    return (int(rows[0][0]), False) if rows else (await create_job(tx, new, actor), True)


async def resume_job(
    tx: Transaction, job_id: int, actor: str, caps: Mapping[str, int | None] | None = None
) -> JobState:
    """Lets the job continue from its streams' cursors."""
    caps = caps or {}
    reopening = {"job_id": job_id, "max_items": caps.get("max_per_source")}
    reopened = await tx.take("reopen_streams", reopening)
    state = await locked_state(tx, job_id)
    concludes = (await tx.fetch("job_concludes", {"job_id": job_id}))[0][0]
    # A FAILED job without a stream to continue is one that its pipeline could not conclude.
    is_over = state is JobState.DONE or (state is JobState.FAILED and not concludes)
    if is_over and not reopened:
        raise UnfitState(
            f"job {job_id} is {state} and has nothing left to do",
            "Use `holdfast reprocess` to process finished items again.",
        )
    if reopened:
        await tx.run("undiscover_job", {"job_id": job_id})
    await tell_workers(tx, job_id)
    if state is JobState.RUNNING:
        return state
    return await move(tx, job_id, "resume", actor, caps)


async def _add_job(tx: Transaction, new: NewJob) -> int:
    params = {
        "pipeline": new.pipeline,
        "name": new.name,
        "owner_id": new.owner_id,
        "mode": new.mode,
        "lane": new.lane,
        "reference": new.reference,
        "input_key": new.input_key,
        "columns": orjson.dumps(list(new.columns)).decode(),
        "options": orjson.dumps(dict(new.options)).decode(),
        "reading": new.reading.as_json(),
        "max_items": new.max_items,
        "concludes": int(new.concludes),
        "trace": new.trace,
        "ip": new.ip,
        "file_id": new.file_id,
        "standing": int(new.standing),
        "topic": new.topic,
    }
    return int((await tx.take("add_job", params))[0][0])


async def _hold_files(tx: Transaction, new: NewJob) -> None:
    """Locks the files of a job: a file deleted at the same moment is gone before, or stays for the
    job."""
    ids = {*new.files} if new.file_id is None else {new.file_id, *new.files}
    if not ids:
        return
    gone = ids - {row["id"] for row in await tx.fetch("hold_files", {"ids": sorted(ids)})}
    if gone:
        raise NotThere(f"there is no file {min(gone)}", "GET /api/files lists yours.")


async def _keep_files(tx: Transaction, new: NewJob) -> None:
    rows = await tx.take("keep_files", {"ids": list(new.drafts)})
    if len(rows) < len(new.drafts):
        raise UnfitState("the file of this request is gone", "Send it again.")
    for file_id, name, size, sha256 in sorted(map(tuple, rows)):
        detail = {"name": name, "size": size, "sha256": sha256}
        await add_audit(tx, new.owner_id, "file.stored", None, str(file_id), detail)


async def _add_stream(tx: Transaction, new: NewJob, job_id: int, stream: NewStream) -> None:
    params = {
        "pipeline": new.pipeline,
        "source": stream.source.replace("{job}", str(job_id)),
        "mode": new.mode or "",
        "job_id": job_id,
        "fingerprint": stream.fingerprint,
        "max_items": stream.max_items,
    }
    if await tx.take("add_stream", params):
        return
    # Locked first and checked in the next statement, which sees a job that took the stream in
    # between.
    await tx.fetch("lock_stream", params)
    if not new.takes_over:
        await _refuse_anothers(tx, new, params)
    if not await tx.take("take_over_stream", params):
        raise UnfitState(
            f"another job is reading {stream.source} of {new.pipeline} now",
            "Wait for it, or cancel it: `holdfast jobs` lists it.",
        )


async def _refuse_anothers(tx: Transaction, new: NewJob, stream: Mapping[str, Any]) -> None:
    """Refuses a stream of another owner.

    A stream belongs to the owner of its job for as long as that job could continue from its
    checkpoint."""
    for row in await tx.fetch("checkpoint_owner", stream):
        if row["owner_id"] != new.owner_id:
            raise StreamOwned(stream["source"], new.pipeline, row["job_id"], row["owner_id"])


async def _send_again(tx: Transaction, letter_id: int) -> None:
    rows = await tx.fetch("replayable_message", {"id": letter_id})
    message_id, payload, queue = rows[0]
    message = {"message_id": message_id, "payload": payload, "queue": queue}
    await tx.run("add_message", {**message, "delay": 0.0})
