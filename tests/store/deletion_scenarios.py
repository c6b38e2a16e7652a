"""The scenarios of deletion, and a job that has something in every table."""

from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from uuid import uuid4

from holdfast.errors import NotThere, UnfitState
from holdfast.features.console import open_console
from holdfast.features.deletion.job_rows import JobRows
from holdfast.features.deletion.removal import OldItems
from holdfast.features.deletion.retention_rows import RetentionRows
from holdfast.features.deletion.rules import DeletionRows
from holdfast.features.exports.exports import NewExport
from holdfast.features.library.files import NewFile, StoredFile
from holdfast.features.rulings.rules import NewRuling
from holdfast.kernel import DecisionRow, NewJob, NewStream, Settlement, Store
from holdfast.kernel.arrivals.enqueue import Addition
from holdfast.kernel.database import schema
from holdfast.kernel.database.chunks import NamedItems
from holdfast.kernel.gates.table import Passes
from holdfast.model import FINAL, ItemStatus, JobState
from holdfast.pipeline import Dedupe
from holdfast.rulings import RulingKind
from holdfast_client.records import new_item
from tests.store.checks import (
    claim,
    claim_one,
    execute,
    fetch,
    ingest,
    keyed,
    lease_stream,
    make_job,
    outcome_of,
    records,
    state_of,
    work_off,
)
from tests.store.scenarios import SCENARIOS, scenario

__all__ = ["SCENARIOS"]

KEYS = ("a", "b", "c", "d")


async def rich_job(store: Store, scope: str = "demo", pipeline: str = "demo") -> int:
    """A running job: done, failed, retried, ruled and open items, and whatever else there is."""
    job_id = await make_job(store, pipeline=pipeline)
    stream = await lease_stream(store, job_id)
    await ingest(store, stream, keyed(*KEYS), Dedupe(scope))
    claimed = await claim_one(store, job_id, size=3)
    done, failed, again = claimed.rows
    outcomes = [
        outcome_of(done),
        outcome_of(failed, ItemStatus.ERROR),
        outcome_of(again, ItemStatus.PENDING),
    ]
    decisions = [DecisionRow("claim", 1, 2, "for the test")]
    settlement = Settlement(claimed.lease, outcomes, last=True)
    assert not await store.outcomes.settle(job_id, "one", [settlement], decisions=decisions)
    job = await store.reads.job(job_id)
    ruling = NewRuling(RulingKind.REJECT, None, "wrong", "ada", 0)
    await open_console(store).rulings.rule(job, done[0], ruling)
    await open_console(store).exports.add_export(NewExport("local", job_id, "csv", (), False))
    await store.samples.take_samples()
    await store.gates.count_passes({("api", job_id): Passes(passed=1)})
    await execute(
        store,
        "insert into dead_letters (kind, job_id, seq, pipeline, code, message, state, created_at)"
        " values ('item', :j, :s, 'demo', 'CRASHED', 'x', 'OPEN', @now)",
        j=job_id,
        s=failed[0],
    )
    await execute(
        store,
        "insert into nudges (job_id, pipeline, message_id, seen_at) values (:j, 'demo', 'm', @now)",
        j=job_id,
    )
    return job_id


#: They keep the number of a job that was deleted: what people did, the files of adapters, gates.
_KEEP_ITS_NUMBER = {"audit", "adapter_files", "gates"}
_SCHEMA = Path(schema.__file__).parent / "schema" / "schema.sql"
#: Every other table with rows of jobs.
TABLES_OF_JOBS = [
    found[1]
    for found in re.finditer(r"create table (\w+) \((.*?)\n\)", _SCHEMA.read_text(), re.DOTALL)
    if re.search(r"^\s+job_id\b", found[2], re.MULTILINE) and found[1] not in _KEEP_ITS_NUMBER
]


async def traces_of(store: Store, job_id: int) -> dict[str, int]:
    """Table -> rows of the job that are left, apart from the audit."""
    left = {}
    for table in TABLES_OF_JOBS:
        rows = await fetch(store, f"select 1 from {table} where job_id = :j", j=job_id)
        left[table] = len(rows)
    left["jobs"] = len(await fetch(store, "select 1 from jobs where id = :j", j=job_id))
    return {table: count for table, count in left.items() if count}


