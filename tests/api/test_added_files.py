"""Fields of records and columns of files: the same matching at every door of a standing job."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx2
import pytest
import structlog

from holdfast.kernel.arrivals.adding import Adding
from holdfast.messaging.envelope import ItemsAdd, compose, dump
from holdfast.messaging.item_adds import ItemAdds
from holdfast.messaging.signing import MessageTrust
from tests.api.server import ApiServer, ended, upload
from tests.pictures import png

NAMED = """
from holdfast import pipeline

@pipeline(inputs={"title": ["Product title"], "brand": ["maker"]}, columns=["title", "brand"])
async def named(row, ctx):
    return {"title": row["title"], "brand": row.get("brand")}
"""
OPEN = {"pipeline": "named", "standing": True}
#: An alias, another spelling, and a name that only contains a field's.
TABLE = "Product title;BRAND;subtitle\noak;ACME;x\nelm;Bolt;y\n"
ROWS = [
    {"Product title": "oak", "BRAND": "ACME", "subtitle": "x"},
    {"Product title": "elm", "BRAND": "Bolt", "subtitle": "y"},
]


@pytest.fixture
async def server(database_url: str, tmp_path: Path) -> AsyncIterator[ApiServer]:
    (tmp_path / "named.py").write_text(NAMED)
    references = [str(tmp_path / "named.py")]
    settings = {"file_roots": str(tmp_path), "quota_items": "12"}
    async with ApiServer(database_url, tmp_path, references=references, **settings) as server:
        yield server


async def opened(client: httpx2.AsyncClient) -> int:
    return int((await client.post("/api/jobs", json=OPEN)).json()["id"])


async def inputs_and_results(
    server: ApiServer, client: httpx2.AsyncClient, job_id: int
) -> list[tuple[Any, Any]]:
    await server.work(job_id)
    listed = (await client.get(f"/api/jobs/{job_id}/items")).json()["items"]
    details = [
        (await client.get(f"/api/jobs/{job_id}/items/{each['seq']}")).json() for each in listed
    ]
    return [(each["input"], each["result"]) for each in details]


async def send_message(server: ApiServer, owner: str, rows: list[dict[str, Any]]) -> None:
    """As a worker takes one."""
    store = server.parts.store
    adding = Adding(store, {}, 10_000, structlog.get_logger())
    body = ItemsAdd(pipeline="named", rows=rows)
    message = compose(
        body, message_id=str(uuid4()), correlation_id="x", created_at=await store.jobs.now(),
        max_attempts=3,
    )  # fmt: skip
    await ItemAdds(adding, MessageTrust(), owner).add(message, body, dump(message))


async def test_each_door_matches_names_alike_and_keeps_rows_as_they_came(
    server: ApiServer,
) -> None:
    seen = []
    for door in ("job", "items", "message", "form", "stored", "path"):
        client = await server.person(door)
        job_id = await opened(client)
        path = f"/api/jobs/{job_id}"
        if door == "job":
            job_id = (await upload(client, TABLE, pipeline="named")).json()["id"]
            await ended(server, client, job_id)
        elif door == "items":
            assert (await client.post(f"{path}/items", json=ROWS)).status_code == 201
        elif door == "message":
            await send_message(server, "message", ROWS)
        elif door == "form":
            form = {"file": ("list.csv", TABLE.encode())}
            added = (await client.post(f"{path}/files", files=form)).json()
            assert (added["accepted"], added["known"]) == (2, 0)
            assert "The column 'Product title' is read as 'title'." in added["readAs"]
            assert "delimiter ';'" in added["readAs"][0]
        else:
            (server.folder / "list.csv").write_text(TABLE)
            file = {"file": ("list.csv", TABLE.encode())}
            stored = (await client.post("/api/files", files=file)).json()["id"]
            place: Any = {"fileId": stored}
            if door == "path":
                place = {"path": str(server.folder / "list.csv")}
            assert (await client.post(f"{path}/files", json=place)).json()["accepted"] == 2
        seen.append(await inputs_and_results(server, client, job_id))
    assert seen[0] == [
        (ROWS[0], {"title": "oak", "brand": "ACME"}),
        (ROWS[1], {"title": "elm", "brand": "Bolt"}),
    ]
    assert seen == [seen[0]] * 6


async def test_chosen_columns_headers_and_keys_hold_for_added_files(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = await opened(ada)
    path = f"/api/jobs/{job_id}/files"
    form = {"file": ("list.csv", b"7,oak\n8,elm\n")}
    said = {"headerRow": "0", "columns": json.dumps({"column_2": "title"}), "key": "title"}
    first = await ada.post(path, files=form, data=said)
    assert first.json()["accepted"] == 2, first.text
    assert "no header (as given)" in first.json()["readAs"][0]
    again = await ada.post(path, files=form, data=said)
    assert (again.json()["accepted"], again.json()["known"]) == (0, 2)
    other = {"file": ("other.csv", b"Product-Title\nash\nash\n")}
    third = await ada.post(path, files=other, data={"key": "title"})
    assert (third.json()["accepted"], third.json()["known"]) == (1, 1)
    shown = await inputs_and_results(server, ada, job_id)
    assert [result["title"] for _, result in shown] == ["oak", "elm", "ash"]
    names = {"column_2": "title"}
    assert shown[0][0] == {"column_1": "7", "column_2": "oak", "_names": names}


async def test_file_that_cannot_be_added_is_refused_as_a_whole(server: ApiServer) -> None:
    ada, bob = await server.person("ada"), await server.person("bob")
    rita = await server.person("rita", "reader")
    job_id, other = await opened(ada), await opened(bob)
    path = f"/api/jobs/{job_id}/files"
    many = "title\n" + "x\n" * 10_001
    job = (await upload(ada, TABLE, pipeline="named")).json()["id"]
    picture = await ada.post("/api/files", files={"file": ("a.png", png(3, 3))})
    table = {"file": ("a.csv", TABLE.encode())}
    replies = [
        await ada.post(f"/api/jobs/{other}/files", files=table),
        await rita.post(path, files=table),
        await ada.post(f"/api/jobs/{job}/files", files=table),
        await ada.post(path, files=table, data={"columns": '{"subtitle": "colour"}'}),
        await ada.post(path, files=table, data={"columns": '{"colour": "title"}'}),
        await ada.post(path, files={"file": ("many.csv", many.encode())}),
        await ada.post(path, files={"file": ("a.png", png(3, 3))}),
        await ada.post(path, json={"fileId": picture.json()["id"]}),
        await ada.post(path, json={}),
        await ada.post(path, json={"fileId": 1, "path": "x"}),
        await ada.post(path, content=b"title", headers={"Content-Type": "text/csv"}),
        # The owner's job over a file has two open items of the twelve.
        await ada.post(path, files={"file": ("a.csv", b"title\n" + b"x\n" * 11)}),
    ]
    assert [reply.status_code for reply in replies] == [
        404, 403, 409, 422, 422, 422, 422, 422, 422, 422, 415, 409,
    ]  # fmt: skip
    assert "HOLDFAST_QUOTA_ITEMS" in replies[-1].json()["hint"]
    assert (await ada.get(f"/api/jobs/{job_id}")).json()["counters"]["accepted"] == 0


async def test_repeated_request_adds_a_file_once(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = await opened(ada)
    path, key = f"/api/jobs/{job_id}/files", {"Idempotency-Key": "one"}
    table = {"file": ("a.csv", TABLE.encode())}
    replies = await asyncio.gather(*(ada.post(path, files=table, headers=key) for _ in range(4)))
    assert {reply.status_code for reply in replies} <= {201, 409}
    again = await ada.post(path, files=table, headers=key)
    assert again.status_code == 201 and again.headers["idempotency-replayed"] == "true"
    changed = {"file": ("a.csv", TABLE.replace("oak", "ash").encode())}
    assert (await ada.post(path, files=changed, headers=key)).status_code == 422
    assert (await ada.get(f"/api/jobs/{job_id}")).json()["counters"]["accepted"] == 2
