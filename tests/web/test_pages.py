"""Every page, on each database, with something on it and with nothing; and what people mistype."""

import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx2
import pytest
from fastapi import APIRouter, Response

from holdfast.features.items.items import ItemFilter
from holdfast.model import OPEN, ItemStatus
from holdfast.server.context import TEMPLATES, Visitor
from holdfast.server.navigation import ENTRIES, Entry, PagePack
from tests.signing_in import sign_in
from tests.store.checks import execute
from tests.store.deletion_scenarios import aged_standing_job, remove_old
from tests.store.message_scenarios import dead
from tests.web.site import Site

STATUSES = [ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.NOT_FOUND]
JOB_PAGES = [
    "", "?q=status:ERROR", "?q=code:TIMEOUT", "?q=since:2020-01-01", "?q=row:3", "/charts", "/head",
    "/pending", "/errors", "/pace", "/pace/charts", "/streams", "/audit", "/items/2", "/reprocess",
    "/cancel", "/caps", "/export",
]  # fmt: skip
OTHERS = ["/new", "/account", "/operations", "/exports", "/charts?span=7d", "/figures"]


@pytest.fixture
def own_site(database_url: str, tmp_path: Path) -> Iterator[Site]:
    with Site(database_url, tmp_path, works=False) as site:
        yield site


@pytest.fixture
def own_site_with(sqlite_url: str, tmp_path: Path) -> Iterator[Callable[[PagePack], Site]]:
    with ExitStack() as stack:
        yield lambda pack: stack.enter_context(Site(sqlite_url, tmp_path, False, [pack]))


@pytest.fixture
def admin(own_site: Site) -> Iterator[httpx2.Client]:
    own_site.add_user("root", "admin")
    with httpx2.Client(base_url=own_site.url, timeout=30) as client:
        sign_in(client, own_site.login_link("root"))
        yield client


def test_every_page_answers_and_empty_ones_teach(admin: httpx2.Client) -> None:
    for path in [entry.path for entry in ENTRIES] + OTHERS:
        reply = admin.get(path)
        assert reply.status_code == 200, (path, reply.text[-600:])
    assert "No jobs yet" in admin.get("/jobs").text
    assert "holdfast schedule add" in admin.get("/schedules").text


def test_every_page_of_a_job_answers(own_site: Site, admin: httpx2.Client) -> None:
    job = f"/jobs/{own_site.job('root', [f'title {n}' for n in range(120)], STATUSES)}"
    own_site.run(own_site.parts.store.samples.take_samples())
    for path in JOB_PAGES:
        reply = admin.get(job + path)
        assert reply.status_code == 200, (path, reply.text[-600:])
        assert "<html" not in reply.text or 'href="/settings"' in reply.text, path
    page = admin.get(job).text
    following = re.search(r'hx-get="(/jobs/\d+\?q=[^"]*)"', page)
    assert following
    rows = admin.get(following[1].replace("&amp;", "&"), headers={"HX-Request": "true"})
    assert rows.text.count("data-seq=") == 20 and "<html" not in rows.text


def test_standing_job_says_that_older_items_were_removed(
    own_site: Site, admin: httpx2.Client
) -> None:
    store = own_site.parts.store
    job_id = own_site.run(aged_standing_job(store))
    first = f"/jobs/{job_id}/items/1"
    assert admin.get(first).status_code == 200
    assert own_site.run(remove_old(store)) == 4
    note = "4 older finished items were removed by retention"
    for path in ("", "/head"):
        assert note in admin.get(f"/jobs/{job_id}{path}").text
    shown = admin.get(f"/api/jobs/{job_id}").json()
    assert sum(shown["removed"].values()) == 4 and shown["counters"]["accepted"] == 6
    gone = admin.get(f"/api{first}")
    assert gone.status_code == 404 and "removed by retention" in gone.text
    assert "removed by retention" in admin.get(first).text
    rows = admin.get(f"/api/jobs/{job_id}/items").json()["items"]
    job = own_site.run(store.reads.job(job_id))
    for statuses in ((), (ItemStatus.DONE,), (ItemStatus.ERROR,), tuple(OPEN)):
        count = own_site.run(own_site.parts.bulk.count(job, ItemFilter(statuses)))
        expected = [row for row in rows if row["status"] in statuses or not statuses]
        assert (count.count, count.exact) == (len(expected), True)
    export = admin.get(f"/jobs/{job_id}/export").text
    assert "all 2<" in export and '"DONE"' in export and '"ERROR"' not in export


