"""The scenarios of the verbs of people, files, exports and operations."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from holdfast.clock import FixedClock
from holdfast.errors import LeaseLost, NotThere, UnfitState
from holdfast.features.accounts.second_factors import SecondFactors
from holdfast.features.bulk.operations import Chunk, Hold, NewOperation
from holdfast.features.console import open_console
from holdfast.features.exports.exports import NewExport, Written
from holdfast.features.library.files import NewFile
from holdfast.features.rulings.rules import NewRuling
from holdfast.kernel import NewJob, NewStream, Store
from holdfast.kernel.arrivals.idempotency import RequestKey
from holdfast.kernel.database.chunks import FinishedItems, FreeRanges, NamedItems
from holdfast.model import ItemStatus
from holdfast.pipeline import Gate
from holdfast.rulings import Proposal, RulingKind
from tests.store.checks import (
    audit_of,
    claim,
    claim_one,
    execute,
    fetch,
    filled_job,
    finished_job,
    settle,
    statuses,
)
from tests.store.message_scenarios import SCENARIOS
from tests.store.scenarios import drain, scenario
from tests.store.upkeep_scenarios import simple_scenario

__all__ = ["SCENARIOS"]

ERROR, PENDING, SKIPPED = ItemStatus.ERROR, ItemStatus.PENDING, ItemStatus.SKIPPED


async def _add_user(store: Store, name: str) -> None:
    with suppress(UnfitState):
        await open_console(store).people.add_user(name, "operator", None, "tester")


async def _add_session(store: Store, name: str) -> None:
    await open_console(store).people.end_session(name)
    await open_console(store).people.add_session(name, name, "127.0.0.1", 60, "password")


async def _add_link(store: Store, name: str) -> None:
    await open_console(store).people.add_login_link(name, name, 60, "tester")


async def _add_token(store: Store, name: str) -> None:
    if not await open_console(store).people.tokens(name):
        await open_console(store).people.add_token(name, "test", name, 60, "tester")


async def _use_old(store: Store, name: str) -> None:
    """Seen so long ago that it is recorded again."""
    for table, column in (("sessions", "seen_at"), ("tokens", "last_used_at")):
        await execute(store, f"update {table} set {column} = @after(-3600)")


async def _revoke(store: Store, name: str) -> None:
    (token,) = await open_console(store).people.tokens(name)
    with suppress(NotThere):
        await open_console(store).people.revoke_token(token.id, "tester")


async def _fail(store: Store, name: str) -> None:
    for _ in range(5):
        await open_console(store).people.fail_login([name], name, None, "password")


async def _set_flag(store: Store, name: str) -> None:
    await store.flags.set_flag(name, False, "tester")


async def _begin(store: Store, name: str) -> None:
    await store.taken_keys.begin_request("ada", name, "same", "api")


USER = ("users", "name", 1)
SESSION = ("sessions", "hash", 1)
TOKEN = ("tokens", "hash", 1)
simple_scenario("add_user", _add_user, *USER)
simple_scenario(
    "change_user",
    lambda store, name: open_console(store).people.change_user(name, "tester", password_hash="new"),
    *USER, _add_user,
)  # fmt: skip
simple_scenario("add_session", _add_session, *SESSION, _add_user)
simple_scenario(
    "see_session",
    lambda store, name: open_console(store).people.session(name, 86_400),
    *SESSION, _add_user, _add_session, _use_old,
)  # fmt: skip
simple_scenario(
    "end_session",
    lambda store, name: open_console(store).people.end_session(name),
    "sessions", "hash", 0, _add_user, _add_session,
)  # fmt: skip
simple_scenario(
    "add_login_link",
    lambda store, name: _add_link(store, name),
    "login_links", "hash", 1, _add_user,
)  # fmt: skip
simple_scenario(
    "use_login_link",
    lambda store, name: open_console(store).people.use_login_link(name),
    "login_links", "hash", 0, _add_user, _add_link,
)  # fmt: skip
simple_scenario("add_token", _add_token, *TOKEN, _add_user)
simple_scenario(
    "use_token",
    lambda store, name: open_console(store).people.token(name),
    *TOKEN, _add_user, _add_token, _use_old,
)  # fmt: skip
simple_scenario("revoke_token", _revoke, *TOKEN, _add_user, _add_token)
simple_scenario("fail_login", _fail, "login_failures", "subject", 1)
simple_scenario(
    "clear_login_failures",
    lambda store, name: open_console(store).people.clear_login_failures(name),
    "login_failures", "subject", 0, _fail,
)  # fmt: skip
simple_scenario(
    "forget_expired", lambda store, _: open_console(store).people.forget_expired(), *USER, _add_user
)
simple_scenario(
    "add_secret",
    lambda store, name: open_console(store).secrets.secret(name, "fresh"),
    "secrets",
    "name",
    1,
)
simple_scenario("set_flag", _set_flag, "flags", "name", 1)
simple_scenario("begin_request", _begin, "taken_keys", "key", 1)
simple_scenario(
    "answer_request",
    lambda store, name: store.taken_keys.answer_request("ada", name, 202, "{}"),
    "taken_keys", "key", 1, _begin,
)  # fmt: skip
simple_scenario(
    "drop_request",
    lambda store, name: store.taken_keys.drop_request("ada", name),
    "taken_keys", "key", 0, _begin,
)  # fmt: skip
simple_scenario(
    "order_gate",
    lambda store, name: store.gates.order(name, 60.0, "tired", "tester"),
    "gates", "name", 1, lambda store, name: store.gates.declare(Gate(name)),
)  # fmt: skip


def _factors(store: Store) -> SecondFactors:
    return SecondFactors(store.database, FixedClock())


async def _enrol(store: Store, name: str) -> None:
    with suppress(UnfitState):
        await _factors(store)._begin_second_factor(name, "GEZDGNBV", [RECOVERY])


async def _confirm(store: Store, name: str) -> None:
    await _factors(store)._confirm_second_factor(name, 1)


RECOVERY = "00ff"
FACTOR = ("second_factors", "user_name", 1)
simple_scenario("begin_second_factor", _enrol, *FACTOR)
simple_scenario("confirm_second_factor", _confirm, *FACTOR, _enrol)
simple_scenario(
    "use_code",
    lambda store, name: _factors(store)._use_code(name, 2),
    *FACTOR, _enrol, _confirm,
)  # fmt: skip
simple_scenario(
    "use_recovery_code",
    lambda store, name: _factors(store).accept(name, RECOVERY),
    "recovery_codes", "user_name", 0, _enrol, _confirm,
)  # fmt: skip
simple_scenario(
    "remove_second_factor",
    lambda store, name: _factors(store).remove_second_factor(name, "tester"),
    "second_factors", "user_name", 0, _enrol, _confirm,
)  # fmt: skip
simple_scenario(
    "use_nonce",
    lambda store, name: open_console(store).nonces.use_nonce("test", name),
    "nonces", "nonce", 1,
)  # fmt: skip


@scenario("add_file")
class AddFile:
    async def prepare(store: Store) -> int:
        return (await fetch(store, "select count(*) from files"))[0][0]

    async def act(store: Store, before: int) -> None:
        if (await fetch(store, "select count(*) from files"))[0][0] == before:
            await open_console(store).files.add_file(
                NewFile("ada", "a.csv", "upload", "/a", 1, "hash", {})
            )

    async def check(store: Store, before: int) -> None:
        files = (await fetch(store, "select count(*) from files"))[0][0]
        told = await fetch(store, "select count(*) from audit where action = 'file.stored'")
        assert files == told[0][0] == before + 1


@scenario("drop_drafts")
class DropDrafts:
    async def prepare(store: Store) -> list[int]:
        add_file = open_console(store).files.add_file
        names = ("draft.csv", False), ("kept.csv", True)
        return [
            await add_file(NewFile("ada", name, "upload", name, 1, "hash", {}, draft=not kept))
            for name, kept in names
        ]

    async def act(store: Store, ids: list[int]) -> None:
        await open_console(store).files.drop_drafts(ids)

    async def check(store: Store, ids: list[int]) -> None:
        left = await fetch(store, "select id from files where id >= :first", first=ids[0])
        assert left == [(ids[1],)]


@scenario("create")
class CreateOverADraft:
    async def prepare(store: Store) -> int:
        new = NewFile("ada", "a.csv", "upload", "a", 1, "hash", {}, draft=True)
        return await open_console(store).files.add_file(new)

    async def act(store: Store, file_id: int) -> None:
        with suppress(UnfitState):  # it was kept before
            streams = [NewStream("upload-{job}", "v1")]
            new = NewJob("demo", f"over {file_id}", streams, file_id=file_id, drafts=[file_id])
            await store.jobs.create(new, "tester")

    async def check(store: Store, file_id: int) -> None:
        kept = await fetch(store, "select draft from files where id = :id", id=file_id)
        jobs = await fetch(store, "select count(*) from jobs where file_id = :id", id=file_id)
        told = "select count(*) from audit where action = 'file.stored' and subject = :id"
        assert (kept, jobs) == ([(0,)], [(1,)])
        assert await fetch(store, told, id=str(file_id)) == [(1,)]


@scenario("add_export")
class AddExport:
    async def prepare(store: Store) -> int:
        return await filled_job(store, 1)

    async def act(store: Store, job_id: int) -> None:
        if not await fetch(store, "select 1 from exports where job_id = :j", j=job_id):
            await open_console(store).exports.add_export(NewExport("ada", job_id, "csv", [], False))

    async def check(store: Store, job_id: int) -> None:
        assert len(await fetch(store, "select 1 from exports where job_id = :j", j=job_id)) == 1
        actions = [entry["action"] for entry in await audit_of(store, job_id)]
        assert actions.count("export") == 1


@scenario("add_file")
class AddFileForARequest:
    async def prepare(store: Store) -> RequestKey:
        request = RequestKey("ada", f"file at {await store.jobs.now()}", "of this content")
        assert await store.taken_keys.begin_request(*request[:2], "same", "api") is None
        return request

    async def act(store: Store, request: RequestKey) -> None:
        with suppress(UnfitState):
            new = NewFile("ada", request.key, "upload", "/a", 1, "hash", {}, request)
            await open_console(store).files.add_file(new)

    async def check(store: Store, request: RequestKey) -> None:
        made = await fetch(store, "select id from files where name = :name", name=request.key)
        answered = await store.taken_keys.begin_request(*request[:2], "same", "api")
        assert answered is not None and [row[0] for row in made] == [answered.made]
        assert (answered.fingerprint, answered.content) == ("same", "of this content")


async def _job_and_request(store: Store, what: str) -> tuple[int, RequestKey]:
    job_id = await filled_job(store, 1)
    request = RequestKey("ada", f"{what} {job_id}")
    assert await store.taken_keys.begin_request(*request[:2], "same", "api") is None
    return job_id, request


@scenario("add_export")
class AddExportForARequest:
    async def prepare(store: Store) -> tuple[int, RequestKey]:
        return await _job_and_request(store, "export of")

    async def act(store: Store, state: tuple[int, RequestKey]) -> None:
        job_id, request = state
        with suppress(UnfitState):
            await open_console(store).exports.add_export(
                NewExport("ada", job_id, "csv", [], False, request=request)
            )

    async def check(store: Store, state: tuple[int, RequestKey]) -> None:
        job_id, request = state
        made = await fetch(store, "select id from exports where job_id = :j", j=job_id)
        answered = await store.taken_keys.begin_request(*request[:2], "same", "api")
        assert answered is not None and [row[0] for row in made] == [answered.made]


async def _new_export(store: Store) -> int:
    job_id = await filled_job(store, 1)
    return await open_console(store).exports.add_export(NewExport("ada", job_id, "csv", [], False))


@scenario("lease_export")
class LeaseExport:
    prepare = staticmethod(_new_export)

    async def act(store: Store, export_id: int) -> None:
        await open_console(store).exports.lease_export(export_id, "one")

    async def check(store: Store, export_id: int) -> None:
        assert (await open_console(store).exports.export(export_id)).state == "RUNNING"


async def _held_export(store: Store) -> int:
    export_id = await _new_export(store)
    assert await open_console(store).exports.lease_export(export_id, "one")
    return export_id


@scenario("note_rows")
class RenewExport:
    prepare = staticmethod(_held_export)

    async def act(store: Store, export_id: int) -> None:
        assert await open_console(store).exports.note_rows(export_id, "one", 7)

    async def check(store: Store, export_id: int) -> None:
        assert (await open_console(store).exports.export(export_id)).rows_count == 7


@scenario("finish_export")
class FinishExport:
    prepare = staticmethod(_held_export)

    async def act(store: Store, export_id: int) -> None:
        await open_console(store).exports.finish_export(export_id, "one", Written("DONE", 9))

    async def check(store: Store, export_id: int) -> None:
        export = await open_console(store).exports.export(export_id)
        assert (export.state, export.rows_count) == ("DONE", 9)


async def _operation(store: Store, kind: str, job_id: int) -> int:
    new = NewOperation("ada", kind, {"reset_attempts": True}, [job_id], 1)
    return await open_console(store).operations.add(new)


#: Where an operation on one job ends.
END = {"job": 1}


async def _hold(store: Store, kind: str, job_id: int) -> Hold:
    hold = await open_console(store).operations.lease(await _operation(store, kind, job_id), "one")
    assert hold is not None
    return hold


async def _again(store: Store, hold: Hold) -> Hold:
    """As the holder knows it after a crash: from the operation's row."""
    found = await open_console(store).operations.operation(hold.operation.id)
    return Hold(found, hold.worker)


