"""The same for the verbs of messages: outbox, nudges, dead letters, duties."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from holdfast.errors import UserError
from holdfast.features.console import open_console
from holdfast.kernel import DeadMessage, NewItem, NewJob, NewStream, OutboxRow, Store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.arrivals.idempotency import MessageKey
from holdfast.kernel.outbox.nudges import Nudge
from holdfast.model import Lane
from tests.store.checks import execute, fetch, filled_job
from tests.store.scenarios import SCENARIOS, Scenario, drain, scenario
from tests.store.upkeep_scenarios import simple_scenario


async def sent(rows: Sequence[OutboxRow]) -> list[str | None]:
    return [None for _ in rows]


async def refused(rows: Sequence[OutboxRow]) -> list[str | None]:
    return ["unroutable" for _ in rows]


async def nudge_of(store: Store, job_id: int) -> str | None:
    """The message that is out for the job."""
    rows = await fetch(store, "select message_id from nudges where job_id = :j", j=job_id)
    return rows[0][0] if rows else None


def dead(message_id: str, job_id: int | None = None, **fields: Any) -> DeadMessage:
    history = [
        {"queue": "orders", "reason": "delivery_limit", "count": 1, "deliveries": 3, "at": None}
    ]
    given = {"code": "POISON", "reason": "its consumer died three times",
             "payload": b"{}", "queue": "orders", "history": history, **fields}  # fmt: skip
    return DeadMessage(message_id, job_id, **given)


@scenario("relay")
class Relay:
    async def prepare(store: Store) -> str:
        message_id = str(uuid4())
        await SendAgain.act(store, message_id)
        return message_id

    async def act(store: Store, message_id: str) -> None:
        await store.messages.relay(sent)

    async def check(store: Store, message_id: str) -> None:
        assert not await fetch(store, "select 1 from outbox")


@scenario("relay")
class RelayRefused:
    prepare = Relay.prepare

    async def act(store: Store, message_id: str) -> None:
        await store.messages.relay(refused)

    async def check(store: Store, message_id: str) -> None:
        rows = await fetch(store, "select message_id from outbox")
        assert [tuple(row) for row in rows] == [(message_id,)]
        await execute(store, "delete from outbox")


@scenario("add_nudges")
class AddNudges:
    async def prepare(store: Store) -> int:
        return await filled_job(store, 3)

    async def act(store: Store, job_id: int) -> None:
        await store.nudges.add_nudges(True)

    async def check(store: Store, job_id: int) -> None:
        assert await nudge_of(store, job_id)
        await drain(store, job_id)


@scenario("keep_nudges")
class KeepNudges:
    """One of a job that has work, one of a job that has none, one that is let go of."""

    async def prepare(store: Store) -> list[Nudge]:
        jobs = [await filled_job(store, 3) for _ in range(3)]
        nudges = {nudge.job_id: nudge for nudge in await store.nudges.add_nudges(True)}
        await store.jobs.pause(jobs[1], "tester")
        return [nudges[job_id] for job_id in jobs]

    async def act(store: Store, nudges: list[Nudge]) -> None:
        kept = await store.nudges.keep_nudges(nudges[:2], nudges[2:])
        assert kept <= {nudges[0].message_id}

    async def check(store: Store, nudges: list[Nudge]) -> None:
        out = [await nudge_of(store, nudge.job_id) for nudge in nudges]
        assert out == [nudges[0].message_id, None, None]
        await store.jobs.resume(nudges[1].job_id, "tester")
        for nudge in nudges:
            await drain(store, nudge.job_id)


@scenario("renew_nudges")
class RenewNudges:
    async def prepare(store: Store) -> Nudge:
        job_id = await filled_job(store, 3)
        added = await store.nudges.add_nudges(True)
        return next(nudge for nudge in added if nudge.job_id == job_id)

    async def act(store: Store, lost: Nudge) -> None:
        await store.nudges.renew_nudges([lost])

    async def check(store: Store, lost: Nudge) -> None:
        assert await nudge_of(store, lost.job_id) not in (None, lost.message_id)
        await drain(store, lost.job_id)


@scenario("accept_job")
class AcceptJob:
    async def prepare(store: Store) -> str:
        return str(uuid4())

    async def act(store: Store, message_id: str) -> None:
        streams = [NewStream(f"site {message_id}", "fingerprint")]
        new = NewJob("demo", message_id, streams, lane=Lane.BACKFILL)
        await store.messages.accept_job(MessageKey(message_id, "job.start"), new)

    async def check(store: Store, message_id: str) -> None:
        jobs = await fetch(store, "select id from jobs where name = :n", n=message_id)
        assert len(jobs) == 1


@scenario("accept_job")
class AcceptJobOnASourceWalkedBefore:
    async def prepare(store: Store) -> str:
        message_id = str(uuid4())
        job = NewJob("demo", "before", [NewStream(f"site {message_id}", "f")], lane=Lane.BACKFILL)
        before = await store.jobs.create(job, "tester")
        await store.jobs.cancel(before, "tester")
        return message_id

    act = AcceptJob.act
    check = AcceptJob.check


@scenario("enqueue")
class AcceptRecords:
    """Makes a job that reads two sources: one is new, one was read before."""

    async def prepare(store: Store) -> str:
        message_id = str(uuid4())
        before = [NewStream("before", "v1")]
        new = NewJob(message_id, "standing", before, lane=Lane.EVENT, standing=True)
        job_id, _ = await store.jobs.open(new, "tester")
        await store.jobs.cancel(job_id, "tester")
        return message_id

    async def act(store: Store, message_id: str) -> None:
        async def fill(tx: Any) -> Addition:
            streams = [NewStream("new", "v1"), NewStream("before", "v1")]
            new = NewJob(
                message_id, "standing", streams, lane=Lane.EVENT, standing=True, topic="topic"
            )
            items = [NewItem('{"n": 1}')]
            return Addition(message_id, "local", items, topic="topic", opens=new)

        await store.additions.enqueue(fill, MessageKey(message_id, "orders"))

    async def check(store: Store, message_id: str) -> None:
        sql = "select id from jobs where pipeline = :p and topic = 'topic'"
        jobs = await fetch(store, sql, p=message_id)
        assert (await store.reads.counters(jobs[0][0])).accepted == 1
        assert (await store.reads.verify(jobs[0][0])).problems == []


@scenario("send_again")
class SendAgain:
    async def prepare(store: Store) -> str:
        return str(uuid4())

    async def act(store: Store, message_id: str) -> None:
        await store.messages.send_again(message_id, "orders", b"{}", 0.0)

    async def check(store: Store, message_id: str) -> None:
        rows = await fetch(
            store, "select distinct queue from outbox where message_id = :m", m=message_id
        )
        assert [tuple(row) for row in rows] == [("orders",)]


@scenario("return_message")
class ReturnMessage:
    async def prepare(store: Store) -> str:
        return str(uuid4())

    async def act(store: Store, message_id: str) -> None:
        await store.messages.return_message(message_id, "theirs", b"{}", {"shop": "north"})

    async def check(store: Store, message_id: str) -> None:
        sql = "select distinct exchange, routing_key from outbox where message_id = :m"
        assert await fetch(store, sql, m=message_id) == [("", "theirs")]


@scenario("forget_keys")
class ForgetKeys:
    async def prepare(store: Store) -> str:
        message_id = str(uuid4())
        await AcceptJob.act(store, message_id)
        await execute(store, "update taken_keys set at = '2020-01-01T00:00:00.000Z'")
        return message_id

    async def act(store: Store, message_id: str) -> None:
        await store.taken_keys.forget_keys(14 * 86400.0)

    async def check(store: Store, message_id: str) -> None:
        assert not await fetch(store, "select 1 from taken_keys")


async def _dead_message(store: Store) -> str:
    return str(uuid4())


async def _dead_and_replayed(store: Store) -> str:
    message_id = await _dead_message(store)
    await store.messages.keep_dead(dead(message_id))
    letters = await open_console(store).dead_letters.oldest("OPEN", 10)
    await store.jobs.act_on_dead_letter(letters[-1]["id"], True, "tester")
    return message_id


async def _keep_dead(store: Store, message_id: str) -> None:
    await store.messages.keep_dead(dead(message_id))


async def _is_one_letter(store: Store, message_id: str) -> None:
    letters = await fetch(
        store, "select state, message from dead_letters where message_id = :m", m=message_id
    )
    assert [tuple(letter) for letter in letters] == [("OPEN", "its consumer died three times")]
    await execute(store, "delete from dead_letters")


for _prepare in (_dead_message, _dead_and_replayed):
    SCENARIOS.append(Scenario("keep_dead", _prepare, _keep_dead, _is_one_letter))


@scenario("act_on_dead_letter")
class ReplayMessage:
    async def prepare(store: Store) -> tuple[int, str]:
        message_id = str(uuid4())
        await store.messages.keep_dead(dead(message_id))
        letters = await open_console(store).dead_letters.oldest("OPEN", 10)
        return letters[-1]["id"], message_id

    async def act(store: Store, state: tuple[int, str]) -> None:
        with suppress(UserError):
            await store.jobs.act_on_dead_letter(state[0], True, "tester")

    async def check(store: Store, state: tuple[int, str]) -> None:
        rows = await fetch(store, "select payload from outbox where message_id = :m", m=state[1])
        assert [bytes(row[0]) for row in rows] == [b"{}"]


async def _hold_duty(store: Store, name: str) -> None:
    assert await store.workers.hold_duty(name, "one")


simple_scenario("hold_duty", _hold_duty, "duties", "name", 1)
