"""The local world behaves as the real sites do, and its log can prove impoliteness."""

from __future__ import annotations

import json

import pytest

from holdfast.errors import GateWait, ItemError
from holdfast.http import HttpClient
from holdfast.http.reply import Reply
from holdfast.model import Json
from holdfast_regulations.canonical import backfill_id
from holdfast_regulations.content import check_place, check_words, content_class
from holdfast_regulations.extract import extract
from holdfast_regulations.listing import Fetched
from holdfast_regulations.pagination import PaginationWalk
from holdfast_regulations.sitemap.frontier import Frontier, LeftOut, cursor_of
from holdfast_regulations.sitemap.problems import Entry, Kind
from holdfast_regulations.sitemap.reader import SitemapReader, sitemaps_in_robots
from holdfast_regulations.sources import Source
from pipelines.regulations.tests.world import (
    BUSY,
    FINA,
    GAZETTE,
    SLOW,
    TAX,
    RegulatoryWorld,
    answered_twice,
    assert_never_asked,
    assert_polite,
    assert_silent,
    gaps,
    most_at_once,
    sources,
)
from tests.http_client import RecordingGates
from tests.world import Answer, Request, Visit


def read_sitemap(reply: Reply) -> tuple[list[Entry], Kind | None]:
    reader = SitemapReader()
    entries = reader.feed(reply.content)
    return entries + reader.close(), reader.kind


def fetched(url: str, reply: Reply) -> Fetched:
    return Fetched(url, reply.status, reply.text, reply.url, reply.headers.get("link", ""))


async def discover(source: Source, http: HttpClient) -> tuple[list[str], Frontier]:
    """All admitted URLs of the source's sitemaps, and the frontier at the end."""
    assert source.sitemap is not None
    admission = source.admission()
    frontier = Frontier(source.sitemap, admission)
    robots = await http.get(f"http://{source.hosts[0]}/robots.txt")
    frontier.start(sitemaps_in_robots(robots.text))
    urls: list[str] = []
    cursor: Json | None = None
    while (child := frontier.following(cursor)) is not None:
        entries, kind = read_sitemap(await http.get(child.url))
        if kind is Kind.INDEX:
            frontier.add(child, entries)
        else:
            urls += [entry.url for entry in entries if admission.admits(entry.url)]
        cursor = json.loads(json.dumps(cursor_of(child)))
    return urls, frontier


async def paginate(source: Source, http: HttpClient) -> list[str]:
    assert source.pagination is not None
    walk = PaginationWalk(source.pagination, source.admission())
    cursor: Json | None = walk.start()
    urls: list[str] = []
    while cursor is not None:
        url = walk.request(cursor)
        walked = walk.read(cursor, fetched(url, await http.get(url)))
        urls += [entry.url for entry in walked.found]
        cursor = walked.cursor
    return urls


async def test_gazette_is_discovered_through_robots_index_and_packed_children() -> None:
    source = sources()["gazette"]
    async with RegulatoryWorld(issues=40, acts=3) as world, world.client() as http:
        urls, frontier = await discover(source, http)
        assert len(urls) == 40 * 4
        # One act has two URLs, and is one item.
        ids = {backfill_id(source.slug, url, source.canonical_rules) for url in urls}
        assert len(ids) == 40 * 3
        assert frontier.left_out == {LeftOut.NOT_WANTED: 1}  # notices
        assert answered_twice(world.visits) == []
        assert_never_asked(world.visits_to(GAZETTE), lambda path: path.startswith("/oglasi"))


async def test_index_of_9551_children_is_read() -> None:
    source = sources()["gazette"]
    async with RegulatoryWorld() as world, world.client() as http:
        entries, kind = read_sitemap(await http.get(f"http://{GAZETTE}/sitemap.xml"))
        assert (len(entries), kind) == (9552, Kind.INDEX)
        assert source.sitemap is not None
        frontier = Frontier(source.sitemap, source.admission())
        [root] = frontier.start([f"http://{GAZETTE}/sitemap.xml"])
        assert len(frontier.add(root, entries)) == 9551


async def test_unchanged_sitemap_answers_304() -> None:
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        url = f"http://{GAZETTE}{world.issues[0].sitemap}"
        etag = (await http.get(url)).headers["etag"]
        assert (await http.get(url, headers={"If-None-Match": etag})).status == 304


async def test_content_changes_and_returns() -> None:
    source = sources()["gazette"]
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        path = world.issues[0].legacy(1)
        hashes = []
        for text in ("Prvi tekst. " * 40, "Drugi tekst. " * 40, "Prvi tekst. " * 40):
            world.versions[path] = text
            reply = await http.get(f"http://{GAZETTE}{path}")
            kind = content_class(reply.content, reply.content_type)
            hashes.append(extract(reply.content, kind, reply.url, source).text_hash)
        assert hashes[0] == hashes[2] != hashes[1]


