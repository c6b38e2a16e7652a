"""Two columns for one field: refused before the start, with the names of both, at every door."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from holdfast.errors import UserError
from tests.api.server import ApiServer, ended, taken_in, upload
from tests.api.test_added_files import NAMED, opened, send_message

TABLE = "a;b\noak;elm\n"
CHOSEN = {"a": "title", "b": "title"}
BOTH = "The columns 'a' and 'b' would both be read as 'title'."
#: The second line but one has the other column, after those that are looked at before the start.
LINES = '{"a": "oak"}\n' * 1000 + '{"a": "elm", "title": "ash"}\n{"a": "fir"}\n'


@pytest.fixture
async def server(database_url: str, tmp_path: Path) -> AsyncIterator[ApiServer]:
    (tmp_path / "named.py").write_text(NAMED)
    references = [str(tmp_path / "named.py")]
    async with ApiServer(database_url, tmp_path, references=references) as started:
        yield started


async def test_two_chosen_columns_for_a_field_are_refused_by_the_api(server: ApiServer) -> None:
    ada = await server.person("ada")
    path = f"/api/jobs/{await opened(ada)}"
    form = {"file": ("a.csv", TABLE.encode())}
    chosen = {"columns": json.dumps(CHOSEN)}
    item: dict[str, Any] = {"a": "oak", "b": "elm", "_names": CHOSEN}
    for refused in (
        await upload(ada, TABLE, pipeline="named", columns=CHOSEN),
        await ada.post(f"{path}/files", files=form, data=chosen),
        await ada.post(f"{path}/items", json=[item]),
        await ada.post(f"{path}/items?key=title", json=[item]),
    ):
        assert (refused.status_code, refused.json()["detail"]) == (422, BOTH)
    with pytest.raises(UserError, match="'a' and 'b' would both"):
        await send_message(server, "ada", [item])
    assert (await ada.get(path)).json()["counters"]["accepted"] == 0


async def test_two_chosen_columns_for_a_field_are_refused_by_the_pages(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = await opened(ada)
    stored = await ada.post("/api/files", files={"file": ("a.csv", TABLE.encode())})
    form = {
        "pipeline": "named", "file_id": str(stored.json()["id"]), "name:a": "title",
        "name:b": "title", "job": str(job_id),
    }  # fmt: skip
    for path in ("/new", "/new/try", "/new/add"):
        refused = await ada.post(path, data=form)
        assert refused.status_code == 422
        words = refused.text.replace("&#39;", "'")
        assert "The columns 'a' and 'b' would both be read as 'title'." in words
    assert len((await ada.get("/api/jobs")).json()["jobs"]) == 1


async def test_column_for_a_field_that_another_column_is_named_after_is_refused(
    server: ApiServer,
) -> None:
    ada = await server.person("ada")
    refused = await upload(ada, "title;b\noak;elm\n", pipeline="named", columns={"b": "title"})
    assert refused.status_code == 422
    assert "'title' and 'b' would both be read as 'title'" in refused.json()["detail"]


@pytest.mark.parametrize("standing", [False, True])
async def test_later_line_with_both_columns_becomes_an_error_item(
    server: ApiServer, standing: bool
) -> None:
    """The columns of a JSON Lines file are not all known before the start."""
    ada = await server.person("ada")
    chosen = {"columns": json.dumps({"a": "title"})}
    form = {"file": ("a.jsonl", LINES.encode())}
    if standing:
        job_id = await opened(ada)
        added = await ada.post(f"/api/jobs/{job_id}/files", files=form, data=chosen)
        assert added.json()["accepted"] == 1002, added.text
        await server.work(job_id)
    else:
        made = await ada.post("/api/jobs", files=form, data={"pipeline": "named", **chosen})
        job_id = made.json()["id"]
        await taken_in(ada, job_id)
        await ended(server, ada, job_id)
    counters = (await ada.get(f"/api/jobs/{job_id}")).json()["counters"]
    assert (counters["done"], counters["error"]) == (1001, 1)
    (item,) = (await ada.get(f"/api/jobs/{job_id}/items?status=ERROR")).json()["items"]
    broken = (await ada.get(f"/api/jobs/{job_id}/items/{item['seq']}")).json()
    assert broken["errorCode"] == "BAD_ROW" and "'a' and 'title'" in broken["errorMessage"]
