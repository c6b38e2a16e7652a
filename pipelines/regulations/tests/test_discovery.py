"""Discovery over HTTP: pages, cursors, resuming, sitemaps that cannot be read."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import date

import pytest

from holdfast.errors import DiscoveryError, ItemError
from holdfast.http import HttpClient
from holdfast.model import Json, Page
from holdfast_regulations.canonical import item_id
from holdfast_regulations.dates import DateRange
from holdfast_regulations.discovery import Discovery, SitemapMark
from holdfast_regulations.sources import Mode
from pipelines.regulations.tests.world import (
    GAZETTE,
    TAX,
    RegulatoryWorld,
    answered_twice,
    markup,
    sources,
)
from tests.world import Answer, text_answer

OPEN = DateRange()


def discovery(slug: str, http: HttpClient, wanted: DateRange = OPEN) -> Discovery:
    return Discovery(sources()[slug], http, wanted, 2024)


async def walk(
    slug: str,
    mode: Mode,
    http: HttpClient,
    cursor: Json | None = None,
    wanted: DateRange = OPEN,
    *,
    again: bool = False,
) -> list[Page]:
    walked = discovery(slug, http, wanted).pages(mode, cursor, again=again)
    pages = [page async for page in walked]
    assert pages[-1].end
    assert not any(page.end for page in pages[:-1])
    cursors = [json.dumps(page.next_cursor) for page in pages[:-1]]
    assert len(set(cursors)) == len(cursors), "a repeated cursor is an error to the engine"
    return pages


def urls(pages: list[Page]) -> list[str]:
    return [record.input["url"] for page in pages for record in page.records]


def keys(pages: list[Page]) -> set[str | None]:
    return {record.key for page in pages for record in page.records}


@asynccontextmanager
async def gazette(issues: int = 12) -> AsyncIterator[tuple[RegulatoryWorld, HttpClient]]:
    async with RegulatoryWorld(issues=issues, acts=3) as world, world.client() as http:
        yield world, http


async def test_sitemaps_give_a_page_each_and_an_explicit_end() -> None:
    async with gazette() as (world, http):
        pages = await walk("gazette", Mode.SITEMAP, http)
        assert len(pages) == 1 + 12 + 1  # the index, its children, the end
        assert len(urls(pages)) == 12 * 4
        assert len(keys(pages)) == 12 * 3
        assert answered_twice(world.visits) == []
        notes = pages[-1].notes
        assert notes["sitemaps"] == {"read": 13, "known": 13, "unchanged": 0}
        assert notes["sitemaps_left_out"] == {"NOT_WANTED": 1}


async def test_record_says_what_is_fetched_and_what_identifies_it() -> None:
    async with gazette(1) as (world, http):
        pages = await walk("gazette", Mode.SITEMAP, http)
        [issue] = world.issues
        first = pages[1].records[0]
        act = "act:/eli/sluzbeni/1991/1/1"
        assert first.key == item_id("gazette", act)
        assert first.input == {
            "source": "gazette",
            "url": f"http://{GAZETTE}{issue.eli(1)}",
            "canonical": act,
            "listed_on": f"http://{GAZETTE}{issue.sitemap}",
        }
        dated = await walk("gazette", Mode.SITEMAP, http, wanted=DateRange(date(1991, 1, 1)))
        assert dated[1].records[0].input["published"] == "1991-01-01..1991-12-31"


async def test_walk_resumes_after_every_page_and_reads_no_child_twice() -> None:
    async with gazette(6) as (world, http):
        whole = await walk("gazette", Mode.SITEMAP, http)
        for stopped in range(len(whole) - 1):
            before = len(world.visits)
            cursor = json.loads(json.dumps(whole[stopped].next_cursor))
            rest = await walk("gazette", Mode.SITEMAP, http, cursor)
            assert urls(whole[: stopped + 1]) + urls(rest) == urls(whole)
            asked = Counter(visit.request.path for visit in world.visits[before:])
            # The index is read once more, to know what is ahead.
            assert len(asked) == 1 + len(whole) - 2 - stopped
            assert set(asked.values()) == {1}


BROKEN = {
    "page": text_answer("<!doctype html><p>Održavanje", 200, "text/html"),
    "cut": Answer(200, markup("urlset", [f"http://{GAZETTE}/eli/sluzbeni/1/1/1"])[:-20]),
    "missing": text_answer("", 404),
}


@pytest.mark.parametrize("answer", BROKEN.values(), ids=BROKEN.keys())
async def test_sitemap_that_cannot_be_read_fails_the_walk_after_all_others(answer: Answer) -> None:
    async with gazette(6) as (world, http):
        bad = world.issues[3].sitemap
        world.replaced[bad] = answer
        pages: list[Page] = []
        with pytest.raises(DiscoveryError, match=r"1 sitemap\(s\) cannot be read") as caught:
            async for page in discovery("gazette", http).pages(Mode.SITEMAP, None):
                pages.append(page)
        assert bad in str(caught.value)
        assert len([u for u in urls(pages) if "/1/1/1" not in u]) >= 5 * 4
        assert len([visit for visit in world.visits if visit.request.path == bad]) == 2
        # Repaired, a resume reads the index and that one sitemap.
        del world.replaced[bad]
        before = len(world.visits)
        rest = await walk("gazette", Mode.SITEMAP, http, pages[-1].next_cursor)
        assert len(urls(rest)) == 4
        paths = [visit.request.path for visit in world.visits[before:]]
        assert paths == ["/sitemap.xml", bad]


@pytest.mark.parametrize("fault", ["cut", "page"])
@pytest.mark.parametrize("resumed", [False, True], ids=["in one walk", "resumed"])
async def test_index_that_is_readable_the_second_time_is_walked(fault: str, resumed: bool) -> None:
    """Its entries are sitemaps, whenever it is read: they are neither left out nor taken for
    documents."""
    async with gazette(6) as (world, http):
        index = f"http://{GAZETTE}/sitemap.xml"
        listed = [f"http://{GAZETTE}{issue.sitemap}" for issue in world.issues]
        cut = Answer(200, markup("sitemapindex", listed[:3])[:-20])
        world.replaced["/sitemap.xml"] = cut if fault == "cut" else BROKEN["page"]
        pages: list[Page] = []
        async for page in discovery("gazette", http).pages(Mode.SITEMAP, None):
            world.replaced.pop("/sitemap.xml", None)
            pages.append(page)
            if resumed:
                break
        if resumed:
            pages += await walk("gazette", Mode.SITEMAP, http, pages[-1].next_cursor)
        assert pages[-1].end
        assert index not in {record.input["listed_on"] for page in pages for record in page.records}
        assert set(urls(pages)) == set(urls(await walk("gazette", Mode.SITEMAP, http)))
        cursors = [json.dumps(page.next_cursor) for page in pages[:-1]]
        assert len(set(cursors)) == len(cursors)


async def test_sitemap_that_is_damaged_once_and_then_as_it_was_does_not_fail_the_walk() -> None:
    async with gazette(2) as (world, http):
        bad = world.issues[0].sitemap
        etag = (await http.get(f"http://{GAZETTE}{bad}")).headers["etag"]
        marks = {f"http://{GAZETTE}{bad}": SitemapMark("an older time", etag)}
        world.replaced[bad] = BROKEN["page"]
        again = Discovery(sources()["gazette"], http, OPEN, 2024, read_before=marks)
        pages: list[Page] = []
        async for page in again.pages(Mode.SITEMAP, None):
            pages.append(page)
            if f"http://{GAZETTE}{bad}" in page.notes["faults"]:
                del world.replaced[bad]
        assert pages[-1].end
        assert pages[-1].notes["sitemaps"]["unchanged"] == 1


async def test_error_that_waiting_mends_stops_the_walk_where_it_is() -> None:
    async with gazette(6) as (world, http):
        bad = world.issues[3].sitemap
        world.replaced[bad] = text_answer("", 500)
        pages: list[Page] = []
        with pytest.raises(ItemError, match="NETWORK_ERROR"):
            async for page in discovery("gazette", http).pages(Mode.SITEMAP, None):
                pages.append(page)
        del world.replaced[bad]
        rest = await walk("gazette", Mode.SITEMAP, http, pages[-1].next_cursor)
        assert len(urls(pages) + urls(rest)) == 6 * 4


async def test_unsafe_urls_in_a_sitemap_are_refused_and_counted() -> None:
    places = ["file:///etc/passwd", "http://127.0.0.1/eli/x", "http://10.0.0.1/", "", "eli/1"]
    places += ["http://evil.example/eli/sluzbeni/2024/1/1", f"http://{GAZETTE}/oglasi/eli/1"]
    async with gazette(1) as (world, http):
        world.replaced[world.issues[0].sitemap] = Answer(200, markup("urlset", places))
        pages = await walk("gazette", Mode.SITEMAP, http)
        assert urls(pages) == []
        assert pages[-1].notes["refused"] == {
            "NOT_HTTP": 2,
            "PRIVATE_ADDRESS": 2,
            "MISSING": 1,
            "OFF_HOST": 1,
            "EXCLUDED": 1,
        }


async def test_long_sitemap_is_given_in_parts_and_read_again_from_its_beginning() -> None:
    async with gazette(1) as (world, http):
        places = [f"http://{GAZETTE}/eli/sluzbeni/2024/1/{n}" for n in range(12_000)]
        world.replaced[world.issues[0].sitemap] = Answer(200, markup("urlset", places))
        pages = await walk("gazette", Mode.SITEMAP, http)
        assert len(pages) > 3
        assert max(len(page.records) for page in pages) < 7_000
        assert urls(pages) == places
        rest = await walk("gazette", Mode.SITEMAP, http, pages[1].next_cursor)
        assert keys(rest) == keys(pages)


async def test_date_range_leaves_out_whole_sitemaps() -> None:
    wanted = DateRange(date(1993, 1, 1), date(1993, 12, 31))
    async with gazette(12) as (world, http):
        pages = await walk("gazette", Mode.SITEMAP, http, wanted=wanted)
        assert len(urls(pages)) == 4
        assert all("1993" in url for url in urls(pages))
        assert len(world.visits_to(GAZETTE)) == 3  # robots.txt, the index, one child
        assert pages[-1].notes["sitemaps_left_out"] == {"OUT_OF_RANGE": 11, "NOT_WANTED": 1}


async def test_undated_items_are_counted_and_left_out_of_a_range() -> None:
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        wanted = DateRange(first=date(2024, 1, 1))
        pages = await walk("tax", Mode.PAGINATION, http, wanted=wanted)
        assert urls(pages) == []
        assert pages[-1].notes["dates"] == {"UNDATED": 60}


async def test_pagination_gives_a_page_each_and_can_look_at_the_last_one_again() -> None:
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        pages = await walk("tax", Mode.PAGINATION, http)
        assert len(set(urls(pages))) == 60
        assert pages[0].records[0].input["listed_on"] == f"http://{TAX}/hr/vijesti/8?Page=1"
        assert pages[0].records[0].input["title"] == "Vijest 10"
        rest = await walk("tax", Mode.PAGINATION, http, pages[2].next_cursor)
        assert urls(rest) == urls(pages[3:])
        rest = await walk("tax", Mode.PAGINATION, http, pages[2].next_cursor, again=True)
        assert urls(rest) == urls(pages[2:])


async def test_archive_is_walked_year_by_year() -> None:
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        pages = await walk("fina", Mode.ARCHIVE, http)
        assert len(urls(pages)) == 4 * 2 * 3
        assert [p.notes["empty_year"] for p in pages if "empty_year" in p.notes] == [2022]
        nothing = DateRange(first=date(2030, 1, 1))
        assert urls(await walk("fina", Mode.ARCHIVE, http, wanted=nothing)) == []


async def test_mode_that_the_source_does_not_have_is_refused() -> None:
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        with pytest.raises(DiscoveryError, match="has no archive"):
            discovery("tax", http).pages(Mode.ARCHIVE, None)
        with pytest.raises(DiscoveryError, match="has no sitemap"):
            discovery("tax", http).pages(Mode.SITEMAP, None)
