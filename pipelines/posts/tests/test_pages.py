"""The pages of posts over HTTP: what they show, to whom, and what they do."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import httpx2
import pytest

from holdfast_posts.web import PACK
from pipelines.posts.tests.desk import Desk
from pipelines.posts.tests.scene import failed_post, post
from tests.signing_in import sign_in
from tests.web.site import Site

EVIL = "<script>alert(1)</script> I love it"
YESTERDAY = f"{datetime.now(UTC) - timedelta(days=1):%Y-%m-%dT10:00:00Z}"
PATHS = (
    "/posts", "/posts/project?scope=proj_x", "/posts/project?scope=none&days=7", "/posts/errors",
    "/posts/errors?scope=proj_x&code=TIMEOUT&days=7", "/posts/batches", "/posts/batches/1",
    "/posts/batches?word=evt_a.json&scope=proj_x", "/posts/messages", "/posts/messages?state=DEAD",
    "/posts/messages?word=evt_a.json",
)  # fmt: skip


async def fill(desk: Desk) -> None:
    texts = (EVIL, "I hate it, terrible", "How much is it?", "Quá thất vọng", "My car caught fire")
    posts = [post(number, text, published_at=YESTERDAY) for number, text in enumerate(texts)]
    items = [*posts, failed_post(7, "TIMEOUT"), failed_post(8, "TIMEOUT"), {"meta": {}}]
    await desk.take(desk.event("a.json", items))
    broken = desk.event("broken.json", b"{")
    await desk.take(broken)
    missing = desk.event("missing.json", b"")
    del desk.batches["missing.json"]
    await desk.take(missing)
    await desk.work()


@pytest.fixture
def clients() -> Iterator[list[httpx2.Client]]:
    made: list[httpx2.Client] = []
    yield made
    for client in made:
        client.close()


@pytest.fixture
def site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    with Site(database_url, tmp_path, works=False, packs=[PACK], pipelines={}) as site:
        yield site


Signed = Callable[[str, str], httpx2.Client]


@pytest.fixture
def signed(site: Site, clients: list[httpx2.Client]) -> Signed:
    def sign(name: str, role: str) -> httpx2.Client:
        site.add_user(name, role)
        client = httpx2.Client(base_url=site.url, timeout=30, follow_redirects=True)
        clients.append(client)
        sign_in(client, site.login_link(name))
        return client

    return sign


def order(client: httpx2.Client, **fields: str) -> httpx2.Response:
    found = re.search(r'data-csrf="(\w+)"', client.get("/account").text)
    assert found
    return client.post("/posts/messages/release", data={"csrf": found[1], **fields})


def test_pages_without_anything_teach(site: Site, signed: Signed) -> None:
    client = signed("root", "admin")
    assert "holdfast consume posts" in client.get("/posts").text
    for path in PATHS:
        assert client.get(path).status_code == (404 if path.endswith("/1") else 200), path


def test_pages_show_posts_errors_batches_and_messages(site: Site, signed: Signed) -> None:
    site.run(fill(Desk(site.parts.store)))
    client = signed("root", "admin")
    for path in PATHS:
        reply = client.get(path)
        assert reply.status_code == 200, path
        assert "<script>alert" not in reply.text, path
    assert "proj_x" in client.get("/posts").text
    project = client.get("/posts/project?scope=proj_x").text
    assert 'class="is-negative"' in project
    assert "&lt;script&gt;alert(1)" in project
    assert ">CRISIS<" in project.upper()
    assert "TIMEOUT" in client.get("/posts/errors").text
    batch = client.get("/posts/batches/1").text
    assert "an item has no id" in batch
    assert "8 items; 50 are usual" in batch
    assert "BATCH_CORRUPT" in client.get("/posts/messages?state=DEAD").text
    assert "BATCH_MISSING" in client.get("/posts/messages?state=WAITING").text


def test_messages_are_tried_again_by_people_who_may(site: Site, signed: Signed) -> None:
    store = site.parts.store
    site.run(fill(Desk(store)))
    viewer = signed("eve", "reader")
    assert "Try again" not in viewer.get("/posts/messages").text
    assert order(viewer, state="DEAD").status_code == 403
    admin = signed("root", "admin")
    assert "1 message will be tried again" in order(admin, state="DEAD").text
    assert "1 message will be tried again" in order(admin, key="event:evt_missing.json").text
    assert order(admin, state="TAKEN").status_code == 404
    rows = site.run(store.fetch("posts_events_of", {"state": "DEAD", "word": None, "limit": 9}))
    assert rows == []
