"""Evidence: stored once, never changed, and checked by its hash."""

from __future__ import annotations

from typing import Any

import pytest

from tests.pipelines.regulations.desk import Desk
from tests.store.deletion_scenarios import delete_all

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
    tables = ("bodies", "captures", "evidence", "texts")
    return [await desk.fetch(f"select * from regulations_{table} order by 1") for table in tables]


async def test_database_refuses_every_change_of_evidence(desk: Desk) -> None:
    await desk.run(max_urls=2)
    before = await everything(desk)
    changes = list(CHANGES)
    if desk.is_sqlite:
        for replace in REPLACES:  # ignored, as `on conflict do nothing` would
            await desk.execute(replace)
    else:
        tables = ("bodies", "captures", "evidence", "texts")
        changes += [f"truncate regulations_{table}" for table in tables]
    for change in changes:
        with pytest.raises(Exception, match="evidence is never changed or deleted"):
            await desk.execute(change)
    assert await everything(desk) == before
    await desk.execute("update regulations_evidence set last_verified_at = fetched_at")


async def test_two_contents_of_one_url_are_two_rows(desk: Desk) -> None:
    """TEST-3 of the document."""
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
