"""The pages and routes of regulations: what they show, to whom, and what they do."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from holdfast.kernel.database.migrate import upgrade
from holdfast_regulations.pipeline import Regulations
from holdfast_regulations.web import PACK
from pipelines.regulations.tests.desk import Desk, hasty_sources
from pipelines.regulations.tests.world import RegulatoryWorld
from tests.fixtures import sqlite_url_of
from tests.web.conftest import browser, open_as, root, watch  # noqa: F401 - for the browser
from tests.web.site import Site
from tests.web.test_access import PHONE, findings
from tests.web.visitors import Visitors

EVIL = "&lt;script&gt;alert(1)&lt;/script&gt; Porez na dohodak. " * 8


class Library(Visitors):
    """A site whose worker has run twice, with one act that changed in between."""

    def __init__(self, site: Site, world: RegulatoryWorld, desk: Desk) -> None:
        super().__init__(site)
        self.world, self.desk = world, desk


async def fill(desk: Desk) -> None:
    await desk.switch(True)
    path = desk.world.issues[-1].eli(1)
    await desk.run(max_urls=4)
    desk.world.versions[path] = EVIL
    await desk.age()
    await desk.run(mode="recheck", recheck_days=1)


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Library]:
    folder = tmp_path_factory.mktemp("regulations")
    url = sqlite_url_of(folder / "holdfast.db")
    upgrade(url)
    world = RegulatoryWorld(issues=6, acts=3)
    sources = folder / "sources.toml"
    sources.write_text(hasty_sources())
    pipeline = Regulations(Desk.options_for(sources))
    Desk.give_extension(pipeline)
    pipelines = {"regulations": pipeline}
    with Site(url, folder, works=False, packs=[PACK], pipelines=pipelines) as site:
        site.run(world.__aenter__())
        data = folder / ".holdfast"
        data.mkdir(exist_ok=True)
        desk = Desk(site.parts.store, world, data)
        site.run(fill(desk))
        made = Library(site, world, desk)
        yield made
        made.close()
        site.run(world.__aexit__(None, None, None))


@pytest.fixture(scope="module")
def site(library: Library) -> Site:
    return library.site


def documents(library: Library, **query: str) -> list[dict[str, Any]]:
    reply = library.admin.get("/api/regulations/documents", params=query)
    found: list[dict[str, Any]] = reply.json()["documents"]
    return found


def changed(library: Library) -> dict[str, Any]:
    return next(document for document in documents(library) if document["versions"] == 2)


def order(client: httpx2.Client, path: str, **fields: Any) -> httpx2.Response:
    found = re.search(r'data-csrf="(\w+)"', client.get("/account").text)
    assert found
    return client.post(path, data={"csrf": found[1], **fields})


def test_sources_show_how_they_are(library: Library) -> None:
    listed = library.admin.get("/api/regulations/sources").json()
    assert listed["enabled"]
    gazette = next(source for source in listed["sources"] if source["slug"] == "gazette")
    assert (gazette["documents"], gazette["fresh"], gazette["stale"]) == (4, 4, 0)
    assert {stream["mode"] for stream in gazette["streams"]} == {"sitemap", "recheck"}
    page = library.admin.get("/regulations").text
    assert "Narodne novine" in page and "Start run" in page and "capped" in page


def test_run_shows_its_caps_and_counts(library: Library) -> None:
    run = library.admin.get("/api/regulations/runs/1").json()
    assert (run["maxUrls"], run["queued"], run["state"], run["lane"]) == (4, 4, "DONE", "BACKFILL")
    [source] = run["sources"]
    assert (source["cap"], source["new"], source["state"]) == (4, 4, "CAPPED")
    assert sum(source["captures"].values()) == 4
    page = library.admin.get("/regulations/runs/1").text
    assert "Already known" in page and "of 4" in page


def test_document_shows_its_captures_and_what_changed(library: Library) -> None:
    document = changed(library)
    detail = library.admin.get(f"/api/regulations/documents/{document['id']}").json()
    assert detail["captures"][0]["reason"] == "CHANGED"
    page = library.admin.get(f"/regulations/documents/{document['id']}").text
    assert "&lt;script&gt;alert(1)" in page and "<script>alert(1)" not in page
    assert "<ins>" in page and "<del>" in page


def test_body_is_downloaded_as_it_was_fetched_and_never_shown(library: Library) -> None:
    detail = library.admin.get(f"/api/regulations/documents/{changed(library)['id']}").json()
    capture = detail["captures"][0]
    reply = library.admin.get(f"/api/regulations/evidence/{capture['evidenceId']}/body")
    assert hashlib.sha256(reply.content).hexdigest() == capture["sha256"]
    assert reply.headers["content-disposition"].startswith("attachment")
    assert reply.headers["content-type"] == "application/octet-stream"


def test_damaged_body_says_so(library: Library) -> None:
    sha256, at = "0" * 64, "2026-01-01T00:00:00.000Z"
    for sql in (
        f"insert into regulations_bodies values ('{sha256}', 9, 9, 'files', null, '{at}')",
        "insert into regulations_evidence values (900, 'k', 'http://a.hr/', "
        f"'{sha256}', null, 'HTML', '', '', 9, null, '{at}', '{at}')",
    ):
        library.site.run(library.desk.execute(sql))
    reply = library.admin.get("/api/regulations/evidence/900/body")
    assert reply.status_code == 409 and "its file is missing" in reply.text


def test_search_finds_words_and_marks_them(library: Library) -> None:
    found = library.admin.get("/api/regulations/search", params={"q": "dohodak"}).json()
    assert [document["id"] for document in found["documents"]] == [changed(library)["id"]]
    assert any(part["found"] for part in found["documents"][0]["snippet"])
    assert "<mark>" in library.admin.get("/regulations/search?q=dohodak").text
    assert "Nothing found" in library.admin.get("/regulations/search?q=zebra").text
    assert "No word" in library.admin.get("/regulations/search?q=%22%22").text


def test_documents_are_filtered_by_staleness(library: Library) -> None:
    assert len(documents(library, staleness="FRESH")) == 4
    assert documents(library, staleness="EXPIRED") == []
    page = library.admin.get("/regulations/documents?staleness=EXPIRED").text
    assert "No document matches" in page


def test_item_shows_its_evidence(library: Library) -> None:
    item = library.admin.get("/api/jobs/1/items/1").json()
    assert len(item["evidence"]) == 1
    assert item["evidence"][0]["link"].startswith("/regulations/documents/")
    page = library.admin.get("/jobs/1/items/1").text
    assert 'id="evidence"' in page and item["evidence"][0]["link"] in page


def test_run_is_started_from_the_page_and_refused_while_off(library: Library) -> None:
    library.site.run(library.desk.switch(False))
    reply = order(library.admin, "/regulations/runs", sources="tax")
    assert reply.status_code == 409 and "Backfill disabled" in reply.text
    api = library.admin.post("/api/regulations/runs", json={"sources": ["tax"]})
    assert api.status_code == 403  # a session needs its token
    library.site.run(library.desk.switch(True))
    wrong = order(library.admin, "/regulations/runs", sources="tax", date_from="x")
    assert wrong.status_code == 422 and "Date from: Input should be" in wrong.text
    reply = order(library.admin, "/regulations/runs", sources="tax", max_urls="5")
    assert reply.status_code == 200 and "The run is started" in reply.text
    again = order(library.admin, "/regulations/runs", sources="tax")
    assert again.status_code == 409 and "already being read" in again.text
    token = {"X-CSRF-Token": library.admin.get("/api/session").json()["csrfToken"]}
    keyed, body = {**token, "Idempotency-Key": "k1"}, {"sources": ["fina"]}
    first, repeated = (
        library.admin.post("/api/regulations/runs", json=body, headers=keyed) for _ in range(2)
    )
    assert (first.status_code, repeated.status_code) == (201, 201)
    assert first.json() == repeated.json()


def test_readers_may_look_and_not_start(library: Library) -> None:
    reader = library.of("reader", "reader")
    assert "Start run" not in reader.get("/regulations").text
    assert order(reader, "/regulations/runs", sources="fina").status_code == 403


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_serious_findings_nor_is_wider_than_a_phone(
    scheme: str,
    library: Library,
    root: str,  # noqa: F811
    open_as: Any,  # noqa: F811
) -> None:

    page = open_as(root, "/", color_scheme=scheme, viewport=PHONE)
    document = changed(library)["id"]
    paths = [
        "/regulations", "/regulations/documents", f"/regulations/documents/{document}",
        "/regulations/search?q=dohodak", "/regulations/search", "/regulations/runs/1",
        "/jobs/1/items/1",
    ]  # fmt: skip
    problems, wide = {}, []
    for path in paths:
        page.goto(path)
        problems[path] = findings(page)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(path)
    assert {path: each for path, each in problems.items() if each} == {}
    assert wide == []
