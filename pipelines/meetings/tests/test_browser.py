"""Meetings in a real browser: from a municipality to a page, and a full backfill by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from playwright.sync_api import expect

from holdfast.kernel.database.migrate import upgrade
from holdfast_meetings.options import MeetingsOptions
from holdfast_meetings.pipeline import Meetings
from holdfast_meetings.reads import MeetingsReads
from holdfast_meetings.web import PACK
from pipelines.meetings.tests.site import Datasette, Row
from pipelines.meetings.tests.town import Town
from tests.fixtures import sqlite_url_of
from tests.web.conftest import OpenAs, Watch
from tests.web.site import Site
from tests.web.test_access import PHONE, findings

TOWN = "/meetings/municipalities/alameda.ca"
ROWS = [
    Row("CityCouncil", "2024-03-05", 1, "The bridge over the harbour <b>was</b> discussed."),
    Row("CityCouncil", "2024-03-05", 2, "Motion on the library budget carried."),
    Row("Parks", "2024-02-06", 1, "The dog park."),
]


@pytest.fixture(scope="session")
def datasette() -> Iterator[Datasette]:
    with Datasette(0) as server:
        server.site.add("minutes", ROWS)
        yield server


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory, datasette: Datasette) -> Iterator[Site]:
    """Pages of a town's own, with a worker that walks it."""
    folder = tmp_path_factory.mktemp("meetings")
    url = sqlite_url_of(folder / "holdfast.db")
    upgrade(url)
    pipelines = {"meetings": Meetings(MeetingsOptions(rebuild_seconds=0.05))}
    with Site(url, folder, packs=[PACK], pipelines=pipelines) as site:
        yield site


@pytest.fixture(scope="session")
def town(site: Site, datasette: Datasette) -> Town:
    made = Town(site.parts.store, datasette.url)
    site.run(made.add(name="Alameda", state="CA"))
    site.run(made.backfill())
    datasette.site.replace("minutes", ROWS[1], text="Motion on the library roof carried.")
    datasette.site.remove("minutes", ROWS[2])
    site.run(made.backfill(mode="full"))
    site.run(_until_found(made, "roof"))
    return made


async def _until_found(town: Town, words: str) -> None:
    """The site's own worker may still be at the index."""
    async with asyncio.timeout(30):
        while not await MeetingsReads(town.store.database.fetch).search(words):
            await asyncio.sleep(0.05)


def test_from_a_municipality_to_a_page_and_a_forced_backfill(
    town: Town, root: str, open_as: OpenAs
) -> None:
    page = open_as(root, "/jobs")
    page.keyboard.press("g")
    page.keyboard.press("m")
    page.wait_for_url("**/meetings")
    page.get_by_role("link", name="Alameda").click()
    page.wait_for_url(f"**{TOWN}")
    expect(page.get_by_role("row", name="City Council")).to_contain_text("2")
    page.keyboard.press("/")
    page.keyboard.type("bridges")
    page.keyboard.press("Enter")
    page.wait_for_url("**/meetings/search?**")
    expect(page.locator("mark")).to_have_text(["bridge"])
    page.get_by_role("link", name="page 1").click()
    page.wait_for_url("**/meetings/pages/**")
    expect(page.locator(".reading")).to_have_text(ROWS[0].text)
    page.keyboard.press("j")
    expect(page.locator(".reading").first).to_have_text("Motion on the library roof carried.")
    page.get_by_text("what changed").click()
    expect(page.locator("del")).to_have_text("budget")
    page.get_by_label("Breadcrumb").get_by_role("link", name="Alameda").click()
    page.wait_for_url(f"**{TOWN}")
    page.keyboard.press("f")
    expect(page.locator("#dialog")).to_contain_text("minutes: start full")
    page.locator("#dialog").get_by_role("button", name="Force full backfill").click()
    expect(page.locator(".note")).to_contain_text("start full (forced)")
    page.get_by_role("link", name="minutes, full").click()
    expect(page.locator("#content")).to_contain_text("generation 3")


def test_backfill_that_ends_says_so_by_itself(
    town: Town, site: Site, root: str, open_as: OpenAs
) -> None:
    """Its last change is the last event that comes."""
    control = site.parts.control(root)
    site.run(control.switch("source:127.0.0.1", True, "held"))
    page = open_as(root, TOWN)
    page.get_by_role("button", name="Update now").click()
    expect(page.locator("#standing .badge").first).to_have_text("running")
    page.evaluate("window.stayed = true")
    site.run(control.switch("source:127.0.0.1", False, ""))
    expect(page.locator("#standing .badge").first).to_have_text("verified", timeout=30_000)
    assert page.evaluate("window.stayed")


def test_form_with_a_mistake_keeps_what_was_filled_in(
    town: Town, root: str, open_as: OpenAs, watch: Watch
) -> None:
    watch.expected = ("422",)
    page = open_as(root, "/meetings/new")
    page.get_by_label("Subdomain").fill("Old Town")
    page.get_by_label("Name", exact=True).fill("Old Town")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("#notes")).to_contain_text("'Old Town' is not a subdomain")
    expect(page.get_by_label("Name", exact=True)).to_have_value("Old Town")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_serious_findings_nor_is_wider_than_a_phone(
    scheme: str, town: Town, site: Site, root: str, open_as: OpenAs
) -> None:
    reads = "/api/meetings/municipalities/alameda.ca/documents"
    page = open_as(root, "/", color_scheme=scheme, viewport=PHONE)
    document = page.request.get(reads).json()["documents"][0]["id"]
    stream = page.request.get("/api/meetings/streams").json()["streams"][0]["id"]
    found = page.request.get("/api/meetings/search?q=library").json()["pages"][0]["pageId"]
    paths = [
        "/meetings", "/meetings/new", TOWN, f"{TOWN}?meeting=Nobody", f"{TOWN}/edit",
        f"{TOWN}/force", f"/meetings/documents/{document}", f"/meetings/pages/{found}?q=library",
        "/meetings/search", "/meetings/search?q=library", "/meetings/search?q=zebra",
        "/meetings/streams", f"/meetings/streams/{stream}", "/meetings/streams/retry",
    ]  # fmt: skip
    problems, wide = {}, []
    for path in paths:
        page.goto(path)
        problems[path] = findings(page)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(path)
    assert {path: each for path, each in problems.items() if each} == {}
    assert wide == []
