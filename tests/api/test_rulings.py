"""Rulings: decisions take precedence in grid and export, and are not overwritten unseen."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from holdfast import Pipeline, Ruled, Tx
from holdfast.errors import UserError
from holdfast.features.console import open_console
from holdfast.features.items.items import ItemFilter
from holdfast.features.rulings.rules import NewRuling, decide
from holdfast.features.rulings.shapes import ruling_state
from holdfast.kernel import Store
from holdfast.model import ItemStatus, Json
from holdfast.options import Option
from holdfast.rulings import OutdatedRuling, RulingKind
from tests.api.server import ApiServer, ended, finished
from tests.api.test_export_parity import (
    assert_csv_has,
    assert_jsonl_has,
    assert_xlsx_has,
    exported,
    grid_of,
)
from tests.store.checks import fetch, filled_job


def edit(value: Any, version: int = 0) -> dict[str, Any]:
    return {"kind": "edit", "value": value, "reason": "measured", "version": version}


def place(job: dict[str, Any], seq: int) -> str:
    return f"/api/jobs/{job['id']}/items/{seq}/ruling"


async def rows_of(client: httpx2.AsyncClient, job: dict[str, Any], **query: str) -> list[Any]:
    reply = await client.get(f"/api/jobs/{job['id']}/items", params=query)
    assert reply.status_code == 200, reply.text
    return [item["row"] for item in reply.json()["items"]]


async def test_values_of_an_edit_win_in_grid_and_every_export(server: ApiServer) -> None:
    ada = await server.person("ada", "admin")
    job = await finished(server, ada, "oak", "missing", "pine", "broken")
    assert (await ada.put(place(job, 1), json=edit({"length": 99}))).status_code == 200
    assert (await ada.put(place(job, 2), json=edit({"title": "found"}))).status_code == 200
    assert (await ada.put(place(job, 3), json={"kind": "reject", "version": 0})).status_code == 200
    columns, rows = await grid_of(ada, job["id"])
    assert columns == ["row", "title", "length", "ruling", "ruled_by", "status", "error"]
    assert rows[0][:6] == [1, "oak", 99, "edit", "ada", "DONE"]
    assert rows[1][:6] == [2, "found", None, "edit", "ada", "NOT_FOUND"]
    assert rows[2][:6] == [3, "pine", 4, "reject", "ada", "DONE"]
    assert rows[3][3:5] == [None, None]
    store, folder = server.parts.store, server.folder
    assert_jsonl_has(await exported(store, job["id"], folder, "jsonl"), columns, rows)
    assert_csv_has(await exported(store, job["id"], folder, "csv"), columns, rows)
    assert_xlsx_has(await exported(store, job["id"], folder, "xlsx"), columns, rows)


async def test_items_are_filtered_by_decision_and_by_decided_value(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "oak", "missing", "pine", "elm", "ash")
    for seq in (1, 2, 4):
        await ada.put(place(job, seq), json=edit({"title": f"new {seq}"}))
    await ada.put(place(job, 3), json={"kind": "reject", "version": 0})
    await ada.delete(place(job, 4), params={"version": 1})
    assert [row["row"] for row in await rows_of(ada, job, ruling="any")] == [1, 2, 3]
    assert [row["row"] for row in await rows_of(ada, job, ruling="edit")] == [1, 2]
    assert [row["row"] for row in await rows_of(ada, job, ruling="edit", statuses="DONE")] == [1]
    assert [row["row"] for row in await rows_of(ada, job, value="title:new 2")] == [2]
    assert await rows_of(ada, job, value="title:oak") == []
    first = await ada.get(f"/api/jobs/{job['id']}/items", params={"ruling": "any", "pageSize": "2"})
    after = {"ruling": "any", "pageSize": "2", "after": first.json()["next"]}
    assert [row["row"] for row in await rows_of(ada, job, **after)] == [3]
    wrong = await ada.get(f"/api/jobs/{job['id']}/items", params={"ruling": "maybe"})
    assert wrong.status_code == 422


async def test_second_person_sees_what_the_first_decided(server: ApiServer) -> None:
    ada, root = await server.person("ada"), await server.person("root", "admin")
    job = await finished(server, ada, "oak")
    seen = await ada.get(place(job, 1))
    assert (seen.json()["version"], seen.headers["ETag"]) == (0, '"0"')
    assert (await ada.put(place(job, 1), json=edit({"length": 5}))).status_code == 200
    late = await root.put(place(job, 1), json=edit({"length": 6}))
    assert late.status_code == 409
    detail = late.json()["detail"]
    assert detail == 'ada has decided about row 1 since: edit {"length": 5}'
    body = {"kind": "edit", "value": {"length": 6}}
    seen = await root.put(place(job, 1), json=body, headers={"If-Match": '"1"'})
    assert seen.status_code == 200
    history = seen.json()["history"]
    assert [(each["author"], each["changes"]) for each in history] == [
        ("ada", {"length": 5}),
        ("root", {"length": 6}),
    ]
    assert (await root.put(place(job, 1), json=body)).status_code == 400


async def test_decision_survives_a_reprocess_and_can_be_revoked(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "oak")
    await ada.put(place(job, 1), json=edit({"length": 99}))
    again = {"scope": "items", "itemIds": [1], "statuses": ["DONE"], "resetAttempts": True}
    assert (await ada.post(f"/api/jobs/{job['id']}/reprocess", json=again)).status_code == 202
    await ended(server, ada, job["id"])
    assert [row["length"] for row in await rows_of(ada, job)] == [99]
    revoked = await ada.delete(place(job, 1), params={"version": 1, "reason": "wrong row"})
    assert (revoked.json()["version"], revoked.json()["ruling"]) == (2, None)
    assert [row["length"] for row in await rows_of(ada, job)] == [3]
    assert (await ada.delete(place(job, 1), params={"version": 2})).status_code == 409
    actions = [each["action"] for each in (await ada.get("/api/audit")).json()["entries"]]
    assert {"ruling.edit", "ruling.revoke"} <= set(actions)


@pytest.mark.parametrize("value", [None, {}, [1], {"colour": "red"}, {"title": "x" * 200_000}])
async def test_edit_that_makes_no_sense_is_refused(server: ApiServer, value: Any) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "oak")
    assert (await ada.put(place(job, 1), json=edit(value))).status_code == 422
    assert (await ada.get(place(job, 1))).json()["version"] == 0


async def test_text_that_no_database_keeps_is_refused(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "oak")
    body = b'{"kind": "edit", "value": {"title": "\\ud800"}, "version": 0}'
    headers = {"Content-Type": "application/json"}
    reply = await ada.put(place(job, 1), content=body, headers=headers)
    assert 400 <= reply.status_code < 500
    nul = await ada.put(place(job, 1), json=edit({"title": "a\0b"}))
    assert nul.status_code == 200
    assert [row["title"] for row in await rows_of(ada, job)] == ["a\0b"]


async def test_page_that_ends_before_items_that_are_filtered_out_has_a_next(
    server: ApiServer,
) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "oak", "missing", "pine", "elm")
    for seq in range(1, 5):
        await ada.put(place(job, seq), json={"kind": "reject", "version": 0})
    query = {"ruling": "reject", "statuses": "DONE", "pageSize": "1"}
    seen, after = [], None
    for _ in range(4):
        params = {**query, **({"after": after} if after else {})}
        page = (await ada.get(f"/api/jobs/{job['id']}/items", params=params)).json()
        seen += [item["seq"] for item in page["items"]]
        after = page["next"]
        if after is None:
            break
    assert (seen, after) == ([1, 3, 4], None)


class Judging(Pipeline):
    """Writes what was chosen to a table of its own, and accepts only known candidates."""

    name = "demo"

    async def process(self, row: Json, ctx: Any) -> Json:
        return {}

    async def ruling(self, tx: Tx, ruled: Ruled) -> dict[str, Any] | None:
        await tx.execute("delete from own_choices where seq = :seq", {"seq": ruled.seq})
        if ruled.kind is not RulingKind.CHOOSE:
            return None
        params = {"seq": ruled.seq, "choice": ruled.value}
        await tx.execute("insert into own_choices (seq, choice) values (:seq, :choice)", params)
        if ruled.value == "Q0":
            raise UserError("Q0 is not a candidate")
        return {"entity": ruled.value, "was": ruled.previous and ruled.previous.value}


def choose(value: Any, version: int) -> NewRuling:
    return NewRuling(RulingKind.CHOOSE, value, "", "ada", version)


async def test_pipeline_judges_a_decision_and_writes_its_own_rows_with_it(store: Store) -> None:
    async with store.database.driver.transaction("test") as tx:
        await tx.execute("create table own_choices (seq integer primary key, choice text)")
    rulings, hook = open_console(store).rulings, Judging().ruling
    job = await store.reads.job(await filled_job(store, 2))
    first = await rulings.rule(job, 1, choose("Q1", 0), hook)
    assert first.changes == {"entity": "Q1", "was": None}
    with pytest.raises(UserError, match="not a candidate"):
        await rulings.rule(job, 1, choose("Q0", 1), hook)
    assert await fetch(store, "select seq, choice from own_choices") == [(1, "Q1")]
    second = await rulings.rule(job, 1, choose("Q2", 1), hook)
    assert second.changes == {"entity": "Q2", "was": "Q1"}
    revoked = NewRuling(RulingKind.REVOKE, None, "", "ada", 2)
    await rulings.rule(job, 1, revoked, hook)
    assert await fetch(store, "select seq from own_choices") == []


async def test_job_that_is_older_than_an_option_is_judged_with_its_default(
    server: ApiServer,
) -> None:
    class Newer(Judging):
        options = (Option("length", int, default=7),)

        async def ruling(self, tx: Tx, ruled: Ruled) -> dict[str, Any] | None:
            return {"length": ruled.job.options["length"]}

    job = await finished(server, await server.person("ada"), "oak")
    stored = await server.parts.store.reads.job(job["id"])
    parts = replace(server.parts, pipelines={stored.pipeline: Newer()})
    await decide(parts.console, parts.pipelines, stored, 1, choose("Q1", 0))
    state = await ruling_state(stored, 1, parts)
    assert state.ruling is not None and state.ruling.changes == {"length": 7}


async def test_of_two_decisions_at_the_same_moment_one_is_refused(store: Store) -> None:
    rulings = open_console(store).rulings
    job = await store.reads.job(await filled_job(store, 1))
    results = await asyncio.gather(
        *(rulings.rule(job, 1, choose(f"Q{n}", 0)) for n in range(8)), return_exceptions=True
    )
    assert sum(isinstance(result, OutdatedRuling) for result in results) == 7
    assert len(await rulings.history(job.id, 1)) == 1


async def test_item_that_was_not_tried_yet_can_be_decided_about(store: Store) -> None:
    console = open_console(store)
    job = await store.reads.job(await filled_job(store, 2))
    new = NewRuling(RulingKind.EDIT, {"price": 3}, "", "ada", 0)
    await console.rulings.rule(job, 2, new)
    async for items in console.items.every(job, ItemFilter()):
        assert [item.ruling and item.ruling.changes for item in items] == [None, {"price": 3}]
        assert [item.status for item in items] == [ItemStatus.PENDING] * 2
