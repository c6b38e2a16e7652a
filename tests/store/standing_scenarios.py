"""The same for standing jobs."""

from __future__ import annotations

from holdfast.store import NewJob, NewStream, Store
from holdfast.store.counters import add_counts
from tests.store.checks import assert_sound, fetch, filled_job, make_job
from tests.store.scenarios import scenario


@scenario("open")
class Open:
    async def prepare(store: Store) -> str:
        pipeline = f"standing {await store.jobs.now()}"
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