def test_lists_with_something_on_them_answer(own_site: Site, admin: httpx2.Client) -> None:
    own_site.job("root", ["one", "two"], pipeline="held", name="open.csv")
    own_site.job("root", ["one", "two"], STATUSES, name="ended.csv")
    assert "open.csv" in admin.get("/pending").text
    assert "open.csv" in admin.get("/").text and "ended.csv" in admin.get("/").text
    assert "titles-" in admin.get("/streams").text
    assert "start" in admin.get("/audit").text


def test_overview_says_that_nothing_is_processed_without_a_worker(
    own_site: Site, admin: httpx2.Client
) -> None:
    """The API itself gives signs of life, as workers do."""
    assert "No worker is running" in admin.get("/").text
    own_site.run(own_site.parts.store.workers.add_worker("host-1", "host", 7, ["lengths"]))
    page = admin.get("/").text
    assert "No worker is running" not in page and "host-1" in page


def test_dead_letter_is_shown_with_its_payload(own_site: Site, admin: httpx2.Client) -> None:
    payloads = {"order 1": b'{"title": "<b>oak</b>"}', "order 2": b"\xff\x00"}
    for message_id, payload in payloads.items():
        own_site.run(own_site.parts.store.messages.keep_dead(dead(message_id, payload=payload)))
    pages = [admin.get(path).text for path in re.findall(
        r'href="(/dead-letters/\d+)"', admin.get("/dead-letters").text
    )]  # fmt: skip
    binary, text = pages
    assert "&lt;b&gt;oak&lt;/b&gt;" in text and "delivery_limit" in text and "Replay" in text
    assert "base64:/wA=" in binary
    assert admin.get("/dead-letters/99").status_code == 404


def test_stream_shows_what_is_kept_of_what_the_source_has(
    own_site: Site, admin: httpx2.Client
) -> None:
    job_id = own_site.job("root", ["one", "two", "two"], STATUSES)
    own_site.run(
        execute(
            own_site.parts.store,
            "update streams set expected_count = 2, actual_count = 2 where job_id = :job",
            job=job_id,
        )
    )
    for path in ("/streams", f"/jobs/{job_id}/streams"):
        assert "2 of 2" in admin.get(path).text
    (stream,) = admin.get("/api/streams").json()["streams"]
    assert (stream["recordsCount"], stream["actualCount"], stream["expectedCount"]) == (3, 2, 2)


def test_stream_has_a_page_with_its_slices(own_site: Site, admin: httpx2.Client) -> None:
    own_site.job("root", ["one", "two"], STATUSES)
    (stream,) = admin.get("/api/streams").json()["streams"]
    detail = admin.get(f"/api/streams/{stream['id']}").json()
    assert detail["stream"] == stream
    page = admin.get(f"/streams/{stream['id']}").text
    for each in detail["slices"]:
        assert each["worker"][:10] in page
    assert bool(detail["slices"]) == ("None yet" not in page)
    assert f'href="/streams/{stream["id"]}"' in admin.get("/streams").text
    assert admin.get("/streams/99").status_code == 404


@pytest.mark.parametrize(
    "path",
    ["/jobs/0", "/jobs/abc", "/jobs/99999999999999999999", "/jobs/12345", "/nowhere",
     "/jobs/1/items/0", "/streams?state=SLEEPING", "/?span=99y"],
)  # fmt: skip
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_missing_object_is_reported_on_a_page_without_api_routes(
    path: str, admin: httpx2.Client
) -> None:
    reply = admin.get(path)
    assert reply.status_code == 404
    assert reply.headers["content-type"].startswith("text/html")
    assert "GET /api" not in reply.text


