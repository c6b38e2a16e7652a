"""Effects of an item reach `save`, and are stored nowhere else."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest

from holdfast import Backoff, Context, Done, Failed, NotFound, Pipeline, Settled, Skip, Tx
from holdfast.errors import PipelineError
from holdfast.kernel import OutboxRow, Store
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.record.settle import FlushLimits
from holdfast.model import ItemStatus, Json
from tests.engine.one_worker import work
from tests.store.checks import fetch, filled_job, items_of


class Demo(Pipeline):
    name = "demo"
    max_attempts_not_found = 1

    def __init__(self) -> None:
        super().__init__()
        self.saved: dict[int, Settled] = {}

    def normalize(self, row: Json) -> Json:
        return {"number": row["n"]}

    async def process(self, row: Json, ctx: Context) -> Any:
        match row["number"] % 4:
            case 0:
                return Done({"n": row["number"]}, effects=[row["number"], "offer"])
            case 1:
                raise NotFound
            case 2:
                raise Skip("not today")
        raise Failed("ACCESS_DENIED", "members only")

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        self.saved |= {item.seq: item for item in settled}


async def test_save_sees_the_outcome_of_each_item_and_its_effects(store: Store) -> None:
    demo = Demo()
    job_id = await filled_job(store, 4)
    await work(store, demo)
    by_number = {item.row["n"]: item for item in demo.saved.values()}
    assert {number: item.normalized for number, item in by_number.items()} == {
        number: {"number": number} for number in range(4)
    }
    assert [by_number[n].status for n in range(4)] == [
        ItemStatus.DONE,
        ItemStatus.NOT_FOUND,
        ItemStatus.SKIPPED,
        ItemStatus.ERROR,
    ]
    assert [by_number[n].effects for n in range(4)] == [[0, "offer"], None, None, None]
    assert (by_number[3].code, by_number[3].message) == ("ACCESS_DENIED", "members only")
    assert (by_number[0].attempts, by_number[0].result) == (1, {"n": 0})
    stored = await items_of(store, job_id, [ItemStatus.DONE])
    assert [item.result for item in stored] == ['{"n":0}']


class Searching(Demo):
    columns = ("price", "why")
    max_attempts_not_found = 2

    def __init__(self) -> None:
        self.backoff = {"not_found": Backoff(0, 0)}
        super().__init__()
        self.searches: list[tuple[ItemStatus, Any]] = []

    async def process(self, row: Json, ctx: Context) -> Any:
        result = {"price": None, "why": "no offer"}
        raise NotFound("nobody sells it", result=result, effects=f"search {ctx.attempt}")

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        self.searches += [(item.status, item.effects) for item in settled]


async def test_what_is_not_found_has_a_result_and_effects_of_each_attempt(store: Store) -> None:
    searching = Searching()
    job_id = await filled_job(store, 1)
    await work(store, searching)
    assert searching.searches == [
        (ItemStatus.PENDING, "search 1"),
        (ItemStatus.NOT_FOUND, "search 2"),
    ]
    stored = await items_of(store, job_id, [ItemStatus.NOT_FOUND])
    assert [(item.result, item.error_message) for item in stored] == [
        ('{"price":null,"why":"no offer"}', "nobody sells it")
    ]


class Stubborn(Demo):
    """Its `save` refuses a batch with a bad record, and accepts the others one by one."""

    async def process(self, row: Json, ctx: Context) -> Any:
        return Done({}, effects={"number": row["number"]})

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        if any(item.effects["number"] == 2 for item in settled):
            raise ValueError("two is bad")
        await super().save(tx, settled)


async def test_effects_survive_a_save_that_is_tried_again_one_by_one(store: Store) -> None:
    stubborn = Stubborn()
    stubborn.max_attempts = 1
    job_id = await filled_job(store, 4)
    await work(store, stubborn)
    assert {item.effects["number"] for item in stubborn.saved.values()} == {0, 1, 3}
    [failed] = await items_of(store, job_id, [ItemStatus.ERROR])
    assert failed.error_code == "DATABASE_ERROR"


class Sender(Stubborn):
    """Sends a message for each item that it accepts."""

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        for item in settled:
            number = item.effects["number"]
            await tx.send("shop", f"orders.{number}", {"n": number}, headers={"kind": "order"})
        await super().save(tx, settled)


async def test_messages_of_save_are_sent_with_the_outcomes_and_not_without(store: Store) -> None:
    await filled_job(store, 4)
    await work(store, Sender())
    sent: list[OutboxRow] = []

    async def publish(rows: Sequence[OutboxRow]) -> list[str | None]:
        sent.extend(row for row in rows if row.exchange is not None)
        return [None] * len(rows)

    await store.messages.relay(publish)
    assert sorted((row.exchange, row.routing_key, row.payload) for row in sent) == [
        ("shop", f"orders.{number}", b'{"n":%d}' % number) for number in (0, 1, 3)
    ]
    assert [row.headers for row in sent] == [{"kind": "order"}] * 3
    assert len({row.message_id for row in sent}) == 3


@pytest.mark.parametrize(
    ("body", "payload"), [(b"\x00raw", b"\x00raw"), ("text", b"text"), ([1], b"[1]")]
)
async def test_body_of_a_message_is_sent_as_it_is_or_as_json(
    store: Store, body: Any, payload: bytes
) -> None:
    async def send(tx: Transaction) -> str:
        return await tx.send("shop", "orders", body, message_id="mine")

    assert await store.database.write("test", send) == "mine"
    rows = await fetch(store, "select message_id, payload from outbox where exchange = 'shop'")
    assert [(row[0], bytes(row[1])) for row in rows] == [("mine", payload)]


@pytest.mark.parametrize(
    ("key", "body", "reason"), [("k" * 300, {}, "longer than"), ("k", object(), "not JSON")]
)
async def test_message_that_cannot_be_sent_is_refused_at_once(
    store: Store, key: str, body: Any, reason: str
) -> None:
    with pytest.raises(PipelineError, match=reason):
        await store.database.write("test", lambda tx: tx.send("shop", key, body))


class Saving(Pipeline):
    """Its first settlement ends after the items of the next ones were processed, and fails."""

    name = "demo"

    def __init__(self) -> None:
        super().__init__()
        self.processed = 0
        self.calls: list[list[int]] = []

    async def process(self, row: Json, ctx: Context) -> Any:
        self.processed += 1
        while self.processed > 10 and not self.calls:
            await asyncio.sleep(0)
        return row

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        assert all(item.row.pop("n") >= 0 for item in settled), "a copy of its own, each time"
        self.calls.append([item.seq for item in settled])
        while self.processed < 40:
            await asyncio.sleep(0)
        if len(self.calls) == 1:
            raise ValueError("one of them is bad")


async def test_settlements_that_overlap_save_each_item_once(store: Store) -> None:
    saving = Saving()
    job_id = await filled_job(store, 60)
    await work(store, saving, flush=FlushLimits(items=10), HOLDFAST_CLAIM_MIN="60")
    first, *later = saving.calls
    assert later[: len(first)] == [[seq] for seq in first], "each on its own"
    assert sorted(seq for call in later for seq in call) == list(range(1, 61))
    assert len(first) < 60 and len(later) > len(first)
    assert (await store.reads.counters(job_id)).done == 60