async def _ranges(store: Store) -> int:
    """A fresh range, one whose items wait to be tried again, one whose items are in work."""
    job_id = await filled_job(store, 3, 10, 2)
    await settle(store, await claim_one(store, job_id, 3), PENDING)
    claims = await claim(store, job_id)
    await store.leases.release([each.lease for each in claims if each.lease.lo < 14])
    return job_id


@scenario("skip")
class SkipItems:
    prepare = _ranges

    async def act(store: Store, job_id: int) -> None:
        await store.jobs.skip(job_id, NamedItems([1, 6, 8, 14, 99]), "tester", "not wanted")

    async def check(store: Store, job_id: int) -> None:
        found = await statuses(store, job_id)
        assert {seq for seq, status in found.items() if status is SKIPPED} == {1, 6, 8}
        assert [entry["action"] for entry in await audit_of(store, job_id)].count("skip") == 1
        await drain(store, job_id)
        assert (await store.reads.counters(job_id)).skipped == 3


@scenario("skip")
class SkipWholeRanges:
    prepare = _ranges

    async def act(store: Store, job_id: int) -> None:
        await store.jobs.skip(job_id, NamedItems(range(1, 14)), "tester", "not wanted")

    async def check(store: Store, job_id: int) -> None:
        assert await open_console(store).ranges.count(job_id) == 1
        await drain(store, job_id)
        assert (await store.reads.counters(job_id)).skipped == 13


