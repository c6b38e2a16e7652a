"""Bad input through the door: one run over sources that are each wrong in another way. Every one of
them fails for itself and says why; the sound one beside them is read."""

from __future__ import annotations

import gzip
import zlib
from pathlib import Path

import pytest

from holdfast.kernel import Store
from holdfast.model import StreamState
from pipelines.regulations.tests.desk import OPEN_GATES, Desk
from pipelines.regulations.tests.world import FINA, GAZETTE, RegulatoryWorld, markup
from tests.world import Answer, text_answer

SITEMAP = """
[[source]]
slug = "{slug}"
name = "{slug}"
hosts = ["{host}"]
verified = 2026-01-11
mode = "sitemap"
include = ['/clanci/']
[source.sitemap]
url = "http://{host}/bad/{slug}.xml"
"""
LISTING = """
[[source]]
slug = "{slug}"
name = "{slug}"
hosts = ["{host}"]
verified = 2026-01-11
mode = "pagination"
include = ['/clanci/']
[source.pagination]
url = "http://{host}/bad/{slug}"
parameter = "page"
links = "{links}"
stop = ["empty"]
max_pages = 5
"""
LAUGHS = (
    '<?xml version="1.0"?><!DOCTYPE lolz [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;">]>'
    "<urlset><url><loc>&b;</loc></url></urlset>"
)
ARCHIVE = """
[[source]]
slug = "{slug}"
name = "{slug}"
hosts = ["{host}"]
verified = 2026-01-11
mode = "archive"
include = ['/novosti/']
[source.archive]
first_year = 2021
last_year = 2023
issue_url = "http://{host}/{folder}/{{year}}/{{issue}}"
"""
ACT = f"http://{GAZETTE}/clanci/sluzbeni/1991_02_1_1.html"


def bomb(megabytes: int) -> bytes:
    """A sitemap with so many megabytes of blanks in it; one of them is packed, and repeated."""
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    head, tail = markup("urlset", [])[:-9], b"</urlset>"
    packed = packer.compress(head) + packer.flush(zlib.Z_FULL_FLUSH)
    blanks = packer.compress(b" " * (1 << 20)) + packer.flush(zlib.Z_FULL_FLUSH)
    return packed + blanks * megabytes + packer.compress(tail) + packer.flush()


SITEMAPS = {
    "page": (b"<!DOCTYPE html><html><body>maintenance</body></html>", "HTML"),
    "truncated": (gzip.compress(markup("urlset", [ACT]))[:-12], "TRUNCATED_GZIP"),
    "laughs": (LAUGHS.encode(), "DECLARES_ENTITIES"),
    "bomb": (bomb(300), "TOO_LARGE"),
    "empty": (b"", "EMPTY"),
}
ELSEWHERE = [
    "http://127.0.0.1/clanci/1",
    "http://10.0.0.7/clanci/1",
    "file:///etc/passwd",
    "http://other.example.hr/clanci/1",
    "http://[::1/clanci/1",
    "",
]
LINK = f'<html><body><a href="{ACT}">x</a></body></html>'


def sources() -> str:
    names = [*SITEMAPS, "elsewhere"]
    sitemaps = "".join(SITEMAP.format(slug=slug, host=GAZETTE) + OPEN_GATES for slug in names)
    listings = "".join(
        LISTING.format(slug=slug, host=GAZETTE, links=links) + OPEN_GATES
        for slug, links in (("endless", "a"), ("nothing", "a.no-such-class"))
    )
    archives = "".join(
        ARCHIVE.format(slug=slug, host=host, folder=folder) + OPEN_GATES
        for slug, host, folder in (("gap", FINA, "arhiva"), ("lost", GAZETTE, "arhiva"))
    )
    return sitemaps + listings + archives


@pytest.fixture
async def bad_desk(store: Store, world: RegulatoryWorld, tmp_path: Path) -> Desk:
    for slug, (body, _) in SITEMAPS.items():
        world.replaced[f"/bad/{slug}.xml"] = Answer(200, body, {"Content-Type": "text/xml"})
    world.replaced["/bad/elsewhere.xml"] = Answer(
        200, markup("urlset", [ACT, *ELSEWHERE]), {"Content-Type": "text/xml"}
    )
    world.replaced["/bad/endless"] = text_answer(LINK, 200, "text/html")
    world.replaced["/bad/nothing"] = text_answer(LINK, 200, "text/html")
    made = Desk(store, world, tmp_path, sources=sources())
    await made.switch(True)
    return made


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_every_bad_source_fails_for_itself_and_says_why(bad_desk: Desk) -> None:
    (sitemaps,) = await bad_desk.order(",".join([*SITEMAPS, "elsewhere"]), concurrency=8)
    (listings,) = await bad_desk.order("endless,nothing", concurrency=8)
    (archives,) = await bad_desk.order("gap,lost", concurrency=8)
    await bad_desk.work()
    streams = {
        stream.source: stream
        for job_id in (sitemaps, listings, archives)
        for stream in await bad_desk.store.streams.of_job(job_id)
    }
    failed = {slug: stream.error for slug, stream in streams.items() if stream.error is not None}
    assert failed.keys() == {*SITEMAPS, "endless", "nothing", "lost"}
    for slug, (_, fault) in SITEMAPS.items():
        assert fault in (failed[slug] or ""), slug
    assert "the listing is endless" in (failed["endless"] or "")
    assert "has the site's layout changed" in (failed["nothing"] or "")
    assert "2 years in a row without a wanted link" in (failed["lost"] or "")
    assert streams["elsewhere"].state == StreamState.COMPLETE
    # A year without issues is not the end: the years before it are read too.
    assert (streams["gap"].state, streams["gap"].items_count) == (StreamState.COMPLETE, 12)
    assert (await bad_desk.counts(archives))["empty.2022"] == 1
    counts = await bad_desk.counts(sitemaps)
    refused = {reason: n for reason, n in counts.items() if reason.startswith("refused.")}
    assert refused == {
        "refused.MISSING": 1,
        "refused.NOT_HTTP": 2,
        "refused.OFF_HOST": 1,
        "refused.PRIVATE_ADDRESS": 2,
    }
    # Also what came before the fault: the listing's first page, the beginning of the gzip file.
    assert [url for url, *_ in await bad_desk.captures() if "/clanci/" in url] == [ACT] * 3