async def delete_all(store: Store, job_id: int) -> None:
    with suppress(NotThere):
        await JobRows(store.database).mark(job_id, "tester")
    await store.jobs.drop_ranges(job_id)
    while await JobRows(store.database).delete_chunk(job_id):
        pass
    await JobRows(store.database).finish_deletion(job_id)


class _Deleted:
    async def prepare(store: Store) -> int:  # type: ignore[misc]
        return await rich_job(store, f"scope {uuid4()}")

    async def act(store: Store, job_id: int) -> None:  # type: ignore[misc]
        await delete_all(store, job_id)

    async def check(store: Store, job_id: int) -> None:  # type: ignore[misc]
        assert await traces_of(store, job_id) == {}
        acts = await fetch(store, "select action from audit where job_id = :j", j=job_id)
        assert [row[0] for row in acts].count("job.deleted") == 1


for _verb in ("delete_items", "delete_leftovers", "finish_deletion"):
    scenario(_verb)(_Deleted)


async def left_behind(store: Store) -> int:
    """A standing job that is gone, to which an application added records, with keys and without."""
    new = NewJob("demo", "demo", [], standing=True, topic=f"{uuid4()}")
    job_id, _ = await store.jobs.open(new, "tester")
    for key in (None, f"{job_id}"):
        items = [new_item({"n": number}, key and f"{key} {number}") for number in range(3)]
        await store.additions.enqueue(Addition("demo", "", items, topic=new.topic))
    await execute(store, "delete from jobs where id = :j", j=job_id)
    return job_id


@scenario("delete_left_behind")
class LeftBehind:
    async def prepare(store: Store) -> int:  # type: ignore[misc]
        return await left_behind(store)

    async def act(store: Store, job_id: int) -> None:  # type: ignore[misc]
        while await JobRows(store.database).delete_left_behind(job_id):
            pass

    async def check(store: Store, job_id: int) -> None:  # type: ignore[misc]
        assert await traces_of(store, job_id) == {}
        assert job_id not in await JobRows(store.database).jobs_left_behind()


@scenario("mark_deleting")
class MarkedJob:
    async def prepare(store: Store) -> int:  # type: ignore[misc]
        return await rich_job(store, f"scope {uuid4()}")

    async def act(store: Store, job_id: int) -> None:  # type: ignore[misc]
        assert await JobRows(store.database).mark(job_id, "tester") is JobState.DELETING

    async def check(store: Store, job_id: int) -> None:  # type: ignore[misc]
        assert await state_of(store, job_id) is JobState.DELETING
        assert await claim(store, job_id) == []


async def stored_file(store: Store, owner: str = "ada") -> StoredFile:
    new = NewFile(owner, "a.csv", "upload", f"uploads/{uuid4()}", 3, "abc", {})
    files = open_console(store).files
    return await files.file(await files.add_file(new))


@scenario("mark_file")
class MarkedFile:
    async def prepare(store: Store) -> StoredFile:  # type: ignore[misc]
        return await stored_file(store)

    async def act(store: Store, file: StoredFile) -> None:  # type: ignore[misc]
        await DeletionRows(store.database).mark_file(file, "tester")

    async def check(store: Store, file: StoredFile) -> None:  # type: ignore[misc]
        assert await fetch(store, "select draft from files where id = :i", i=file.id) == [(1,)]
        deleted = "select actor from audit where action = 'file.deleted' and subject = :i"
        assert await fetch(store, deleted, i=str(file.id)) == [("tester",)]


@scenario("delete_file")
class DeletedFile:
    async def prepare(store: Store) -> StoredFile:  # type: ignore[misc]
        return await stored_file(store)

    async def act(store: Store, file: StoredFile) -> None:  # type: ignore[misc]
        await DeletionRows(store.database).delete_file(file)

    async def check(store: Store, file: StoredFile) -> None:  # type: ignore[misc]
        assert await fetch(store, "select 1 from files where id = :i", i=file.id) == []


@scenario("delete_export")
class DeletedExport:
    async def prepare(store: Store) -> int:  # type: ignore[misc]
        new = NewExport("ada", await make_job(store), "csv", (), False)
        return await open_console(store).exports.add_export(new)

    async def act(store: Store, export_id: int) -> None:  # type: ignore[misc]
        with suppress(NotThere):
            export = await open_console(store).exports.export(export_id)
            await DeletionRows(store.database).delete_export(export, "tester")

    async def check(store: Store, export_id: int) -> None:  # type: ignore[misc]
        assert await fetch(store, "select 1 from exports where id = :i", i=export_id) == []