@scenario("add_operation")
class AddOperationForARequest:
    async def prepare(store: Store) -> tuple[int, RequestKey]:
        return await _job_and_request(store, "operation on")

    async def act(store: Store, state: tuple[int, RequestKey]) -> None:
        job_id, request = state
        with suppress(UnfitState):
            await open_console(store).operations.add(
                NewOperation("ada", "cancel", {}, [job_id], 1, request)
            )

    async def check(store: Store, state: tuple[int, RequestKey]) -> None:
        job_id, request = state
        answered = await store.taken_keys.begin_request(*request[:2], "same", "api")
        found = await open_console(store).operations.page(None, 200)
        made = [each.id for each in found if each.job_ids == (job_id,)]
        assert answered is not None and made == [answered.made]


@scenario("add_operation")
class AddOperation:
    async def prepare(store: Store) -> int:
        return await filled_job(store, 1)

    async def act(store: Store, job_id: int) -> None:
        entries = [entry["action"] for entry in await audit_of(store, job_id)]
        if "operation.cancel" not in entries:
            await _operation(store, "cancel", job_id)

    async def check(store: Store, job_id: int) -> None:
        found = await open_console(store).operations.page(None, 200)
        assert [each.job_ids for each in found].count((job_id,)) == 1


@scenario("lease_operation")
class LeaseOperation:
    async def prepare(store: Store) -> int:
        return await _operation(store, "cancel", 1)

    async def act(store: Store, operation_id: int) -> None:
        await open_console(store).operations.lease(operation_id, "one")

    async def check(store: Store, operation_id: int) -> None:
        assert (await open_console(store).operations.operation(operation_id)).state == "RUNNING"


