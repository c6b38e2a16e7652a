"""Outbox and turns: one message for a slice at a time, in order, never lost, never early."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import uuid4

import orjson
import pytest

from holdfast.console import open_console
from holdfast.errors import UserError
from holdfast.model import ItemStatus, Lane, SliceKind
from holdfast.store import NewJob, NewStream, OutboxRow, Store, open_store
from holdfast.store.idempotency import MessageKey
from holdfast.store.messages import Relayed
from tests.store.checks import (
    MEGABYTES,
    claim,
    claim_one,
    execute,
    fetch,
    filled_job,
    lease_stream,
    settle,
    settlement_of,
)
from tests.store.message_scenarios import DISCOVER, PROCESS, dead, out, outbox_of, refused, sent

NOW = "2020-01-01T00:00:00.000Z"


class Sender:
    """Takes every message and remembers them in order."""

    def __init__(self) -> None:
        self.rows: list[OutboxRow] = []

    async def __call__(self, rows: Sequence[OutboxRow]) -> list[str | None]:
        self.rows += rows
        return [None] * len(rows)

    @property
    def kinds(self) -> list[tuple[int, str]]:
        return [(row.job_id, row.kind) for row in self.rows]


async def _discovery(store: Store, lane: Lane = Lane.BACKFILL) -> int:
    streams = [NewStream("site {job}", "fingerprint")]
    return await store.jobs.create(NewJob("demo", "walk", streams, lane=lane), "tester")


async def _send(store: Store, job_id: int, text: str) -> None:
    params = {"message_id": str(uuid4()), "job_id": job_id, "queue": "interactive",
              "payload": text.encode(), "delay": 0.0}  # fmt: skip
    await store.database.write("test", lambda tx: tx.run("add_message", params))


async def test_pages_of_a_job_make_one_message(store: Store) -> None:
    job_id = await filled_job(store, 3, 3, 3)
    sender = Sender()
    relayed = await store.messages.relay(sender)
    assert sender.kinds == [(job_id, "process")]
    assert (relayed.sent, relayed.merged) == (1, 2)
    assert not await outbox_of(store, job_id)


async def test_no_second_message_while_one_is_out(store: Store) -> None:
    job_id = await filled_job(store, 3)
    await store.messages.relay(sent)
    await store.messages.end_turn(job_id, PROCESS)
    assert not await outbox_of(store, job_id)
    await store.jobs.pause(job_id, "tester")
    await store.jobs.resume(job_id, "tester")
    sender = Sender()
    await store.messages.relay(sender)
    assert not sender.rows


async def test_after_a_message_was_taken_the_next_is_sent(store: Store) -> None:
    job_id = await filled_job(store, 3)
    await store.messages.relay(sent)
    taken = await out(store, job_id)
    assert taken is not None
    await store.messages.begin_turn(job_id, PROCESS, taken, 100)
    await store.messages.end_turn(job_id, PROCESS)
    sender = Sender()
    await store.messages.relay(sender)
    assert sender.kinds == [(job_id, "process")]


async def test_message_that_is_taken_before_its_relay_commits_leaves_no_turn_open(
    store: Store,
) -> None:
    job_id = await filled_job(store, 3)
    takings: list[asyncio.Task[object]] = []

    async def taken_at_once(rows: Sequence[OutboxRow]) -> list[str | None]:
        for row in rows:
            taking = store.messages.begin_turn(job_id, PROCESS, row.message_id, 100)
            takings.append(asyncio.create_task(taking))
        await asyncio.wait(takings, timeout=0.2)
        return [None] * len(rows)

    await store.messages.relay(taken_at_once)
    await asyncio.gather(*takings)
    assert await out(store, job_id) is None


async def test_another_worker_is_invited_only_when_there_is_more_than_room(store: Store) -> None:
    job_id = await filled_job(store, 10)
    await store.messages.relay(sent)
    taken = str(await out(store, job_id))
    await store.messages.begin_turn(job_id, PROCESS, taken, 10)
    assert not await outbox_of(store, job_id)
    await store.messages.begin_turn(job_id, PROCESS, taken, 9)
    assert await outbox_of(store, job_id) == [("process",)]


async def test_another_walk_is_invited_while_a_stream_of_the_job_is_free(store: Store) -> None:
    new = NewJob("demo", "a job", [NewStream(s, s) for s in ("north", "south")], lane=Lane.EVENT)
    job_id = await store.jobs.create(new, "tester")
    invited = []
    for _ in range(3):
        sender = Sender()
        await store.messages.relay(sender)
        invited.append(sender.kinds == [(job_id, "discover")])
        if sender.rows:
            message_id = sender.rows[0].message_id
            await store.messages.begin_turn(job_id, DISCOVER, message_id, 100)
            await lease_stream(store, job_id)
    assert invited == [True, True, False]


async def test_no_worker_is_invited_when_the_owner_may_have_no_more_workers(store: Store) -> None:
    job_id = await filled_job(store, 10)
    await store.messages.relay(sent)
    taken = str(await out(store, job_id))
    await store.messages.begin_turn(job_id, PROCESS, taken, 2, owner_slices=1)
    assert not await outbox_of(store, job_id)
    await store.leases.claim(job_id, "another", 3, MEGABYTES, 60.0)
    await store.messages.begin_turn(job_id, PROCESS, taken, 2, owner_slices=2)
    assert not await outbox_of(store, job_id)
    await store.messages.begin_turn(job_id, PROCESS, taken, 2, owner_slices=3)
    assert await outbox_of(store, job_id) == [("process",)]


async def test_job_gives_way_to_another_of_its_owner_that_waited_for_its_end(store: Store) -> None:
    ended, waiting = await filled_job(store, 3), await filled_job(store, 3)
    await execute(store, "delete from outbox")
    await store.messages.end_turn(waiting, PROCESS, 3600)
    await store.messages.end_turn(ended, PROCESS, frees_owner=True)
    sender = Sender()
    await store.messages.relay(sender)
    assert sender.kinds == [(waiting, "process")]
    assert await outbox_of(store, ended) == [("process",)]


async def test_message_of_a_gone_job_is_obsolete(store: Store) -> None:
    assert await store.messages.begin_turn(4711, PROCESS, str(uuid4()), 10) is None


async def test_upload_has_no_discovery_messages(store: Store) -> None:
    job_id = await _discovery(store, Lane.UPLOAD)
    await store.messages.end_turn(job_id, DISCOVER)
    assert not await outbox_of(store, job_id)


async def test_retry_is_announced_for_when_it_is_due(store: Store) -> None:
    job_id = await filled_job(store, 2)
    await execute(store, "delete from outbox")
    held = await claim_one(store, job_id)
    later = settlement_of(held, ItemStatus.PENDING, delay=3600.0)
    await store.outcomes.settle(job_id, "one", [later])
    assert await outbox_of(store, job_id) == [("process",)]
    sender = Sender()
    await store.messages.relay(sender)
    assert not sender.rows


async def test_end_of_a_turn_announces_what_is_due_later(store: Store) -> None:
    job_id = await filled_job(store, 2)
    held = await claim_one(store, job_id)
    await store.outcomes.settle(
        job_id, "one", [settlement_of(held, ItemStatus.PENDING, delay=3600.0)]
    )
    await execute(store, "delete from outbox")
    await store.messages.end_turn(job_id, PROCESS)
    due = await fetch(store, "select available_at from outbox where job_id = :j", j=job_id)
    now = (await fetch(store, "select available_at from ranges where job_id = :j", j=job_id))[0][0]
    assert len(due) == 1
    assert str(due[0][0])[:16] == str(now)[:16]


async def test_nothing_is_announced_under_a_kill_switch(store: Store) -> None:
    job_id = await filled_job(store, 2)
    await execute(store, "delete from outbox")
    await store.jobs.switch("pipeline:demo", True, "tester")
    await store.messages.end_turn(job_id, PROCESS)
    await store.messages.announce_silent(["demo"], 60)
    assert not await outbox_of(store, job_id)
    await store.jobs.switch("pipeline:demo", False, "tester")
    await store.messages.announce_silent(["demo"], 60)
    assert await outbox_of(store, job_id) == [("process",)]


async def test_silent_jobs_are_announced_once_and_only_for_listened_pipelines(
    store: Store,
) -> None:
    job_id, walk = await filled_job(store, 2), await _discovery(store)
    await execute(store, "delete from outbox")
    assert await store.messages.announce_silent(["other"], 60) == []
    assert await store.messages.announce_silent(["demo"], 60) == [job_id, walk]
    assert await store.messages.announce_silent(["demo"], 60) == []


async def test_items_that_are_soon_due_are_announced_for_then_once(store: Store) -> None:
    job_id = await filled_job(store, 2)
    await settle(store, await claim_one(store, job_id), ItemStatus.PENDING, delay=20)
    await execute(store, "delete from outbox")
    assert await store.messages.announce_silent(["demo"], 60, ahead=5) == []
    for announced in ([job_id], []):
        assert await store.messages.announce_silent(["demo"], 60, ahead=30) == announced
    for _ in range(2):  # one that ends a turn sees that it is announced
        await store.messages.end_turn(job_id, PROCESS)
    assert await outbox_of(store, job_id) == [("process",)]
    assert (await store.messages.relay(sent)).sent == 0  # not before its time


async def test_lost_message_is_sent_again_each_time_later(store: Store) -> None:
    job_id = await filled_job(store, 2)
    for resent in range(3):
        await store.messages.relay(sent)
        await execute(store, "update turns set sent_at = :t", t=_past(store))
        assert await store.messages.announce_silent(["demo"], 60) == [job_id]
        rows = await fetch(store, "select resent from turns where job_id = :j", j=job_id)
        assert rows[0][0] == resent + 1


async def test_refused_message_waits_and_is_sent_later(store: Store) -> None:
    job_id = await filled_job(store, 2)
    relayed = await store.messages.relay(refused)
    assert list(relayed.failed.values()) == ["unroutable"]
    assert await store.messages.relay(sent) == Relayed()
    await execute(store, "update outbox set available_at = created_at")
    assert (await store.messages.relay(sent)).sent == 1
    assert await out(store, job_id)


async def test_other_messages_of_a_job_keep_their_order(store: Store) -> None:
    job_id = await filled_job(store, 1)
    for text in ("a", "b", "c"):
        await _send(store, job_id, text)
    sender = Sender()
    await store.messages.relay(sender)
    assert [bytes(row.payload or b"-").decode() for row in sender.rows] == ["-", "a", "b", "c"]


async def test_two_relays_send_each_message_once_and_in_order(
    store: Store, database_url: str
) -> None:
    jobs = [await filled_job(store, 1) for _ in range(5)]
    await execute(store, "delete from outbox")
    for number in range(20):
        for job_id in jobs:
            await _send(store, job_id, str(number))
    other = await open_store(database_url)
    sender = Sender()

    async def send(rows: Sequence[OutboxRow]) -> list[str | None]:
        await asyncio.sleep(0.005)
        return await sender(rows)

    async def relay(relaying: Store) -> None:
        while await fetch(store, "select 1 from outbox limit 1"):
            await relaying.messages.relay(send)

    await asyncio.gather(relay(store), relay(other))
    await other.close()
    for job_id in jobs:
        texts = [int(bytes(r.payload or b"")) for r in sender.rows if r.job_id == job_id]
        assert texts == list(range(20))


async def test_relay_that_dies_after_sending_sends_again(store: Store) -> None:
    job_id = await filled_job(store, 1)
    sender = Sender()

    async def die(rows: Sequence[OutboxRow]) -> list[str | None]:
        await sender(rows)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        await store.messages.relay(die)
    await store.messages.relay(sender)
    first, second = sender.rows
    assert first.message_id == second.message_id
    assert first.job_id == job_id


async def test_order_by_message_starts_one_job(store: Store) -> None:
    message_id = str(uuid4())
    new = NewJob("demo", "ordered", [NewStream("site", "v1")], lane=Lane.BACKFILL)
    first = await store.messages.accept_job(MessageKey(message_id, "job.start"), new)
    assert first is not None
    assert await store.messages.accept_job(MessageKey(message_id, "job.start"), new) is None


async def test_replayed_message_keeps_its_first_error_and_its_history(store: Store) -> None:
    message_id = str(uuid4())
    await store.messages.keep_dead(dead(message_id, reason="first"))
    letter = (await open_console(store).dead_letters.oldest("OPEN", 10))[0]
    await store.jobs.act_on_dead_letter(letter["id"], True, "tester")
    sender = Sender()
    await store.messages.relay(sender)
    assert [bytes(row.payload or b"") for row in sender.rows] == [b"{}"]
    await store.messages.keep_dead(dead(message_id, reason="second"))
    letters = await open_console(store).dead_letters.oldest("OPEN", 10)
    assert [one["message"] for one in letters] == ["first"]
    rows = await fetch(store, "select history from dead_letters")
    assert len(orjson.loads(rows[0][0])) == 2


async def test_messages_of_the_same_id_are_all_kept(store: Store) -> None:
    """Another program may call all of its messages the same."""
    for payload in (b"one", b"two", b"two"):
        await store.messages.keep_dead(dead("order")._replace(payload=payload))
    letters = await open_console(store).dead_letters.oldest("OPEN", 10)
    kept = [await open_console(store).dead_letters.letter(letter["id"]) for letter in letters]
    assert [letter["payload"] for letter in kept] == ["one", "two"]


async def test_dropped_message_is_not_sent(store: Store) -> None:
    await store.messages.keep_dead(dead(str(uuid4())))
    letter = (await open_console(store).dead_letters.oldest("OPEN", 10))[0]
    await store.jobs.act_on_dead_letter(letter["id"], False, "tester")
    assert await store.messages.relay(sent) == Relayed()
    with pytest.raises(UserError):
        await store.jobs.act_on_dead_letter(letter["id"], True, "tester")


@pytest.mark.postgres
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_notice_wakes_a_relay(store: Store) -> None:
    heard = asyncio.Event()
    listening = asyncio.create_task(store.messages.listen(heard.set))
    await asyncio.sleep(0.2)
    await filled_job(store, 1)
    await asyncio.wait_for(heard.wait(), 10)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


async def test_owner_has_at_most_so_many_workers(store: Store, database_url: str) -> None:
    limited = await open_store(database_url, owner_slices=2)
    job_id = await filled_job(store, 10, 10, 10, 10)
    held = [await claim(limited, job_id, 10, worker) for worker in ("one", "two")]
    assert all(held)
    assert await claim(limited, job_id, 10, "three") == []
    assert await claim(limited, job_id, 10, "one")
    await settle(store, held[1][0])
    assert await claim(limited, job_id, 10, "three")
    await limited.close()


async def test_duty_is_one_process_as_long_as_it_lives(store: Store) -> None:
    for name in ("one", "two"):
        await store.workers.add_worker(name, "host", 1, [])
    assert await store.workers.hold_duty("sweep", "one")
    assert not await store.workers.hold_duty("sweep", "two")
    assert await store.workers.hold_duty("sweep", "one")
    await store.workers.lose("one", gone=True)
    assert await store.workers.hold_duty("sweep", "two")
    await store.workers.stop_worker("two")
    assert await store.workers.hold_duty("sweep", "one")


async def test_other_kind_of_slice_has_its_own_message(store: Store) -> None:
    walk = await _discovery(store)
    await store.messages.relay(sent)
    assert await out(store, walk, SliceKind.DISCOVER)
    assert await out(store, walk, SliceKind.PROCESS) is None


def _past(store: Store) -> object:
    if store.database.driver.dialect == "postgres":
        return datetime(2020, 1, 1, tzinfo=UTC)
    return NOW