@pytest.mark.parametrize("after", ["abc", "AAAA", "%00", "x" * 3000])
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_cursor_that_is_not_ours_is_refused(
    after: str, own_site: Site, admin: httpx2.Client
) -> None:
    job = f"/jobs/{own_site.job('root', ['one'], STATUSES)}"
    for path in (job, f"{job}/pending", "/jobs", "/audit", "/streams", "/pending"):
        assert admin.get(f"{path}?after={after}").status_code == 400


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_order_that_does_not_fit_says_the_state(own_site: Site, admin: httpx2.Client) -> None:
    job = f"/jobs/{own_site.job('root', ['one'], STATUSES)}"
    found = re.search(r'data-csrf="(\w+)"', admin.get(job).text)
    assert found
    reply = admin.post(f"{job}/pause", data={"csrf": found[1]})
    assert reply.status_code == 409 and "DONE" in reply.text


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_api_still_answers_in_json(admin: httpx2.Client) -> None:
    assert admin.get("/api/jobs/77").headers["content-type"] == "application/problem+json"
    assert admin.get("/api/openapi.json").json()["paths"].keys().isdisjoint({"/jobs", "/"})


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_link_that_was_used_asks_to_log_in(own_site: Site, admin: httpx2.Client) -> None:
    link = own_site.login_link("root")
    with httpx2.Client() as client:
        for _ in range(3):  # as a scanner of mails, a preview and a person do
            assert client.get(link).status_code == 200
        assert sign_in(client, link).headers["location"] == "/"
    with httpx2.Client() as client:
        reply = sign_in(client, link)
    assert reply.status_code == 401 and "<form" in reply.text and "already used" in reply.text


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_link_is_not_used_by_a_form_of_another_site(own_site: Site, admin: httpx2.Client) -> None:
    link = own_site.login_link("root")
    with httpx2.Client() as client:
        for csrf in ("", "0" * 64, "é"):
            reply = client.post(link, data={"csrf": csrf})
            assert reply.status_code == 403 and "holdfast_session" not in client.cookies
        assert sign_in(client, link).status_code == 303


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_pending_switched_off_is_gone_from_the_rail(own_site: Site, admin: httpx2.Client) -> None:
    own_site.run(own_site.parts.store.flags.set_flag("pending", False, "root"))
    assert 'href="/pending"' not in admin.get("/jobs").text
    assert admin.get("/pending").status_code == 503


def test_pipelines_package_adds_pages_of_its_own(
    own_site_with: Callable[[PagePack], Site], tmp_path: Path
) -> None:
    router = APIRouter()

    @router.get("/towns")
    async def towns(visit: Visitor) -> Response:
        return await visit.page("towns/list.html", here="towns", names=["Oakville"])

    folder = tmp_path / "towns"
    folder.mkdir()
    (folder / "list.html").write_text(
        '{% extends "layout.html" %}{% block title %}Towns{% endblock %}'
        "{% block content %}{{ names|join }}{% endblock %}"
    )
    site = own_site_with(
        PagePack("towns", router, folder, [Entry("towns", "Towns", "/towns", "t")])
    )
    site.add_user("root", "admin")
    with httpx2.Client(base_url=site.url) as client:
        sign_in(client, site.login_link("root"))
        assert 'href="/towns"' in client.get("/jobs").text
        assert "Oakville" in client.get("/towns").text


def test_pages_hold_no_script_or_style_of_their_own() -> None:
    for path in (path for folder in TEMPLATES for path in folder.rglob("*.html")):
        text = path.read_text()
        assert not re.search(r"<script(?![^>]*\bsrc=)|<style|\sstyle=|\son\w+=", text), path
        assert "//" not in re.sub(r"https?://127", "", re.sub(r"\{#.*?#\}", "", text)), path