async def _held_operation(store: Store) -> Hold:
    return await _hold(store, "cancel", 1)


@scenario("release_operation")
class ReleaseOperation:
    prepare = staticmethod(_held_operation)

    async def act(store: Store, hold: Hold) -> None:
        await open_console(store).operations.release(hold)

    async def check(store: Store, hold: Hold) -> None:
        assert hold.operation.id in await open_console(store).operations.to_do()
        await open_console(store).operations.cancel(hold.operation.id, "tester")


@scenario("cancel_operation")
class CancelOperation:
    prepare = staticmethod(_held_operation)

    async def act(store: Store, hold: Hold) -> None:
        with suppress(UnfitState):
            await open_console(store).operations.cancel(hold.operation.id, "tester")

    async def check(store: Store, hold: Hold) -> None:
        assert (
            await open_console(store).operations.operation(hold.operation.id)
        ).state == "CANCELLED"


@scenario("finish_operation")
class FinishOperation:
    prepare = staticmethod(_held_operation)

    async def act(store: Store, hold: Hold) -> None:
        await open_console(store).operations.finish(hold, "DONE")

    async def check(store: Store, hold: Hold) -> None:
        assert (await open_console(store).operations.operation(hold.operation.id)).state == "DONE"


@scenario("note_operation")
class NoteOperation:
    prepare = staticmethod(_held_operation)

    async def act(store: Store, hold: Hold) -> None:
        known = await _again(store, hold)
        if not known.operation.done_count:
            await open_console(store).operations.note(known, {"job": 1})

    async def check(store: Store, hold: Hold) -> None:
        found = await open_console(store).operations.operation(hold.operation.id)
        assert (found.done_count, found.position) == (1, {"job": 1})