class _DeletedUser:
    async def prepare(store: Store) -> str:  # type: ignore[misc]
        name = f"user {uuid4()}"
        with suppress(UnfitState):
            await open_console(store).people.add_user(name, "operator", None, "tester")
        return name

    async def act(store: Store, name: str) -> None:  # type: ignore[misc]
        rows = DeletionRows(store.database)
        await rows.mark_user(name, "tester")
        await rows.delete_user(name, "tester")

    async def check(store: Store, name: str) -> None:  # type: ignore[misc]
        assert await fetch(store, "select 1 from users where name = :n", n=name) == []


for _verb in ("mark_user", "delete_user"):
    scenario(_verb)(_DeletedUser)


async def age(store: Store, table: str, column: str, where: str, **params: object) -> None:
    await execute(store, f"update {table} set {column} = @after(-864000) where {where}", **params)


@scenario("drop_old_decisions")
class OldDecisions:
    async def prepare(store: Store) -> int:  # type: ignore[misc]
        job_id = await rich_job(store, f"scope {uuid4()}")
        await age(store, "decisions", "at", "job_id = :j", j=job_id)
        return job_id

    async def act(store: Store, job_id: int) -> None:  # type: ignore[misc]
        while await RetentionRows(store.database).drop_old_decisions(1.0):
            pass

    async def check(store: Store, job_id: int) -> None:  # type: ignore[misc]
        assert "decisions" not in await traces_of(store, job_id)


@scenario("drop_old_samples")
class OldSamples:
    async def prepare(store: Store) -> int:  # type: ignore[misc]
        job_id = await rich_job(store, f"scope {uuid4()}")
        await execute(
            store, "update samples set bucket = bucket - 100000 where job_id = :j", j=job_id
        )
        return job_id

    async def act(store: Store, job_id: int) -> None:  # type: ignore[misc]
        await RetentionRows(store.database).drop_old_samples(1.0)

    async def check(store: Store, job_id: int) -> None:  # type: ignore[misc]
        assert "samples" not in await traces_of(store, job_id)


@scenario("mark_old_file")
class MarkedOldFile:
    async def prepare(store: Store) -> int:  # type: ignore[misc]
        file = await stored_file(store)
        await age(store, "files", "created_at", "id = :i", i=file.id)
        return file.id

    async def act(store: Store, file_id: int) -> None:  # type: ignore[misc]
        for file in await RetentionRows(store.database).old_files(1.0, 100):
            await RetentionRows(store.database).mark_old_file(file)

    async def check(store: Store, file_id: int) -> None:  # type: ignore[misc]
        assert await fetch(store, "select draft from files where id = :i", i=file_id) == [(1,)]


@scenario("drop_file")
class OldFile:
    async def prepare(store: Store) -> int:  # type: ignore[misc]
        file = await stored_file(store)
        await age(store, "files", "created_at", "id = :i", i=file.id)
        return file.id

    async def act(store: Store, file_id: int) -> None:  # type: ignore[misc]
        for file in await RetentionRows(store.database).old_files(1.0, 100):
            await RetentionRows(store.database).drop_file(file)

    async def check(store: Store, file_id: int) -> None:  # type: ignore[misc]
        assert await fetch(store, "select 1 from files where id = :i", i=file_id) == []


@scenario("drop_export")
class OldExport:
    async def prepare(store: Store) -> int:  # type: ignore[misc]
        new = NewExport("ada", await make_job(store), "csv", (), False)
        export_id = await open_console(store).exports.add_export(new)
        await age(store, "exports", "finished_at", "id = :i", i=export_id)
        return export_id

    async def act(store: Store, export_id: int) -> None:  # type: ignore[misc]
        for export in await RetentionRows(store.database).old_exports(1.0, 100):
            await RetentionRows(store.database).drop_export(export)

    async def check(store: Store, export_id: int) -> None:  # type: ignore[misc]
        assert await fetch(store, "select 1 from exports where id = :i", i=export_id) == []


async def superseded_pass(store: Store, name: str) -> int:
    """A finished pass over a source that a later, verified one has read again."""
    passes = []
    for _ in range(2):
        new = NewJob("demo", name, [NewStream(name, name)], concludes=True)
        job_id = await store.jobs.create(new, "tester")
        stream = await lease_stream(store, job_id)
        await ingest(store, stream, records(3), end=True)
        await work_off(store, job_id)
        await execute(
            store, "update jobs set state = 'DONE', finished_at = @now where id = :j", j=job_id
        )
        passes.append(job_id)
    await execute(
        store, "update streams set verified_at = @after(5) where job_id = :j", j=passes[1]
    )
    return passes[0]


