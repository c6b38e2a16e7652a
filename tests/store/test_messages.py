"""The outbox, its relays, orders and dead letters: in order, never lost, done once."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from uuid import uuid4

import orjson
import pytest

from holdfast.errors import UserError
from holdfast.features.console import open_console
from holdfast.kernel import NewJob, NewStream, OutboxRow, Store, open_store
from holdfast.kernel.arrivals.idempotency import MessageKey
from holdfast.kernel.outbox.messages import Relayed
from holdfast.model import Lane
from tests.store.checks import execute, fetch
from tests.store.message_scenarios import dead, refused, sent


class Sender:
    """Takes every message and remembers them in order."""

    def __init__(self) -> None:
        self.rows: list[OutboxRow] = []

    async def __call__(self, rows: Sequence[OutboxRow]) -> list[str | None]:
        self.rows += rows
        return [None] * len(rows)

    @property
    def texts(self) -> list[str]:
        return [bytes(row.payload).decode() for row in self.rows]


async def _send(store: Store, *texts: str) -> None:
    for text in texts:
        await store.messages.send_again(str(uuid4()), "orders", text.encode(), 0.0)


async def test_refused_message_waits_and_is_sent_later(store: Store) -> None:
    await _send(store, "a")
    relayed = await store.messages.relay(refused)
    assert list(relayed.failed.values()) == ["unroutable"]
    assert await store.messages.relay(sent) == Relayed()
    await execute(store, "update outbox set available_at = created_at")
    assert (await store.messages.relay(sent)).sent == 1


async def test_message_that_is_refused_does_not_hold_up_the_others(store: Store) -> None:
    await _send(store, "a", "b")

    async def refuse_a(rows: Sequence[OutboxRow]) -> list[str | None]:
        return ["no" if bytes(row.payload) == b"a" else None for row in rows]

    relayed = await store.messages.relay(refuse_a)
    assert (relayed.sent, list(relayed.failed.values())) == (1, ["no"])
    assert len(await fetch(store, "select 1 from outbox")) == 1


async def test_message_is_not_sent_before_its_time(store: Store) -> None:
    await store.messages.send_again(str(uuid4()), "orders", b"a", 3600.0)
    assert await store.messages.relay(sent) == Relayed()


async def test_two_relays_send_each_message_once_and_in_order(
    store: Store, database_url: str
) -> None:
    texts = [str(number) for number in range(60)]
    await _send(store, *texts)
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
    assert sender.texts == texts


async def test_relay_that_dies_after_sending_sends_again(store: Store) -> None:
    await _send(store, "a")
    sender = Sender()

    async def die(rows: Sequence[OutboxRow]) -> list[str | None]:
        await sender(rows)
        raise RuntimeError("killed")

    with pytest.raises(RuntimeError):
        await store.messages.relay(die)
    await store.messages.relay(sender)
    first, second = sender.rows
    assert first.message_id == second.message_id


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
    assert sender.texts == ["{}"]
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
    await _send(store, "a")
    await asyncio.wait_for(heard.wait(), 10)
    listening.cancel()
    await asyncio.gather(listening, return_exceptions=True)


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