@scenario("export_step")
class ExportStep:
    async def prepare(store: Store) -> Hold:
        return await _hold(store, "export", await filled_job(store, 1))

    async def act(store: Store, hold: Hold) -> None:
        known = await _again(store, hold)
        if not known.operation.done_count:
            new = NewExport("ada", hold.operation.job_ids[0], "csv", [], False)
            await open_console(store).operations.export(known, {"job": 1}, new)

    async def check(store: Store, hold: Hold) -> None:
        found = await open_console(store).operations.operation(hold.operation.id)
        job_id = hold.operation.job_ids[0]
        made = await fetch(store, "select id from exports where job_id = :j", j=job_id)
        assert (found.done_count, found.position) == (1, {"job": 1})
        assert found.result == tuple(row[0] for row in made) and len(made) == 1


@scenario("reprocess_step")
class ReprocessStep:
    async def prepare(store: Store) -> tuple[Hold, int]:
        job_id = await finished_job(store, ERROR, ERROR, ItemStatus.DONE)
        await execute(
            store,
            "insert into dead_letters (kind, job_id, seq, pipeline, code, message, state,"
            " created_at) values ('item', :j, 1, 'demo', 'CRASHED', 'x', 'OPEN', @now)",
            j=job_id,
        )
        return await _hold(store, "reprocess", job_id), job_id

    async def act(store: Store, state: tuple[Hold, int]) -> None:
        hold = await _again(store, state[0])
        items = FinishedItems(ERROR, until=hold.operation.begun_at)
        while hold.operation.position != END:
            chunk = Chunk(items.after(hold.operation.position or {}), {}, END)
            hold = await open_console(store).operations.reprocess(
                hold, state[1], chunk, lambda _: True
            )

    async def check(store: Store, state: tuple[Hold, int]) -> None:
        found = await open_console(store).operations.operation(state[0].operation.id)
        assert (found.done_count, found.left_count) == (2, 0)
        assert (await store.reads.counters(state[1])).open == 2
        await drain(store, state[1])


@scenario("reprocess_step")
class ReprocessNamedStep:
    async def prepare(store: Store) -> tuple[Hold, int]:
        job_id = await finished_job(store, ERROR, ERROR, ItemStatus.DONE)
        return await _hold(store, "reprocess", job_id), job_id

    async def act(store: Store, state: tuple[Hold, int]) -> None:
        hold = await _again(store, state[0])
        if not hold.operation.position:
            chunk = Chunk(NamedItems([1, 3, 99]), {}, END)
            await open_console(store).operations.reprocess(
                hold, state[1], chunk, lambda item: item.status is ERROR
            )

    async def check(store: Store, state: tuple[Hold, int]) -> None:
        found = await open_console(store).operations.operation(state[0].operation.id)
        assert (found.done_count, found.left_count, found.position) == (1, 2, {"job": 1})
        assert (await store.reads.counters(state[1])).open == 1
        await drain(store, state[1])


