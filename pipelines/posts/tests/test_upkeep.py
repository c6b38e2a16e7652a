"""Retention, messages that wait, and the views of the docs."""

from __future__ import annotations

import re
from pathlib import Path

import holdfast_posts as posts
from holdfast.kernel import Store
from holdfast_posts.options import PostsOptions
from holdfast_posts.pipeline import Posts
from pipelines.posts.tests.desk import Desk
from pipelines.posts.tests.scene import failed_post, post
from tests.store.checks import execute, fetch


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


async def test_messages_of_a_format_that_is_off_are_not_sent_again_and_again(store: Store) -> None:
    """Thousands may be parked for days: each time they were sent, they would only be parked again,
    and messages that can be processed would wait behind them."""
    desk = Desk(store, Posts(PostsOptions(buckets="b", park_seconds=0.1)))
    await store.flags.set_flag("posts_new_mode", False, "tester")
    for number in range(3):
        await desk.take(desk.event(f"{number}", [post(number)], job_id=f"p{number}-brand-0"))
    await desk.take(post(9))
    await execute(store, "update posts_events set due_at = received_at")
    await desk.work()
    assert await fetch(store, "select 1 from outbox where exchange = ''") == []
    shadow = {**desk.event("4", [post(4)]), "event_id": "evt_late"}
    await store.flags.set_flag("posts_shadow", True, "tester")
    await desk.work()
    sent = await fetch(store, "select count(*) from outbox where exchange = ''")
    assert sent == [(3,)], "to be compared"
    await desk.take(shadow)
    await execute(store, "delete from outbox")
    await execute(store, "update posts_events set due_at = received_at")
    for number in range(3):
        await desk.take(desk.event(f"{number}", [post(number)], job_id=f"p{number}-brand-0"))
    await execute(store, "update posts_events set due_at = received_at")
    await desk.work()
    assert await fetch(store, "select 1 from outbox where exchange = ''") == [], "all compared"
    await execute(store, "update posts_events set due_at = received_at")
    await store.flags.set_flag("posts_new_mode", True, "tester")
    await desk.work()
    assert await fetch(store, "select count(*) from outbox where exchange = ''") == [(4,)]
    # The broker is gone: copies do not pile up.
    await execute(store, "update outbox set created_at = '2026-01-01T00:00:00.000Z'")
    await execute(store, "update posts_events set due_at = received_at")
    await desk.work()
    assert await fetch(store, "select count(*) from outbox where exchange = ''") == [(4,)]


async def test_views_of_the_docs_have_the_earlier_names(store: Store) -> None:
    text = (Path(posts.__file__).parent / "docs/reference.md").read_text()
    statements = re.findall(r"^create view [^;]+;$", text, re.MULTILINE)
    assert len(statements) == 2
    place = "holdfast_" if store.database.driver.dialect == "sqlite" else "holdfast."
    for statement in statements:
        await execute(store, statement.replace("holdfast.", place))
    desk = Desk(store)
    await desk.take(desk.event("a", [post(1), failed_post(2, "TIMEOUT")]))
    await desk.work()
    assert await fetch(store, "select id, project_id from post_analytics") == [("1", "proj_x")]
    assert await fetch(store, "select error_code from crawl_errors") == [("TIMEOUT",)]