async def test_capital_parameter_walks_all_pages_and_a_small_one_only_the_first() -> None:
    source = sources()["tax"]
    assert source.pagination is not None
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        assert len(await paginate(source, http)) == 60
        small = source.pagination.model_copy(update={"parameter": "page"})
        careless = source.model_copy(update={"pagination": small})
        assert len(await paginate(careless, http)) == 10


async def test_listing_with_next_links_is_walked() -> None:
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        assert len(await paginate(sources()["fina"], http)) == 20


async def test_www_host_does_not_resolve() -> None:
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        with pytest.raises(ItemError, match="DNS_ERROR"):
            await http.get(f"http://www.{TAX}/hr/vijesti/8")


async def test_home_page_and_soft_404_are_not_evidence() -> None:
    rules = sources()["tax"].missing
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        old = f"http://{TAX}/stari/clanak.aspx"
        reply = await http.get(old)
        assert reply.history == (old,)
        kind = content_class(reply.content, reply.content_type)
        with pytest.raises(ItemError, match="redirected to the home page"):
            check_place(old, reply.url, kind, rules)
        lost = await http.get(f"http://{TAX}/hr/nestalo/1")
        result = extract(lost.content, kind, lost.url, sources()["tax"])
        with pytest.raises(ItemError, match="says 404"):
            check_words(result.title, result.text or "", rules)


async def test_robots_are_obeyed() -> None:
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        with pytest.raises(ItemError, match="ROBOTS_DISALLOWED"):
            await http.get(f"http://{FINA}/media/cjenik.pdf")
        assert_never_asked(world.visits_to(FINA), lambda path: path.startswith("/media"))


@pytest.mark.parametrize("path", ["/429/a", "/503/a"])
async def test_busy_host_closes_its_gate_and_is_left_alone(path: str) -> None:
    gates = RecordingGates()
    async with RegulatoryWorld(issues=1) as world, world.client(gates) as http:
        world.refusals[path] = 1
        with pytest.raises(ItemError, match="RATE_LIMITED"):
            await http.get(f"http://{BUSY}{path}")
        assert gates.closed[BUSY][0] == world.retry_after
        with pytest.raises(GateWait):
            await http.get(f"http://{BUSY}{path}")
        assert [visit.request.path for visit in world.visits_to(BUSY)] == ["/robots.txt", path]
        assert_polite(world.visits_to(BUSY), spacing=0, at_once=1)


async def test_slow_bytes_count_as_in_flight() -> None:
    async with RegulatoryWorld(issues=1) as world, world.client() as http:
        assert (await http.get(f"http://{SLOW}/a")).status == 200
        _, visit = world.visits_to(SLOW)
        assert visit.finished_at is not None
        assert visit.finished_at - visit.started_at >= 0.9  # ten pauses, none of them shorter


# --- the proofs can fail ---


def visit(start: float, end: float, path: str = "/a", retry_after: str | None = None) -> Visit:
    headers = {} if retry_after is None else {"Retry-After": retry_after}
    status = 200 if retry_after is None else 429
    request = Request("GET", path, {"host": "a.hr"}, b"")
    return Visit(request, start, end, Answer(status, b"", headers))


def test_polite_log_passes() -> None:
    log = [visit(0, 1), visit(5, 6, retry_after="10"), visit(16.5, 17)]
    assert_polite(log, spacing=5, at_once=1)
    assert gaps(log) == [5, 11.5]


def test_requests_too_close_are_seen() -> None:
    with pytest.raises(AssertionError, match=r"4\.900 s apart"):
        assert_polite([visit(0, 1), visit(4.9, 5)], spacing=5, at_once=1)


def test_requests_at_once_are_seen() -> None:
    log = [visit(0, 7), visit(5, 12), visit(11, 12)]
    assert most_at_once(log) == 2
    with pytest.raises(AssertionError, match="2 requests at once"):
        assert_polite(log, spacing=5, at_once=1)
    assert most_at_once([visit(0, 5), visit(5, 6)]) == 1


def test_request_while_the_gate_is_closed_is_seen() -> None:
    with pytest.raises(AssertionError, match="before the gate opened"):
        assert_polite([visit(0, 1, retry_after="10"), visit(10, 11)], spacing=5, at_once=1)
    with pytest.raises(AssertionError, match="before the gate opened"):
        assert_silent([visit(3, 4)], [(2, 5)])
    assert_silent([visit(1, 9), visit(5, 9)], [(2, 5)])


def test_disallowed_request_and_repeated_work_are_seen() -> None:
    with pytest.raises(AssertionError, match="though disallowed"):
        assert_never_asked([visit(0, 1, "/oglasi/1")], lambda path: path.startswith("/oglasi"))
    assert answered_twice([visit(0, 1), visit(2, 3), visit(4, 5, "/b")]) == ["a.hr/a"]


def test_one_request_proves_nothing() -> None:
    with pytest.raises(AssertionError, match="too few"):
        assert_polite([visit(0, 1)], spacing=5, at_once=1)
