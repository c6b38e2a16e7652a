"""The same for the verbs of messages: outbox, turns, dead letters, duties."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import uuid4

from holdfast.console import open_console
from holdfast.errors import UserError
from holdfast.model import Lane, SliceKind
from holdfast.store import DeadMessage, NewItem, NewJob, NewStream, OutboxRow, Store
from holdfast.store.enqueue import Addition
from holdfast.store.idempotency import MessageKey
from tests.store.checks import execute, fetch, filled_job
from tests.store.scenarios import SCENARIOS, Scenario, drain, scenario
from tests.store.upkeep_scenarios import simple_scenario

PROCESS, DISCOVER = SliceKind.PROCESS, SliceKind.DISCOVER


async def sent(rows: Sequence[OutboxRow]) -> list[str | None]:
    return [None for _ in rows]


async def refused(rows: Sequence[OutboxRow]) -> list[str | None]:
    return ["unroutable" for _ in rows]


async def outbox_of(store: Store, job_id: int) -> list[Any]:
    return await fetch(store, "select kind from outbox where job_id = :j order by id", j=job_id)


async def out(store: Store, job_id: int, kind: SliceKind = PROCESS) -> str | None:
    """The message that is out for the job."""
    rows = await fetch(
        store, "select message_id from turns where job_id = :j and kind = :k", j=job_id, k=kind
    )
    return rows[0][0] if rows else None


def dead(message_id: str, job_id: int | None = None, **fields: Any) -> DeadMessage:
    history = [
        {"queue": "bulk", "reason": "delivery_limit", "count": 1, "deliveries": 3, "at": None}
    ]
    given = {"kind": PROCESS, "code": "POISON", "reason": "its consumer died three times",
             "payload": b"{}", "queue": "bulk", "history": history, **fields}  # fmt: skip
    return DeadMessage(message_id, job_id, **given)


@scenario("relay")
class Relay:
    async def prepare(store: Store) -> int:
        return await filled_job(store, 2, 2)

    async def act(store: Store, job_id: int) -> None:
        await store.messages.relay(sent)

    async def check(store: Store, job_id: int) -> None:
        assert not await outbox_of(store, job_id)
        assert await out(store, job_id)
        await drain(store, job_id)


@scenario("relay")
class RelayRefused:
    async def prepare(store: Store) -> int:
        return await filled_job(store, 2)

    async def act(store: Store, job_id: int) -> None:
        await store.messages.relay(refused)

    async def check(store: Store, job_id: int) -> None:
        assert await outbox_of(store, job_id) == [("process",)]
        assert await out(store, job_id) is None
        await execute(store, "delete from outbox")


@scenario("begin_turn")
class BeginTurn:
    async def prepare(store: Store) -> tuple[int, str]:
        job_id = await filled_job(store, 5)
        await store.messages.relay(sent)
        return job_id, str(await out(store, job_id))

    async def act(store: Store, state: tuple[int, str]) -> None:
        assert await store.messages.begin_turn(state[0], PROCESS, state[1], 2)

    async def check(store: Store, state: tuple[int, str]) -> None:
        assert await out(store, state[0]) is None
        assert ("process",) in await outbox_of(store, state[0])


@scenario("end_turn")
class EndTurn:
    async def prepare(store: Store) -> int:
        job_id = await filled_job(store, 3)
        await execute(store, "delete from outbox")
        return job_id

    async def act(store: Store, job_id: int) -> None:
        await store.messages.end_turn(job_id, PROCESS)

    async def check(store: Store, job_id: int) -> None:
        assert ("process",) in await outbox_of(store, job_id)


@scenario("end_turn")
class EndTurnThatAnotherJobOfTheOwnerWaitedFor:
    async def prepare(store: Store) -> tuple[int, int]:
        jobs = (await filled_job(store, 3), await filled_job(store, 3))
        await execute(store, "delete from outbox")
        await store.messages.end_turn(jobs[1], PROCESS, 3600)
        return jobs

    async def act(store: Store, jobs: tuple[int, int]) -> None:
        await store.messages.end_turn(jobs[0], PROCESS, frees_owner=True)

    async def check(store: Store, jobs: tuple[int, int]) -> None:
        await store.messages.relay(sent)
        assert await out(store, jobs[1])
        assert await out(store, jobs[0]) or await outbox_of(store, jobs[0])


@scenario("announce_silent")
class AnnounceSilent:
    async def prepare(store: Store) -> int:
        job_id = await filled_job(store, 3)
        await store.messages.relay(sent)
        await execute(store, "update turns set sent_at = '2020-01-01T00:00:00.000Z'")
        return job_id

    async def act(store: Store, job_id: int) -> None:
        await store.messages.announce_silent(["demo"], 60)

    async def check(store: Store, job_id: int) -> None:
        assert await outbox_of(store, job_id) == [("process",)]


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
        assert await outbox_of(store, jobs[0][0]) == [("discover",)]


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
        await store.messages.send_again(message_id, "interactive", b"{}", 0.0)

    async def check(store: Store, message_id: str) -> None:
        rows = await fetch(
            store, "select distinct queue, kind from outbox where message_id = :m", m=message_id
        )
        assert [tuple(row) for row in rows] == [("interactive", "message")]


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


async def _dead_turn(store: Store) -> tuple[int, str]:
    job_id = await filled_job(store, 2)
    await store.messages.relay(sent)
    return job_id, str(await out(store, job_id))


async def _dead_and_replayed(store: Store) -> tuple[int, str]:
    job_id, message_id = await _dead_turn(store)
    await store.messages.keep_dead(dead(message_id, job_id))
    letters = await open_console(store).dead_letters.oldest("OPEN", 10)
    await store.jobs.act_on_dead_letter(letters[-1]["id"], True, "tester")
    return job_id, message_id


async def _keep_dead(store: Store, state: tuple[int, str]) -> None:
    await store.messages.keep_dead(dead(state[1], state[0]))


async def _is_one_letter(store: Store, state: tuple[int, str]) -> None:
    letters = await fetch(
        store, "select state, message from dead_letters where message_id = :m", m=state[1]
    )
    assert [tuple(letter) for letter in letters] == [("OPEN", "its consumer died three times")]
    assert await out(store, state[0]) is None
    await execute(store, "delete from dead_letters")


for _prepare in (_dead_turn, _dead_and_replayed):
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
