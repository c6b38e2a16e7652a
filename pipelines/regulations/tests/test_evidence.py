"""Evidence: stored once, never changed, and checked by its hash."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator

from holdfast.clock import SystemClock
from holdfast.errors import UnfitState
from holdfast.kernel import Store
from holdfast_regulations import bodies
from holdfast_regulations.bodies import file_key
from holdfast_regulations.verifying import verify
from holdfast_regulations.warc_export import warc_parts
from pipelines.regulations.tests.desk import Desk
from pipelines.regulations.tests.documents import act_page
from pipelines.regulations.tests.world import RegulatoryWorld
from tests.store.deletion_scenarios import delete_all
from tests.world import Answer

CHANGES = [
    "update regulations_bodies set size = 1",
    "update regulations_bodies set packed = null",
    "delete from regulations_bodies",
    "update regulations_captures set status = 201",
    "update regulations_captures set captured_at = captured_at",
    "delete from regulations_captures",
    "delete from regulations_evidence",
    "update regulations_evidence set url = 'http://b.example/'",
    "update regulations_evidence set sha256 = 'x'",
    "update regulations_evidence set fetched_at = last_verified_at",
    "update regulations_texts set text = 'another'",
    "delete from regulations_texts",
    "delete from regulations_documents",
    "update regulations_documents set key = 'x'",
    "update regulations_documents set canonical = 'x', source = 'x'",
    "update regulations_documents set first_seen_at = last_verified_at",
]
REPLACES = [
    "insert or replace into regulations_bodies select sha256, 1, 1, 'database', null, stored_at"
    " from regulations_bodies",
    "insert or replace into regulations_captures select id, key, evidence_id, url, 'x', sha256,"
    " text_sha256, captured_at, status, headers, reason, found_by, job_id, seq"
    " from regulations_captures",
    "insert or replace into regulations_evidence select id, key, url, sha256, text_sha256,"
    " content_class, content_type, 'x', size, etag, fetched_at, last_verified_at"
    " from regulations_evidence",
    "insert or replace into regulations_texts select sha256, 'x' from regulations_texts",
]


async def everything(desk: Desk) -> list[Any]:
    tables = ("bodies", "captures", "evidence", "texts", "documents")
    return [await desk.fetch(f"select * from regulations_{table} order by 1") for table in tables]


async def test_database_refuses_every_change_of_evidence(desk: Desk) -> None:
    await desk.run(max_urls=2)
    before = await everything(desk)
    changes = list(CHANGES)
    if desk.is_sqlite:
        for replace in REPLACES:  # ignored, as `on conflict do nothing` would
            await desk.execute(replace)
    else:
        tables = ("bodies", "captures", "evidence", "texts", "documents")
        changes += [f"truncate regulations_{table}" for table in tables]
    for change in changes:
        with pytest.raises(Exception, match="evidence is never changed or deleted"):
            await desk.execute(change)
    assert await everything(desk) == before
    await desk.execute("update regulations_evidence set last_verified_at = fetched_at")


async def test_two_contents_of_one_url_are_two_rows(desk: Desk) -> None:
    """TEST-3 of docs/invariants.md."""
    path = desk.world.issues[-1].eli(1)
    await desk.run(max_urls=1)
    desk.world.versions[path] = "Drugi tekst. " * 40
    await desk.age()
    await desk.run(mode="recheck", recheck_days=1)
    rows = await desk.fetch(
        "select e.id, e.url, e.sha256, b.size from regulations_evidence e"
        " join regulations_bodies b on b.sha256 = e.sha256 order by e.id"
    )
    assert len(rows) == 2
    assert rows[0][1] == rows[1][1] and rows[0][2] != rows[1][2]
    bodies = [await desk.body(row[2]) for row in rows]
    assert b"Prvi" not in bodies[1] and b"Drugi tekst" in bodies[1]
    assert b"Drugi tekst" not in bodies[0]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_deleting_a_run_leaves_its_evidence(desk: Desk) -> None:
    job_id = await desk.run(max_urls=3)
    before = await everything(desk)
    assert await desk.counts(job_id)
    await delete_all(desk.store, job_id)
    assert await everything(desk) == before
    assert await desk.counts(job_id) == {}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_304_that_nobody_asked_for_is_not_evidence(desk: Desk) -> None:
    path = desk.world.issues[-1].eli(1)
    desk.world.replaced[path] = Answer(200, act_page(path), {"Content-Type": "text/html"})
    await desk.run(max_urls=1)
    desk.world.replaced[path] = Answer(304, b"")  # to a request without If-None-Match
    await desk.age()
    job_id = await desk.run(mode="recheck", recheck_days=1)
    assert (await desk.counters(job_id)).done == 0
    assert [status for _, status, *_ in await desk.captures()] == [200]


async def test_verify_finds_a_body_that_was_tampered_with(desk: Desk) -> None:
    await desk.run(max_urls=3)
    report = await verify(desk.store.fetch, desk.files)
    assert (report.bodies, report.faults) == (3, [])
    chosen = [await verify(desk.store.fetch, desk.files, [slug]) for slug in ("gazette", "tax")]
    assert [(part.bodies, part.texts) for part in chosen] == [(3, report.texts), (0, 0)]
    first, second, third = sorted(
        row[0] for row in await desk.fetch("select sha256 from regulations_bodies")
    )
    await desk.tamper(f"update regulations_bodies set size = 1 where sha256 = '{first}'")
    await desk.tamper(
        "update regulations_bodies set packed = (select b.packed from regulations_bodies b"
        f" where b.sha256 = '{third}') where sha256 = '{second}'"
    )
    await desk.tamper("update regulations_texts set text = text || '.'")
    faults = (await verify(desk.store.fetch, desk.files)).faults
    assert [(fault.kind, fault.name) for fault in faults][:2] == [("body", first), ("body", second)]
    assert {fault.kind for fault in faults[2:]} == {"text"}
    await desk.tamper("delete from regulations_documents")
    faults = (await verify(desk.store.fetch, desk.files)).faults
    assert sum(fault.kind == "capture" for fault in faults) == 3


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_bodies_in_a_bucket_are_never_written_over(
    store: Store, world: RegulatoryWorld, tmp_path: Path, bucket_settings: dict[str, str]
) -> None:
    desk = Desk(store, world, tmp_path, settings=bucket_settings, database_bytes=0)
    await desk.switch(True)
    await desk.run(max_urls=1)
    [(sha256, place)] = await desk.fetch("select sha256, place from regulations_bodies")
    assert place == "files" and b"Narodne novine" in await desk.body(sha256)
    assert await desk.files.put(file_key(sha256), b"another", if_absent=True) is None
    body = await bodies.store(b"other bytes", sha256, desk.files, 0)  # the hash of what is there
    assert body.place is bodies.Place.FILES
    assert b"Narodne novine" in await desk.body(sha256)
    assert (await verify(store.fetch, desk.files)).faults == []


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_large_bodies_are_files_and_verify_finds_changed_ones(
    store: Store, world: RegulatoryWorld, tmp_path: Path
) -> None:
    desk = Desk(store, world, tmp_path, database_bytes=0)
    await desk.switch(True)
    await desk.run(max_urls=3)
    rows = await desk.fetch("select sha256, place, packed from regulations_bodies order by sha256")
    assert [row[1:] for row in rows] == [("files", None)] * 3
    assert b"Narodne novine" in await desk.body(rows[0][0])
    assert (await verify(store.fetch, desk.files)).faults == []
    await desk.files.delete(file_key(rows[0][0]))
    await desk.files.put(file_key(rows[1][0]), b"another file")
    faults = (await verify(store.fetch, desk.files)).faults
    assert [(fault.name, fault.problem.split(":")[0]) for fault in faults] == [
        (rows[0][0], "its file is missing"),
        (rows[1][0], "it cannot be decompressed"),
    ]
    with pytest.raises(UnfitState, match="is damaged"):
        now = SystemClock().now()
        [part async for part in warc_parts(store.fetch, desk.files, "a.warc.gz", now)]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_warc_export_is_read_by_warcio_with_revisits(desk: Desk) -> None:
    path = desk.world.issues[-1].eli(1)
    await desk.run(max_urls=2)
    for text in ("Drugi tekst. " * 40, None, None):
        desk.world.versions |= {path: text} if text else {}
        if text is None:
            desk.world.versions.pop(path, None)
        await desk.age()
        await desk.run(mode="recheck", recheck_days=1)
    now = SystemClock().now()
    parts = [part async for part in warc_parts(desk.store.fetch, desk.files, "a.warc.gz", now)]
    records = []
    for record in ArchiveIterator(io.BytesIO(b"".join(parts)), check_digests="raise"):
        headers = record.rec_headers
        records.append(
            (record.rec_type, headers.get_header("WARC-Target-URI"), record.content_stream().read())
        )
    kinds = [kind for kind, _, _ in records]
    assert kinds.count("warcinfo") == 1
    mine = [(kind, body) for kind, url, body in records if url and url.endswith(path)]
    assert [kind for kind, _ in mine] == ["response", "response", "revisit", "revisit"]
    assert b"Drugi tekst" in mine[1][1]
