"""Retention, and indexes that PostgreSQL builds outside a transaction."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import asyncpg

from holdfast.pipelines import posts
from holdfast.pipelines.posts.options import PostsOptions
from holdfast.pipelines.posts.pipeline import Posts
from holdfast.store import Store
from holdfast.store.migrate import upgrade
from tests.pipelines.posts.desk import Desk
from tests.pipelines.posts.scene import failed_post, post
from tests.store.checks import execute, fetch

VALID = """
select c.relname from pg_index i join pg_class c on c.oid = i.indexrelid
where  i.indisvalid and c.relname like 'posts%by%'
"""


async def test_old_errors_and_batches_go_and_posts_stay(store: Store) -> None:
    options = PostsOptions(buckets="b", retain_errors_days=7, retain_batches_days=7)
    desk = Desk(store, Posts(options))
    for name in ("old", "new"):
        items = [post(f"{name}1"), failed_post(f"{name}2", "TIMEOUT")]
        event = desk.event(name, items)
        if name == "old":
            event["timestamp"] = "2026-01-01T00:00:00Z"
        await desk.take(event)
        await desk.work()
        if name == "old":
            long_ago = "2026-01-01T00:00:00.000Z"
            await execute(store, f"update posts_crawl_errors set created_at = '{long_ago}'")
            await execute(store, f"update posts_batches set finished_at = '{long_ago}'")
    await desk.work()
    assert await fetch(store, "select content_id from posts_crawl_errors") == [("new2",)]
    assert await fetch(store, "select batch_key from posts_batches") == [("b/new",)]
    assert len(await fetch(store, "select 1 from posts_batch_items")) == 2
    assert await fetch(store, "select key from posts_events") == [("event:evt_new",)]
    assert len(await fetch(store, "select 1 from posts_analytics")) == 2
    kept = await fetch(store, "select sum(errors) from posts_error_days")
    assert kept[0][0] == 2, "the sums stay"


async def test_views_of_the_docs_have_the_names_of_the_document(store: Store) -> None:
    text = (Path(posts.__file__).parent / "docs/reference.md").read_text()
    statements = re.findall(r"^create view [^;]+;$", text, re.MULTILINE)
    assert len(statements) == 2
    for statement in statements:
        await execute(store, statement)
    desk = Desk(store)
    await desk.take(desk.event("a", [post(1), failed_post(2, "TIMEOUT")]))
    await desk.work()
    assert await fetch(store, "select id, project_id from post_analytics") == [("1", "proj_x")]
    assert await fetch(store, "select error_code from crawl_errors") == [("TIMEOUT",)]


def test_index_that_is_missing_is_built_by_the_next_upgrade(empty_postgres_url: str) -> None:
    upgrade(empty_postgres_url)
    names = asyncio.run(_valid(empty_postgres_url, drop="posts_analytics_by_job"))
    assert "posts_analytics_by_impact" in names
    upgrade(empty_postgres_url)
    assert "posts_analytics_by_job" in asyncio.run(_valid(empty_postgres_url))


async def _valid(url: str, drop: str | None = None) -> set[str]:
    connection = await asyncpg.connect(url)
    try:
        names = {row[0] for row in await connection.fetch(VALID)}
        if drop:
            await connection.execute(f"drop index {drop}")
        return names
    finally:
        await connection.close()
