"""Exports over HTTP: the same values in the same order as the grid."""

from __future__ import annotations

import asyncio
import csv
import io
import json
from typing import Any

import httpx2
import pytest

from holdfast.features.bulk.operations import NewOperation
from holdfast.features.exports.exports import NewExport
from holdfast.tables.files import TableFile
from tests.api.server import ApiServer, finished, taken_in, upload


async def _exported(
    client: httpx2.AsyncClient, job_id: int, format: str, **params: Any
) -> tuple[dict[str, Any], httpx2.Response]:
    query = {"format": format, **params}
    reply = await client.post(f"/api/jobs/{job_id}/export", params=query)
    assert reply.status_code == 202, reply.text
    path = f"/api/exports/{reply.json()['id']}"
    while (export := (await client.get(path)).json())["state"] in ("QUEUED", "RUNNING"):
        await asyncio.sleep(0.05)
    return export, await client.get(f"{path}/download")


TITLES = [
    "chair",
    "missing",
    "=1+1",
    "007",
    "https://shop.example/a",
    'ünïcode, "quoted"',
    "broken",
]


FILTERS: list[tuple[dict[str, Any], int]] = [
    ({}, 7),
    ({"statuses": "DONE"}, 5),
    ({"statuses": "ERROR,NOT_FOUND"}, 2),
    ({"code": "UNKNOWN_ERROR"}, 1),
    ({"value": "title:*o*"}, 3),
    ({"value": ["title:*o*", "title:broken"], "statuses": "ERROR"}, 1),
    ({"from": "2999-01-01T00:00:00Z"}, 0),
]


async def test_every_format_agrees_with_the_grid(server: ApiServer) -> None:
    ada = await server.person("ada")
    quoted = [f'"{title.replace(chr(34), chr(34) * 2)}"' for title in TITLES]
    job = await finished(server, ada, *quoted)
    for query, count in FILTERS:
        await _assert_every_format_agrees(server, ada, job, query, count)


async def _assert_every_format_agrees(
    server: ApiServer, ada: Any, job: Any, query: dict[str, Any], count: int
) -> None:
    grid = (await ada.get(f"/api/jobs/{job['id']}/items", params=query)).json()
    rows = [[item["row"].get(name) for name in grid["columns"]] for item in grid["items"]]
    assert len(rows) == count

    export, lines = await _exported(ada, job["id"], "jsonl", **query)
    assert (export["state"], export["partial"], export["rowsCount"]) == ("DONE", False, len(rows))
    found = [json.loads(line) for line in lines.text.splitlines()]
    assert [[row[name] for name in grid["columns"]] for row in found] == rows

    _, text = await _exported(ada, job["id"], "csv", **query)
    table = list(csv.reader(io.StringIO(text.text)))
    assert table[0] == grid["columns"]
    plain = [["" if value is None else str(value) for value in row] for row in rows]
    assert [[cell.removeprefix("'") for cell in row] for row in table[1:]] == plain

    _, book = await _exported(ada, job["id"], "xlsx", **query)
    path = server.folder / "export.xlsx"
    path.write_bytes(book.content)
    with TableFile(path) as file:
        batch = next(file.pages(0, lambda: 1000, 1 << 20))
    read = [list(json.loads(text).values()) for text in batch.inputs]
    assert [[str(cell) for cell in row] for row in read] == plain


async def test_formulas_are_neutralised_in_csv(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "=HYPERLINK(1)", "+1", "@sum")
    _, text = await _exported(ada, job["id"], "csv")
    assert "'=HYPERLINK(1)" in text.text and "'@sum" in text.text
    assert text.headers["content-disposition"].startswith("attachment")


async def test_export_of_a_running_job_is_labelled_partial(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\nchair\n")).json()["id"]
    await taken_in(ada, job_id)
    export, text = await _exported(ada, job_id, "csv")
    assert export["partial"] and "Partial" in export["notes"][0]
    assert "-partial.csv" in text.headers["content-disposition"]


async def test_export_that_is_not_ready_is_a_conflict(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "chair")
    table = server.parts.console.exports
    export_id = await table.add_export(NewExport("ada", job["id"], "csv", [], False))
    await table.lease_export(export_id, "somebody else")
    assert (await ada.get(f"/api/exports/{export_id}/download")).status_code == 409


@pytest.mark.parametrize("kind", ["exports", "operations"])
async def test_what_a_lost_process_held_is_taken_over_at_once(server: ApiServer, kind: str) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "chair")
    store, console = server.parts.store, server.parts.console
    before = await _live(server)
    await store.workers.add_worker("lost", "elsewhere", 1, [])
    if kind == "exports":
        made = await console.exports.add_export(NewExport("ada", job["id"], "csv", [], False))
        await console.exports.lease_export(made, "lost")
    else:
        made = await console.operations.add(NewOperation("ada", "cancel", {}, [job["id"]], 1))
        await console.operations.lease(made, "lost")
    assert await store.workers.lose("lost", gone=True) == []
    while (await ada.get(f"/api/{kind}/{made}")).json()["state"] in ("QUEUED", "RUNNING"):
        await asyncio.sleep(0.05)
    # Whoever took it over leaves a moment after its end is shown.
    while await _live(server) - before:
        await asyncio.sleep(0.05)


async def _live(server: ApiServer) -> set[str]:
    return {worker["name"] for worker in await server.parts.store.workers.live()}


async def test_unknown_format_is_refused(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "chair")
    assert (await ada.post(f"/api/jobs/{job['id']}/export?format=pdf")).status_code == 422
