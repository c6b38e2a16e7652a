"""The same for standing jobs."""

from __future__ import annotations

from contextlib import suppress
from hashlib import sha256
from uuid import UUID, uuid4

from holdfast.errors import UserError
from holdfast.kernel import NewJob, NewStream, Store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.arrivals.idempotency import MessageKey, RequestKey
from holdfast.kernel.record.counters import add_counts
from holdfast.model import ItemStatus
from holdfast_client.records import new_item
from tests.store.checks import (
    assert_sound,
    fetch,
    filled_job,
    make_job,
    work_off,
)
from tests.store.scenarios import drain, scenario


@scenario("open")
class Open:
    async def prepare(store: Store) -> str:
        pipeline = f"standing {uuid4()}"
        await store.jobs.cancel(await make_job(store, "old", pipeline=pipeline), "tester")
        return pipeline

    async def act(store: Store, pipeline: str) -> None:
        streams = [NewStream("old", "v1"), NewStream("new", "v1")]
        await store.jobs.open(NewJob(pipeline, pipeline, streams, standing=True), "tester")

    async def check(store: Store, pipeline: str) -> None:
        rows = await fetch(
            store, "select standing, state from jobs where pipeline = :p", p=pipeline
        )
        assert sorted(rows) == [(0, "CANCELLED"), (1, "RUNNING")]


@scenario("open")
class OpenForARequest:
    async def prepare(store: Store) -> RequestKey:
        request = RequestKey("ada", str(await store.jobs.now()))
        assert await store.taken_keys.begin_request(*request[:2], "same", "api") is None
        return request

    async def act(store: Store, request: RequestKey) -> None:
        with suppress(UserError):
            new = NewJob(request.key, request.key, [], standing=True, request=request)
            await store.jobs.open(new, "tester")

    async def check(store: Store, request: RequestKey) -> None:
        made = await fetch(store, "select id from jobs where pipeline = :p", p=request.key)
        answered = await store.taken_keys.begin_request(*request[:2], "same", "api")
        assert answered is not None and [row[0] for row in made] == [answered.made]


@scenario("fold")
class Fold:
    async def prepare(store: Store) -> int:
        job_id = await filled_job(store, 2)

        async def scatter(tx: object) -> None:
            for _ in range(40):
                await add_counts(tx, job_id, retried=1)  # type: ignore[arg-type]

        await store.database.write("test", scatter)
        return job_id

    async def act(store: Store, job_id: int) -> None:
        await store.counter_rows.fold()

    async def check(store: Store, job_id: int) -> None:
        rows = await fetch(store, "select retried from counters where job_id = :j", j=job_id)
        assert rows == [(40,)]
        await assert_sound(store, job_id)


class _Enqueue:
    """Keys make a resend harmless."""

    async def prepare(store: Store) -> str:
        pipeline = f"standing {uuid4()}"
        await store.jobs.open(NewJob(pipeline, pipeline, [], standing=True), "tester")
        return pipeline

    async def check(store: Store, pipeline: str) -> None:
        jobs = await fetch(store, "select id from jobs where pipeline = :p", p=pipeline)
        counters = await store.reads.counters(jobs[0][0])
        assert counters.accepted in (2, 4)
        await drain(store, jobs[0][0])


@scenario("enqueue")
class EnqueueKeyed(_Enqueue):
    prepare, check = _Enqueue.prepare, _Enqueue.check

    async def act(store: Store, pipeline: str) -> None:
        items = [new_item({"n": number}, f"{pipeline} {number}") for number in range(2)]
        await store.additions.enqueue(Addition(pipeline, "", items))


@scenario("enqueue")
class EnqueueWithoutKeys(_Enqueue):
    prepare, check = _Enqueue.prepare, _Enqueue.check

    async def act(store: Store, pipeline: str) -> None:
        items = [new_item({"n": number}) for number in range(2)]
        await store.additions.enqueue(Addition(pipeline, "", items))


@scenario("enqueue")
class EnqueueForARequest:
    async def prepare(store: Store) -> RequestKey:
        request = RequestKey("ada", str(await store.jobs.now()))
        await store.jobs.open(NewJob(request.key, request.key, [], standing=True), "tester")
        assert await store.taken_keys.begin_request(*request[:2], "same", "api") is None
        return request

    async def act(store: Store, request: RequestKey) -> None:
        with suppress(UserError):
            addition = Addition(request.key, "", [new_item({"n": 1})])
            await store.additions.enqueue(addition, request)

    async def check(store: Store, request: RequestKey) -> None:
        jobs = await fetch(store, "select id from jobs where pipeline = :p", p=request.key)
        assert (await store.reads.counters(jobs[0][0])).accepted == 1


@scenario("enqueue")
class EnqueueAKeyWhoseItemFailed:
    async def prepare(store: Store) -> str:
        pipeline = await _Enqueue.prepare(store)
        await EnqueueKeyed.act(store, pipeline)
        jobs = await fetch(store, "select id from jobs where pipeline = :p", p=pipeline)
        await work_off(store, jobs[0][0], ItemStatus.ERROR)
        return pipeline

    act = EnqueueKeyed.act

    async def check(store: Store, pipeline: str) -> None:
        jobs = await fetch(store, "select id from jobs where pipeline = :p", p=pipeline)
        assert (await store.reads.counters(jobs[0][0])).accepted == 4


@scenario("enqueue")
class AcceptItems:
    """Its key makes a message that comes again harmless."""

    async def prepare(store: Store) -> str:
        return await EnqueueAKeyWhoseItemFailed.prepare(store)

    async def act(store: Store, pipeline: str) -> None:
        for number, key in enumerate((None, "new", "new", "0")):
            addition = Addition(pipeline, "", [new_item({"n": 0}, key and f"{pipeline} {key}")])
            message_id = str(UUID(bytes=sha256(f"{pipeline} {number}".encode()).digest()[:16]))
            await store.additions.enqueue(addition, MessageKey(message_id, "items.add"))

    async def check(store: Store, pipeline: str) -> None:
        jobs = await fetch(store, "select id from jobs where pipeline = :p", p=pipeline)
        counters = await store.reads.counters(jobs[0][0])
        assert (counters.accepted, counters.known) == (2 + 3, 1)
