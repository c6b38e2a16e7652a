"""The pages of meetings over HTTP, on each database: what they show, to whom, and what they do."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from holdfast_meetings.pipeline import Meetings
from holdfast_meetings.web import PACK
from pipelines.meetings.tests.site import Datasette, Row
from pipelines.meetings.tests.town import Town
from tests.web.site import Site
from tests.web.visitors import Visitors

EVIL = "<script>alert(1)</script> & a [bridge] over <b>Mill Creek</b>"
ROWS = [
    Row("CityCouncil", "2024-03-05", 1, "The bridge over the harbour was discussed."),
    Row("CityCouncil", "2024-03-05", 2, "Motion on the library budget carried."),
    Row("CityCouncil", "2024-02-06", 1, "Hearing about sewers and Bridges."),
    Row("<img src=x>", "2024-01-09", 1, EVIL),
    Row("Parks", "2023-06-01", 1, "=1+1 is not a formula, and the dog park has no bridge."),
]
TOWN = "/meetings/municipalities/alameda.ca"
READ = ["/meetings", "/meetings/search?q=bridge", "/meetings/streams", TOWN]


class TownVisitors(Visitors):
    """A site with a town, and people who look at it."""

    def __init__(self, site: Site, town: Town, datasette: Datasette) -> None:
        super().__init__(site)
        self.town, self.datasette = town, datasette


@pytest.fixture
def visitors(database_url: str, tmp_path: Path, datasette_0: Datasette) -> Iterator[TownVisitors]:
    datasette_0.site.reset()
    pipelines = {"meetings": Meetings()}
    with Site(database_url, tmp_path, works=False, packs=[PACK], pipelines=pipelines) as site:
        visitors = TownVisitors(site, Town(site.parts.store, datasette_0.url), datasette_0)
        yield visitors
        visitors.close()


@pytest.fixture
def filled(visitors: TownVisitors) -> TownVisitors:
    visitors.datasette.site.add("minutes", ROWS)
    visitors.datasette.site.add("agendas", [Row("CityCouncil", "2024-03-05", 1, "Agenda: parks.")])
    visitors.site.run(visitors.town.add(name="Alameda", state="CA", kind="city"))
    visitors.site.run(visitors.town.backfill())
    return visitors


def order(client: httpx2.Client, path: str, **fields: Any) -> httpx2.Response:
    found = re.search(r'data-csrf="(\w+)"', client.get("/account").text)
    assert found
    return client.post(path, data={"csrf": found[1], **fields})


def links(text: str, start: str) -> list[str]:
    return [each.replace("&amp;", "&") for each in re.findall(rf'href="({start}[^"]*)"', text)]


def test_pages_without_anything_teach(visitors: TownVisitors) -> None:
    assert "holdfast meetings add" in visitors.admin.get("/meetings").text
    assert "No streams yet" in visitors.admin.get("/meetings/streams").text
    assert "bike lane" in visitors.admin.get("/meetings/search").text
    assert "No word to search for" in visitors.admin.get("/meetings/search?q=***").text
    visitors.site.run(visitors.town.add())
    assert "Backfill now" in visitors.admin.get(TOWN).text
    assert 'href="/meetings"' in visitors.admin.get("/jobs").text


def test_list_shows_the_state_of_each_backfill(filled: TownVisitors) -> None:
    filled.site.run(filled.town.ask({"add": {"subdomain": "berkeley.ca", "name": "Berkeley"}}))
    text = filled.admin.get("/meetings").text
    assert "is-verified" in text and "is-not_started" in text and "CA" in text
    assert "Berkeley" not in filled.admin.get("/meetings?words=ALAM").text
    assert "Alameda" not in filled.admin.get("/meetings?words=100%25").text
    assert "Berkeley" not in filled.admin.get("/meetings?state=CA").text


def test_documents_are_filtered_by_body_type_and_date(filled: TownVisitors) -> None:
    def documents(query: str) -> list[str]:
        return links(filled.admin.get(TOWN + query).text, "/meetings/documents/")

    assert len(documents("")) == 5
    assert len(documents("?type=agenda")) == 1
    assert len(documents("?meeting=CityCouncil&type=minutes")) == 2
    assert len(documents("?since=2024-01-09&until=2024-02-28")) == 2
    assert "No document matches" in filled.admin.get(f"{TOWN}?since=2030-01-01").text
    assert filled.admin.get(f"{TOWN}?since=soon").status_code == 422


def test_document_shows_its_pages_as_text(filled: TownVisitors) -> None:
    (path,) = links(filled.admin.get(f"{TOWN}?until=2024-01-31&since=2024-01-01").text,
                    "/meetings/documents/")  # fmt: skip
    text = filled.admin.get(path).text
    assert "<script>alert" not in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert "<img src=x" not in text and "&lt;img src=x&gt;" in text
    assert "/alameda.ca/%3Cimg%20src%3Dx%3E/2024-01-09/1.png" in text


def test_search_marks_the_words_and_nothing_else(filled: TownVisitors) -> None:
    text = filled.admin.get("/meetings/search?q=bridge").text
    found = links(text, "/meetings/pages/")
    assert len(found) == 4 and "<mark>bridge</mark>" in text and "<mark>Bridges</mark>" in text
    assert "<script>alert" not in text and "<b>" not in text
    one = filled.admin.get(found[2]).text
    assert "<script>alert" not in one and "&lt;script&gt;" in one
    assert "[<mark>bridge</mark>] over &lt;b&gt;Mill Creek&lt;/b&gt;" in one
    assert filled.admin.get("/meetings/search?q=bridge&in=nowhere.ca").status_code == 404
    quoted = "/meetings/search?q=%22%3E%3Cscript%3Ealert(2)"
    assert "<script>alert" not in filled.admin.get(quoted).text


def test_lists_continue_where_they_ended(filled: TownVisitors) -> None:
    api = "/api/meetings"

    def everything(path: str, name: str) -> list[Any]:
        found, following = [], ""
        while following is not None:
            mark = "&" if "?" in path else "?"
            after = f"&after={following}" if following else ""
            reply = filled.admin.get(f"{api}{path}{mark}pageSize=1{after}").json()
            assert len(reply[name]) <= 1
            found += reply[name]
            following = reply["next"]
        return found

    assert len(everything("/municipalities", "municipalities")) == 1
    dates = [one["date"] for one in everything("/municipalities/alameda.ca/documents", "documents")]
    assert len(dates) == 5 and dates == sorted(dates, reverse=True)
    assert [one["date"] for one in everything("/search?q=bridge", "pages")] == [
        "2024-03-05", "2024-02-06", "2024-01-09", "2023-06-01",
    ]  # fmt: skip
    assert len(everything("/streams", "streams")) == 2
    (document, *_) = filled.admin.get(
        f"{api}/municipalities/alameda.ca/documents?meeting=CityCouncil&type=minutes"
    ).json()["documents"]
    numbers = [page["number"] for page in everything(f"/documents/{document['id']}/pages", "pages")]
    assert numbers == [1, 2]
    assert filled.admin.get(f"{api}/search?q=bridge&after=AAAA").status_code == 400


def test_page_scanned_again_shows_its_history_and_a_vanished_one_is_marked(
    filled: TownVisitors,
) -> None:
    filled.datasette.site.replace("minutes", ROWS[1], text="Motion on the library bridge carried.")
    filled.datasette.site.remove("minutes", ROWS[0])
    filled.site.run(filled.town.backfill(mode="full"))
    (found,) = filled.admin.get("/api/meetings/search?q=library").json()["pages"]
    text = filled.admin.get(f"/meetings/pages/{found['pageId']}").text
    assert "<del>budget</del>" in text and "<ins>bridge</ins>" in text
    shown = filled.admin.get(f"/meetings/documents/{found['documentId']}").text
    assert "vanished" in shown and "1 earlier version" in shown
    gone = links(shown, "/meetings/pages/")[0]
    assert "This page is no longer on the site" in filled.admin.get(gone).text
    assert "Nothing found" in filled.admin.get("/meetings/search?q=harbour").text


def test_export_gives_every_page_and_no_formula(filled: TownVisitors) -> None:
    path = "/api/meetings/municipalities/alameda.ca/export"
    reply = filled.admin.get(f"{path}?format=csv")
    assert reply.headers["content-disposition"] == 'attachment; filename="alameda.ca-pages.csv"'
    rows = list(csv.DictReader(io.StringIO(reply.text)))
    assert len(rows) == 6
    assert [row["text"][:5] for row in rows if row["meeting"] == "Parks"] == ["'=1+1"]
    pages = [json.loads(line) for line in filled.admin.get(path).text.splitlines()]
    assert {page["text"] for page in pages} == {row.text for row in ROWS} | {"Agenda: parks."}


def test_admin_registers_changes_and_every_change_is_in_the_audit(filled: TownVisitors) -> None:
    made = order(filled.admin, "/meetings/new", subdomain="oak.ca", name="Oak", url="", zone="")
    assert made.status_code == 200 and "Oak is registered" in made.text
    again = order(filled.admin, "/meetings/new", subdomain="oak.ca")
    assert again.status_code == 422 and "already exists" in again.text
    bad = order(filled.admin, "/meetings/new", subdomain="no_such!town")
    assert bad.status_code == 422 and "is not a subdomain" in bad.text
    fields = {"name": "Alameda City", "state": "CA", "url": filled.datasette.url, "kind": "city",
              "zone": "America/Los_Angeles", "country": "US"}  # fmt: skip
    changed = order(filled.admin, f"{TOWN}/edit", **fields)
    assert "Alameda City was saved" in changed.text and "moved" not in changed.text
    bad = order(filled.admin, f"{TOWN}/edit", **{**fields, "zone": "Mars/Olympus"})
    assert bad.status_code == 422 and "no time zone" in bad.text
    bad = order(filled.admin, f"{TOWN}/edit", **{**fields, "url": "javascript:alert(1)"})
    assert bad.status_code == 422
    entries = filled.admin.get("/api/audit").json()["entries"]
    acts = {(each["action"], each["subject"]): each for each in entries}
    assert acts["municipality.added", "oak.ca"]["actor"] == "root"
    detail = acts["municipality.changed", "alameda.ca"]["detail"]
    assert detail["name"] == ["Alameda", "Alameda City"] and detail["country"] == [None, "US"]


def test_site_that_moved_is_read_again(filled: TownVisitors) -> None:
    moved = order(filled.admin, f"{TOWN}/edit", name="Alameda", url="http://127.0.0.1:9/x")
    assert "reads everything again" in moved.text
    ordered = order(filled.admin, f"{TOWN}/backfill")
    assert ordered.text.count("start full") == 2


def test_full_backfill_is_forced_after_a_question(filled: TownVisitors) -> None:
    asked = filled.admin.get(f"{TOWN}/force").text
    assert "about <strong>6</strong> rows" in asked and asked.count("start full") == 2
    done = order(filled.admin, f"{TOWN}/backfill", force="1")
    assert "start full (forced)" in done.text
    jobs = filled.site.run(filled.town.jobs())
    assert [name for name, _ in jobs[-2:]] == ["alameda.ca agenda full", "alameda.ca minutes full"]
    waiting = filled.admin.get(f"{TOWN}/force").text
    assert waiting.count("mark for a new full") == 2
    filled.site.run(filled.town.work())
    filled.site.run(filled.town.assert_verified())


def test_stream_is_forced_on_the_page_of_all_streams(filled: TownVisitors) -> None:
    full = [
        each
        for each in filled.admin.get("/api/streams").json()["streams"]
        if (each["source"], each["mode"]) == ("alameda.ca:minutes", "full")
    ]
    path = f"/streams/{full[0]['id']}/force-full"
    assert "Generation 2 is read" in filled.admin.get(path).text
    assert "Full re-read started" in order(filled.admin, path).text
    waiting = order(filled.admin, path)
    assert "The full re-read starts when job" in waiting.text
    filled.site.run(filled.town.work())
    filled.site.run(filled.town.assert_verified())
    assert filled.site.run(filled.town.stream())["generation"] == 3


def test_failed_streams_are_shown_with_their_error_and_retried(filled: TownVisitors) -> None:
    filled.datasette.site.drop("minutes")
    filled.datasette.site.create("minutes", "id text primary key, meeting text")
    filled.datasette.site.execute("insert into minutes values ('a', 'b')")
    filled.site.run(filled.town.backfill(force=True))
    assert "is-failed" in filled.admin.get("/meetings").text
    text = filled.admin.get("/meetings/streams?status=FAILED&type=minutes&mode=full").text
    (path,) = set(links(text, r"/meetings/streams/\d+"))
    assert "lacks the columns" in text
    detail = filled.admin.get(path).text
    assert "lacks the columns" in detail and "Slices" in detail and "Cursor" in detail
    assert "No stream matches" in filled.admin.get("/meetings/streams?status=PAUSED").text
    assert "Retry 1 failed stream" in filled.admin.get("/meetings/streams/retry").text
    filled.datasette.site.drop("minutes")
    filled.datasette.site.create("minutes")
    filled.datasette.site.add("minutes", ROWS)
    done = order(filled.admin, "/meetings/streams/retry")
    assert "1 stream was resumed" in done.text
    filled.site.run(filled.town.work())
    filled.site.run(filled.town.assert_verified())
    refused = order(filled.admin, f"{path}/retry")
    assert refused.status_code == 409 and "DONE" in refused.text


def test_pages_are_counted_apart_from_rows_that_are_none(filled: TownVisitors) -> None:
    bad = Row("CityCouncil", "March 5, 2024", 1, "The date is none.")
    again = Row(ROWS[0].meeting, ROWS[0].date, ROWS[0].page, "The bridge, scanned twice.")
    filled.datasette.site.add("minutes", [bad, again])
    filled.site.run(filled.town.backfill(mode="full"))
    backfill = filled.admin.get("/api/meetings/municipalities/alameda.ca").json()["backfill"]
    exported = filled.admin.get("/api/meetings/municipalities/alameda.ca/export").text
    assert backfill["stored"] == len(exported.splitlines()) == 6
    assert (backfill["expected"], backfill["rejected"], backfill["duplicates"]) == (8, 1, 1)
    page = filled.admin.get(TOWN).text
    assert "<strong>6</strong> pages of 8 rows" in page
    assert "1 rejected" in page and "1 duplicate<" in page
    api = "/api/meetings/streams"
    (stream,) = filled.admin.get(f"{api}?type=minutes&mode=full").json()["streams"]
    counts = filled.admin.get(f"{api}/{stream['id']}").json()["counts"]
    assert counts["pagesRejected"] == 1 and counts["pagesCreated"] == 0
    shown = filled.admin.get(f"/meetings/streams/{stream['id']}").text
    assert f'/jobs/{stream["jobId"]}/errors"><strong>1</strong> rejected' in shown


def test_municipality_that_failed_is_not_said_to_be_empty(visitors: TownVisitors) -> None:
    visitors.datasette.site.drop("minutes")
    visitors.datasette.site.create("minutes", "id text primary key, meeting text")
    visitors.datasette.site.execute("insert into minutes values ('a', 'b')")
    visitors.site.run(visitors.town.add())
    visitors.site.run(visitors.town.backfill())
    text = visitors.admin.get(TOWN).text
    assert "Nothing could be fetched yet" in text and "tables are empty" not in text


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_programs_search_one_municipality_or_all(filled: TownVisitors) -> None:
    path = "/api/meetings/search?q=bridge&in="
    assert len(filled.admin.get(path).json()["pages"]) == 4
    assert len(filled.admin.get(f"{path}alameda.ca").json()["pages"]) == 4
    assert filled.admin.get(f"{path}nowhere.ca").status_code == 404


def test_reader_sees_everything_and_changes_nothing(filled: TownVisitors) -> None:
    reader = filled.of("rita", "reader")
    for path in READ:
        assert reader.get(path).status_code == 200, path
    page = reader.get(TOWN).text
    assert "Force full" not in page and ">Edit<" not in page and "Update now" not in page
    for path in (f"{TOWN}/backfill", f"{TOWN}/edit", "/meetings/new", "/meetings/streams/retry"):
        assert order(reader, path, subdomain="x.ca").status_code == 403, path
    for path in (f"{TOWN}/edit", f"{TOWN}/force", "/meetings/new", "/meetings/streams/retry"):
        assert reader.get(path).status_code == 403, path


def test_operator_reads_all_but_orders_only_their_own(filled: TownVisitors) -> None:
    ada = filled.of("ada", "operator")
    assert "Alameda" in ada.get("/meetings").text and "bridge" in ada.get(READ[1]).text
    assert "No streams yet" in ada.get("/meetings/streams").text
    (stream, *_) = filled.admin.get("/api/meetings/streams").json()["streams"]
    assert ada.get(f"/meetings/streams/{stream['id']}").status_code == 404
    assert order(ada, f"{TOWN}/backfill", force="1").status_code == 403
    assert order(ada, f"{TOWN}/edit", name="Mine").status_code == 403
    filled.site.run(filled.town.ask({"add": {"subdomain": "berkeley.ca"}}))
    done = order(ada, "/meetings/municipalities/berkeley.ca/backfill")
    assert done.status_code == 200 and done.text.count("start full") == 2
    assert len(ada.get("/api/meetings/streams").json()["streams"]) == 2


def test_change_without_the_sessions_token_is_refused(filled: TownVisitors) -> None:
    for path in (f"{TOWN}/backfill", f"{TOWN}/edit", "/meetings/new", "/meetings/streams/retry"):
        assert filled.admin.post(path, data={}).status_code == 403, path
    path = "/api/meetings/municipalities/alameda.ca"
    assert filled.admin.patch(path, json={"name": "X"}).status_code == 403


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_reading_requires_a_login(filled: TownVisitors) -> None:
    with httpx2.Client(base_url=filled.site.url) as client:
        for path in READ:
            assert client.get(path).headers["location"].startswith("/login"), path
        assert client.get("/api/meetings/municipalities").status_code == 401


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
@pytest.mark.parametrize(
    "path",
    ["/meetings/municipalities/nowhere.ca", "/meetings/documents/0", "/meetings/documents/77",
     "/meetings/pages/77", "/meetings/pages/99999999999999999999", "/meetings/streams/77",
     "/meetings/municipalities/nowhere.ca/edit", "/meetings/municipalities/..%2f..%2fetc"],
)  # fmt: skip
def test_missing_object_is_reported_on_a_page(visitors: TownVisitors, path: str) -> None:
    reply = visitors.admin.get(path)
    assert reply.status_code == 404 and reply.headers["content-type"].startswith("text/html")
    assert '<a class="button" href="/meetings">Go to Meetings</a>' in reply.text


def test_templates_hold_no_script_or_style_of_their_own() -> None:
    for path in PACK.templates.rglob("*.html"):
        text = path.read_text()
        assert not re.search(r"<script|<style|\sstyle=|\son\w+=|\|safe", text), path
