"""Dry runs: audited, and stopped by kill switches; they change nothing."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.kernel.gates.table import Want
from holdfast.pipeline import Gate
from tests.api.server import ApiServer
from tests.store.checks import fetch


@pytest.mark.parametrize("scope", ["pipeline:lengths", "all"])
async def test_kill_switch_stops_dry_runs(server: ApiServer, scope: str) -> None:
    ada = await server.person("ada")
    file = (await ada.post("/api/files", files={"file": ("a.csv", b"title\noak\n")})).json()
    form = {"pipeline": "lengths", "file_id": str(file["id"])}
    assert (await ada.post("/new/try", data=form)).status_code == 200
    acts = await fetch(
        server.parts.store, "select actor, subject from audit where action = 'dry_run'"
    )
    assert [tuple(act) for act in acts] == [("ada", "lengths")]
    await server.parts.control("root").switch(scope, True, "trouble")
    refused = await ada.post("/new/try", data=form)
    assert refused.status_code == 503 and scope in refused.text
    await server.parts.control("root").switch(scope, False, "")
    assert (await ada.post("/new/try", data=form)).status_code == 200


@pytest.mark.parametrize("scope", ["source:left", "source:right"])
async def test_kill_switch_of_a_source_stops_dry_runs_of_its_pipeline(
    server: ApiServer, scope: str
) -> None:
    ada = await server.person("ada")
    file = (await ada.post("/api/files", files={"file": ("a.csv", b"book\noak\n")})).json()
    form = {"pipeline": "shelves", "file_id": str(file["id"])}
    await server.parts.control("root").switch(scope, True, "trouble")
    refused = await ada.post("/new/try", data=form)
    assert refused.status_code == 503 and scope in refused.text
    acts = await fetch(server.parts.store, "select 1 from audit where action = 'dry_run'")
    assert acts == []
    await server.parts.control("root").switch(scope, False, "")
    assert (await ada.post("/new/try", data=form)).status_code == 200


NOTES = """
from holdfast import pipeline


@pipeline(columns=["before", "after"])
async def notes(row, ctx):
    before = await ctx.files.read("a/kept.txt")
    await ctx.files.put("a/kept.txt", b"new")
    await ctx.files.put("a/added.txt", b"new")
    await ctx.files.delete("a/old.txt")
    after = [info.key async for info in ctx.files.list("a/")]
    return {"before": before.decode(), "after": " ".join(after)}
"""


async def test_dry_run_changes_no_file(database_url: str, tmp_path: Path) -> None:
    code = tmp_path / "notes.py"
    code.write_text(NOTES)
    async with ApiServer(database_url, tmp_path, references=[str(code)]) as server:
        files = server.parts.files_of("notes")
        for name in ("kept", "old"):
            await files.put(f"a/{name}.txt", b"old")
        ada = await server.person("ada")
        file = (await ada.post("/api/files", files={"file": ("a.csv", b"title\noak\n")})).json()
        shown = await ada.post("/new/try", data={"pipeline": "notes", "file_id": str(file["id"])})
        assert "a/added.txt a/kept.txt<" in shown.text, "the pipeline sees what it did"
        assert [info.key async for info in files.list()] == ["a/kept.txt", "a/old.txt"]
        assert await files.read("a/kept.txt") == b"old"


WAITING = """
import asyncio
from pathlib import Path

from holdfast import Gate, pipeline

HERE = Path(__file__).parent


@pipeline(columns=["title"], gates=[Gate("narrow", concurrency=1)])
async def waiting(row, ctx):
    async with ctx.gate("narrow"):
        (HERE / "inside").touch()
        while not (HERE / "go").exists():
            await asyncio.sleep(0.01)
    return row
"""


async def test_dry_run_keeps_its_place_at_a_gate(database_url: str, tmp_path: Path) -> None:
    code = tmp_path / "waiting.py"
    code.write_text(WAITING)
    async with ApiServer(database_url, tmp_path, references=[str(code)]) as server:
        store = server.parts.store
        await store.gates.declare(Gate("narrow", concurrency=1))
        ada = await server.person("ada")
        file = (await ada.post("/api/files", files={"file": ("a.csv", b"title\noak\n")})).json()
        form = {"pipeline": "waiting", "file_id": str(file["id"])}
        trying = asyncio.create_task(ada.post("/new/try", data=form))
        while not (tmp_path / "inside").exists():
            await asyncio.sleep(0.01)
        await store.workers.free_left_behind()
        want = Want(places=1, starts=1, horizon=1.0, slack=0.0)
        other = await store.gates.reserve("narrow", "another worker", want)
        assert other.reason == "all places are taken"
        (tmp_path / "go").touch()
        assert "oak" in (await trying).text
        assert await fetch(store, "select 1 from gate_holds where slots > 0") == []
