"""Query plans: what runs for every batch goes through its index, whatever the planner guesses."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from typing import Any

import pytest

from holdfast.kernel import Store, open_store
from holdfast.model import ItemStatus
from holdfast.pipeline import Dedupe
from tests.store.checks import (
    claim_one,
    execute,
    ingest,
    keyed,
    lease_stream,
    make_job,
    records,
    settle,
)

EARLY = "1970-01-01T00:00:00.000Z"

SIZES = {"input_chars": 2000, "result_chars": 9000}

#: query -> (its parameters, the index, or any of several, that serves each large table it reads)
PLANS: list[tuple[str, dict[str, Any], dict[str, str]]] = [
    ("claimable_ranges", {"limit": 16}, {"ranges": "ranges_to_claim"}),
    ("recent_ranges", {"limit": 16}, {"ranges": "ranges_of_job_by_since"}),
    ("fresh_items", {"lo": 2000, "hi": 2100}, {"items": "items_pkey"}),
    (
        "remaining_items",
        {"lo": 900, "hi": 1100},
        {"items": "items_pkey", "outcomes": "outcomes_pkey"},
    ),
    (
        "remaining_seqs",
        {"lo": 900, "hi": 1100},
        {"items": "items_pkey", "outcomes": "outcomes_pkey"},
    ),
    ("again_items", {"range_id": 0}, {"outcomes": "outcomes_by_range", "items": "items_pkey"}),
    ("again_seqs", {"range_id": 0}, {"outcomes": "outcomes_by_range"}),
    ("finished_items", {"seqs": [1, 5, 9], "until": EARLY}, {"outcomes": "outcomes_pkey"}),
    ("move_to_range", {"seqs": [1, 5, 9], "range_id": 0}, {"outcomes": "outcomes_pkey"}),
    (
        "next_finished_items",
        {
            "status": "ERROR",
            "any_code": 1,
            "code": "",
            "since": EARLY,
            "until": EARLY,
            "seq": 0,
            "limit": 500,
        },
        {"outcomes": "outcomes_by_status"},
    ),
    (
        "latest_errors_by_code",
        {"limit": 100},
        {"outcomes": "outcomes_by_status"},
    ),
    (
        "latest_errors_of_code",
        {"code": "TIMEOUT", "limit": 100},
        {"outcomes": "outcomes_by_code"},
    ),
    ("codes_of_job", {}, {"outcomes": "outcomes_by_code"}),
    ("code_began", {"code": "TIMEOUT"}, {"outcomes": "outcomes_by_code"}),
    (
        "normalized_of_items",
        {"seqs": [1, 5, 9], "chars": 9000},
        {"outcomes": "outcomes_pkey"},
    ),
    (
        "page_by_seq",
        {"after": 1000, "limit": 1000, **SIZES},
        {"items": "items_pkey", "outcomes": "outcomes_pkey"},
    ),
    (
        "page_by_status",
        {"status": "DONE", "updated_at": EARLY, "until": EARLY, "seq": 0, "limit": 99, **SIZES},
        {"outcomes": "outcomes_by_status", "items": "items_pkey"},
    ),
    (
        "page_of_fresh",
        {"hi": 1100, "after": 950, "limit": 1000, **SIZES},
        {"items": "items_pkey", "outcomes": "outcomes_pkey"},
    ),
    (
        "open_of_fresh_ranges",
        {"range_ids": [1, 2], **SIZES},
        # While there are few ranges, the planner may as well go through all of them.
        {
            "ranges": "ranges_pkey|ranges_of_job_by_since|ranges_to_claim",
            "items": "items_pkey",
            "outcomes": "outcomes_pkey",
        },
    ),
    (
        "open_of_again_ranges",
        {"range_ids": [1, 2], **SIZES},
        {"outcomes": "outcomes_by_range", "items": "items_pkey"},
    ),
    (
        "page_of_again",
        {"range_id": 0, "after": 0, "limit": 9, **SIZES},
        {"outcomes": "outcomes_by_range"},
    ),
    (
        "page_by_code",
        {
            "code": "TIMEOUT",
            "statuses": ["ERROR"],
            "updated_at": EARLY,
            "until": EARLY,
            "seq": 0,
            "limit": 99,
            **SIZES,
        },
        {"outcomes": "outcomes_by_code", "items": "items_pkey"},
    ),
    (
        "open_ranges_of_job",
        {"since": EARLY, "until": EARLY, "id": 0, "want": 0, "limit": 50, "size": 101},
        # Of the few ranges here either index of the job is as good.
        {"ranges": "ranges_of_job_by_since|ranges_to_claim"},
    ),
    ("open_range_exists", {}, {"ranges": "ranges_to_claim|ranges_of_job_by_since"}),
    (
        "settle_part",
        {"id": 1, "token": "t", "settled": 0, "seconds": 9.0},
        {"ranges": "ranges_pkey"},
    ),
    ("fresh_items_of", {"spans": "[[2000,2010],[2050,2060]]"}, {"items": "items_pkey"}),
    ("attempts_of_item", {"seq": 7}, {"attempts": "attempts_pkey"}),
    ("known_keys", {"scope": "shop", "keys": ["a", "b"]}, {"keys": "keys_pkey"}),
]


@pytest.fixture
async def filled(database_url: str) -> AsyncIterator[tuple[Store, int]]:
    """A job half done among others, large enough that its shape matters to the planner."""
    store = await open_store(database_url)
    for _ in range(2):
        job_id = await make_job(store)
        stream = await lease_stream(store, job_id)
        for number in range(30):
            await ingest(store, stream, records(100, number))
        for status in (ItemStatus.DONE, ItemStatus.PENDING, ItemStatus.ERROR):
            for _ in range(4):
                claimed = await claim_one(store, job_id, 100)
                if not claimed.lease.again:
                    await settle(store, claimed, status, delay=3600.0)
    stream = await lease_stream(store, await make_job(store))
    await ingest(store, stream, keyed(*map(str, range(2000))), Dedupe("shop"))
    await execute(store, "analyze")
    yield store, job_id
    await store.close()


async def test_every_query_on_large_tables_goes_through_its_index(
    filled: tuple[Store, int],
) -> None:
    store, job_id = filled
    wrong = []
    for query, params, indexes in PLANS:
        scans = await _scans(store, query, {"job_id": job_id, **params})
        for table, index in indexes.items():
            found = scans.get(table, {"nothing"})
            if not found <= set(index.split("|")):
                wrong.append(f"{query} reads {table} by {found}, not {index}")
    assert wrong == []


@pytest.mark.parametrize("query", ["fresh_items", "fresh_items_of", "remaining_items"])
async def test_items_of_a_claim_are_sought_by_their_numbers(
    filled: tuple[Store, int], query: str
) -> None:
    """Not by their job alone: then every claim would read the whole job."""
    store, job_id = filled
    params = next(params for name, params, _ in PLANS if name == query)
    plan = await _plan(store, query, {"job_id": job_id, **params})
    sought = [line for line in plan if "job_id" in line and ("items" in line or " i " in line)]
    assert sought and all("seq" in line for line in sought), plan


async def test_claims_seek_what_came_a_moment_ago(filled: tuple[Store, int]) -> None:
    """Not their job alone: while a transaction is held open, what was ended stays in the index."""
    store, job_id = filled
    params = {"job_id": job_id, "limit": 16, "most_items": 1, "most_bytes": 9}
    params |= {"token": "t", "worker": "w", "seconds": 9.0}
    for query in {"recent_ranges", "claim_arrivals"} & set(store.database.driver.queries):
        plan = await _plan(store, query, params)
        sought = [line for line in plan if "job_id" in line and "ranges" in line]
        assert sought and all("since" in line.partition(" (")[2] for line in sought), plan


async def _plan(store: Store, query: str, params: dict[str, Any]) -> list[str]:
    """A line for each table that is read, with the columns by which its index is searched."""
    compiled = store.database.driver.queries[query]
    if store.database.driver.dialect == "sqlite":
        rows = await store.database.fetch(f"explain query plan {compiled.sql}", params)
        return [str(row[3]) for row in rows]
    async with store.database.driver._pool.acquire() as connection:  # type: ignore[attr-defined]
        prepared = await connection.prepare(compiled.sql)
        plan = await prepared.explain(*[params[name] for name in compiled.parameters])
    return _conditions(plan[0]["Plan"])


def _conditions(node: dict[str, Any]) -> list[str]:
    own = f"{node.get('Index Name', '')} {node.get('Index Cond', '')}"
    return [own, *(line for child in node.get("Plans", []) for line in _conditions(child))]


async def _scans(store: Store, query: str, params: dict[str, Any]) -> dict[str, set[str]]:
    """Table -> the indexes that it is read through; "scan" where it is read as a whole."""
    compiled = store.database.driver.queries[query]
    if store.database.driver.dialect == "sqlite":
        return await _sqlite_scans(store, compiled, params)
    return await _postgres_scans(store, compiled, params)


async def _sqlite_scans(store: Store, compiled: Any, params: dict[str, Any]) -> dict[str, set[str]]:
    rows = await store.database.fetch(f"explain query plan {compiled.sql}", params)
    aliases = {"i": "items", "o": "outcomes", "r": "ranges", "k": "keys", "j": "jobs"}
    scans: dict[str, set[str]] = {}
    for row in rows:
        words = str(row[3]).split()
        if words[0] not in ("SEARCH", "SCAN"):
            continue
        words = [word.removeprefix("holdfast_") for word in words]
        table = aliases.get(words[1], words[1])
        how = "scan"
        if words[0] == "SEARCH":
            how = words[words.index("INDEX") + 1] if "INDEX" in words else f"{table}_pkey"
        scans.setdefault(table, set()).add(how)
    return scans


async def _postgres_scans(
    store: Store, compiled: Any, params: dict[str, Any]
) -> dict[str, set[str]]:
    """The plan of the driver's own sessions, for any parameters (a generic plan) and for these."""
    scans: dict[str, set[str]] = {}
    async with store.database.driver._pool.acquire() as connection:  # type: ignore[attr-defined]
        for mode in ("force_generic_plan", "force_custom_plan"):
            async with connection.transaction():
                await connection.execute(f"set local plan_cache_mode = {mode}")
                prepared = await connection.prepare(compiled.sql)
                arguments = [_literal(params[name]) for name in compiled.parameters]
                listed = f"({', '.join(arguments)})" if arguments else ""
                rows = await connection.fetch(
                    f"explain (format json) execute {prepared.get_name()} {listed}"
                )
                _collect(json.loads(rows[0][0])[0]["Plan"], scans)
    return scans


def _literal(value: Any) -> str:
    if isinstance(value, int):
        return str(value)
    if isinstance(value, list):
        return f"array[{', '.join(map(_literal, value))}]"
    return f"'{value}'"


def _collect(node: dict[str, Any], scans: dict[str, set[str]]) -> None:
    kind, table = node["Node Type"], node.get("Relation Name")
    if kind in ("Index Scan", "Index Only Scan"):
        scans.setdefault(table, set()).add(node["Index Name"])
    elif kind == "Seq Scan":
        scans.setdefault(table, set()).add("scan")
    elif kind == "Bitmap Heap Scan":
        for child in node["Plans"]:
            scans.setdefault(table, set()).add(child["Index Name"])
    for child in node.get("Plans", []):
        _collect(child, scans)