@scenario("decide_step")
class DecideStep:
    async def prepare(store: Store) -> tuple[Hold, int]:
        job_id = await finished_job(store, ItemStatus.DONE, ItemStatus.DONE)
        job = await store.reads.job(job_id)
        earlier = NewRuling(RulingKind.REJECT, None, "", "bob", 0)
        await open_console(store).rulings.rule(job, 2, earlier)
        return await _hold(store, "decide", job_id), job_id

    async def act(store: Store, state: tuple[Hold, int]) -> None:
        hold = await _again(store, state[0])
        if not hold.operation.position:
            job = await store.reads.job(state[1])
            proposals = [Proposal(seq, RulingKind.REJECT) for seq in (1, 2)]
            await open_console(store).operations.decide(hold, job, proposals, END, None)

    async def check(store: Store, state: tuple[Hold, int]) -> None:
        found = await open_console(store).operations.operation(state[0].operation.id)
        assert (found.done_count, found.left_count) == (1, 1), "what bob decided stays"
        sql = "select seq, author from rulings where job_id = :j order by seq"
        rows = await fetch(store, sql, j=state[1])
        assert [tuple(row) for row in rows] == [(1, "ada"), (2, "bob")]


@scenario("skip_step")
class SkipNamedStep:
    async def prepare(store: Store) -> tuple[Hold, int]:
        job_id = await _ranges(store)
        return await _hold(store, "skip", job_id), job_id

    async def act(store: Store, state: tuple[Hold, int]) -> None:
        hold = await _again(store, state[0])
        if not hold.operation.position:
            chunk = Chunk(NamedItems([1, 6, 8, 14, 99]), {}, END)
            await open_console(store).operations.skip(hold, state[1], chunk, "no")

    async def check(store: Store, state: tuple[Hold, int]) -> None:
        found = await open_console(store).operations.operation(state[0].operation.id)
        assert (found.done_count, found.left_count, found.position) == (3, 2, {"job": 1})
        await drain(store, state[1])


async def _skip_all(store: Store, state: tuple[Hold, int]) -> None:
    hold = await _again(store, state[0])
    while hold.operation.position != END:
        chunk = Chunk(FreeRanges().after(hold.operation.position or {}), {}, END)
        with suppress(LeaseLost):
            hold = await open_console(store).operations.skip(hold, state[1], chunk, "no")


@scenario("skip_step")
class SkipStep:
    async def prepare(store: Store) -> tuple[Hold, int]:
        """Fresh ranges, one of them too large for a step, and one of items to be tried again."""
        job_id = await filled_job(store, 2500, 3)
        await execute(store, "analyze items")  # or PostgreSQL compares each with each
        done = await store.leases.claim(job_id, "one", 2, 10**9)
        for claimed in done:
            await settle(store, claimed, PENDING, delay=3600.0)
        return await _hold(store, "skip", job_id), job_id

    act = staticmethod(_skip_all)

    async def check(store: Store, state: tuple[Hold, int]) -> None:
        found = await open_console(store).operations.operation(state[0].operation.id)
        counters: Any = await store.reads.counters(state[1])
        assert (found.done_count, counters.skipped, counters.open) == (2503, 2503, 0)
        await drain(store, state[1])


async def _audited(store: Store, action: str) -> int:
    rows = await fetch(store, "select id from audit where action = :action", action=action)
    return len(rows)


async def _new_action(store: Store) -> str:
    ((count,),) = await fetch(store, "select count(*) from audit")
    return f"looked {count}"


@scenario("note_audit")
class NoteAudit:
    prepare = staticmethod(_new_action)

    async def act(store: Store, action: str) -> None:
        if not await _audited(store, action):
            await store.audit.add("tester", action, None, "scenario")

    async def check(store: Store, action: str) -> None:
        assert await _audited(store, action) == 1


@scenario("prune_audit")
class PruneAudit:
    async def prepare(store: Store) -> tuple[str, int]:
        insert = (
            "insert into audit (actor, action, subject, detail, at)"
            " values ('tester', 'old', 'scenario', '{}', '2020-01-01T00:00:00.000Z')"
        )
        await execute(store, insert)
        action = await _new_action(store)
        await store.audit.add("tester", action, None, "scenario")
        return action, await _audited(store, "audit.pruned")

    async def act(store: Store, state: tuple[str, int]) -> None:
        if await _audited(store, "old"):
            await store.audit.prune_audit(3600.0, "tester")

    async def check(store: Store, state: tuple[str, int]) -> None:
        """The old row went with a note of it, the new one stays, and nothing more can go."""
        action, pruned_before = state
        counts = [await _audited(store, name) for name in ("old", action, "audit.pruned")]
        assert counts == [0, 1, pruned_before + 1]
        assert await fetch(store, "select before from audit_pruning") == []