@scenario("mark_pruned")
class PrunedPass:
    async def prepare(store: Store) -> int:  # type: ignore[misc]
        return await superseded_pass(store, f"pass {uuid4()}")

    async def act(store: Store, job_id: int) -> None:  # type: ignore[misc]
        for superseded in await RetentionRows(store.database).superseded_jobs(100):
            await RetentionRows(store.database).mark_pruned(superseded)
        while await JobRows(store.database).delete_items(job_id):
            pass

    async def check(store: Store, job_id: int) -> None:  # type: ignore[misc]
        assert not {"items", "outcomes"} & set(await traces_of(store, job_id))
        assert (await store.reads.counters(job_id)).done == 3


async def aged_standing_job(store: Store) -> int:
    """A standing job with old finished items of each status, an old one that a person decided about
    (the last) and an open one that came last of all; what failed has a dead letter."""
    topic = f"{uuid4()}"
    new = NewJob("demo", "demo", [], standing=True, topic=topic)
    job_id, _ = await store.jobs.open(new, "tester")
    items = [new_item({"n": number}, f"{topic} {number}") for number in range(5)]
    await store.additions.enqueue(Addition("demo", "", items, topic=topic))
    await finish_in_order(store, job_id, [*sorted(FINAL), ItemStatus.DONE])
    seqs = [row[0] for row in await fetch(store, _SEQS, j=job_id)]
    await store.jobs.reprocess(job_id, NamedItems(seqs[:1]), "tester", True)
    await work_off(store, job_id)
    job, ruling = await store.reads.job(job_id), NewRuling(RulingKind.REJECT, None, "no", "ada", 0)
    await open_console(store).rulings.rule(job, seqs[-1], ruling)
    await execute(
        store,
        "insert into dead_letters (kind, job_id, seq, pipeline, code, message, state, created_at)"
        " select 'item', job_id, seq, 'demo', 'CRASHED', 'x', 'OPEN', @now from outcomes"
        " where job_id = :j and status = 'ERROR'",
        j=job_id,
    )
    await age(store, "outcomes", "updated_at", "job_id = :j", j=job_id)
    last = [new_item({"n": 5}, f"{topic} 5")]
    await store.additions.enqueue(Addition("demo", "", last, topic=topic))
    return job_id


async def finish_in_order(store: Store, job_id: int, statuses: Sequence[ItemStatus]) -> None:
    """The items of a job that has one range end so."""
    claimed = await claim_one(store, job_id)
    ended = zip(claimed.rows, statuses, strict=True)
    outcomes = [outcome_of(row, status) for row, status in ended]
    settlement = Settlement(claimed.lease, outcomes, last=True)
    assert not await store.outcomes.settle(job_id, "one", [settlement])


async def remove_old(store: Store, days: float = 1.0) -> int:
    """Removes whatever is old of all standing jobs."""
    removed = 0
    for start in await RetentionRows(store.database).old_items(days):
        old: OldItems | None = start
        while old is not None:
            count, old = await RetentionRows(store.database).remove_items(old)
            removed += count
    return removed


@scenario("remove_items")
class OldItemsOfAStandingJob:
    async def prepare(store: Store) -> int:  # type: ignore[misc]
        return await aged_standing_job(store)

    async def act(store: Store, job_id: int) -> None:  # type: ignore[misc]
        await remove_old(store)

    async def check(store: Store, job_id: int) -> None:  # type: ignore[misc]
        traces = await traces_of(store, job_id)
        kept = {"items": 2, "outcomes": 1, "keys": 2, "rulings": 1, "ranges": 1, "jobs": 1}
        assert {table: traces.get(table, 0) for table in kept} == kept
        assert not {"attempts", "dead_letters"} & set(traces)
        counters = await store.reads.counters(job_id)
        assert (counters.accepted, counters.finished, counters.open) == (6, 5, 1)
        assert (await store.reads.job(job_id)).removed_items == 4
        acts = await fetch(store, "select action from audit where job_id = :j", j=job_id)
        assert [row[0] for row in acts].count("items.removed") == 1


_SEQS = "select seq from items where job_id = :j order by seq"
