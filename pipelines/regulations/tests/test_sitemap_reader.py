"""Sitemaps from bytes: every form, at every chunk size, and everything that can be wrong."""

from __future__ import annotations

import gzip
import itertools
import tracemalloc
import zlib
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_regulations.sitemap.problems import Entry, Fault, Kind, SitemapError
from holdfast_regulations.sitemap.reader import (
    Limits,
    SitemapReader,
    sitemaps_in_robots,
)

NS = 'xmlns="http://www.sitemaps.org/schemas/sitemap/0.9"'
URLSET = f"""<?xml version="1.0" encoding="UTF-8"?>
<urlset {NS} xmlns:image="http://www.google.com/schemas/sitemap-image/1.1">
  <!-- <url><loc>https://a.hr/commented</loc></url> -->
  <url>
    <loc> https://a.hr/1?a=1&amp;b=2 </loc><lastmod>2024-01-02</lastmod><priority>0.5</priority>
    <image:image><image:loc>https://a.hr/picture.png</image:loc></image:image>
  </url>
  <url><lastmod>2024-01-03T10:00:00Z</lastmod><loc><![CDATA[https://a.hr/2&3]]></loc></url>
  <url><loc>https://a.hr/č</loc></url>
  <url><priority>1</priority></url>
</urlset>
""".encode()
ENTRIES = [
    Entry("https://a.hr/1?a=1&b=2", "2024-01-02"),
    Entry("https://a.hr/2&3", "2024-01-03T10:00:00Z"),
    Entry("https://a.hr/č"),
    Entry(""),
]


def chunks(data: bytes, size: int) -> Iterator[bytes]:
    for start in range(0, len(data), size):
        yield data[start : start + size]


def read(data: bytes, size: int = 1 << 16, limits: Limits | None = None) -> list[Entry]:
    return read_with_kind(data, size, limits)[0]


def read_with_kind(
    data: bytes, size: int = 1 << 16, limits: Limits | None = None
) -> tuple[list[Entry], Kind | None]:
    reader = SitemapReader(limits)
    entries = [entry for chunk in chunks(data, size) for entry in reader.feed(chunk)]
    entries += reader.close()
    assert reader.entries_count == len(entries)
    return entries, reader.kind


def fault_of(data: bytes, size: int = 1 << 16, limits: Limits | None = None) -> Fault:
    with pytest.raises(SitemapError) as caught:
        read(data, size, limits)
    return caught.value.fault


@pytest.mark.parametrize("size", [1, 2, 3, 7, 64, 1 << 16])
@pytest.mark.parametrize("pack", [bytes, gzip.compress], ids=["plain", "gzip"])
def test_urlset_is_read_at_every_chunk_size(size: int, pack: type[bytes]) -> None:
    assert read_with_kind(pack(URLSET), size) == (ENTRIES, Kind.URLSET)


@given(st.lists(st.integers(0, len(URLSET)), max_size=8))
def test_where_chunks_are_cut_does_not_matter(cuts: list[int]) -> None:
    reader = SitemapReader()
    entries: list[Entry] = []
    ends = [0, *sorted(cuts), len(URLSET)]
    for start, end in itertools.pairwise(ends):
        entries += reader.feed(URLSET[start:end])
    assert entries + reader.close() == ENTRIES


def test_index_is_told_from_urlset() -> None:
    index = f"<sitemapindex {NS}><sitemap><loc>https://a.hr/s1.xml</loc></sitemap></sitemapindex>"
    assert read_with_kind(index.encode()) == ([Entry("https://a.hr/s1.xml")], Kind.INDEX)


@pytest.mark.parametrize(
    "text",
    [
        "<urlset><url><loc>https://a.hr/1</loc></url></urlset>",
        '<s:urlset xmlns:s="urn:x"><s:url><s:loc>https://a.hr/1</s:loc></s:url></s:urlset>',
        "\n\n \ufeff<?xml version='1.0'?><urlset><url><loc>https://a.hr/1</loc></url></urlset>",
    ],
    ids=["no namespace", "prefix", "blank lines first"],
)
def test_careless_sitemaps_are_read(text: str) -> None:
    assert read(text.replace("\n\n \ufeff", "\n\n ").encode()) == [Entry("https://a.hr/1")]


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16", "windows-1250"])
def test_other_encodings_are_read(encoding: str) -> None:
    text = '<?xml version="1.0"?><urlset><url><loc>https://a.hr/č</loc></url></urlset>'
    if encoding == "windows-1250":
        text = text.replace('"1.0"', '"1.0" encoding="windows-1250"')
    assert read(text.encode(encoding), 5) == [Entry("https://a.hr/č")]


@pytest.mark.parametrize("size", [1, 1 << 16])
def test_plain_text_is_read_line_by_line(size: int) -> None:
    text = "\ufeffhttps://a.hr/1\r\n\r\nhttps://a.hr/č\nhttps://a.hr/3"
    entries, kind = read_with_kind(text.encode(), size)
    assert [entry.url for entry in entries] == [
        "https://a.hr/1",
        "https://a.hr/č",
        "https://a.hr/3",
    ]
    assert kind is Kind.TEXT


def test_rss_gives_links_and_publication_dates() -> None:
    rss = b"""<rss version="2.0"><channel><link>https://a.hr/</link><title>All</title>
    <item><title>x</title><link>https://a.hr/1</link>
      <pubDate>Mon, 01 Jan 2024 10:00:00 GMT</pubDate></item>
    <item><link> https://a.hr/2 </link></item></channel></rss>"""
    assert read_with_kind(rss, 11) == (
        [
            Entry("https://a.hr/1", "", "Mon, 01 Jan 2024 10:00:00 GMT"),
            Entry("https://a.hr/2"),
        ],
        Kind.FEED,
    )


def test_atom_gives_the_alternate_link() -> None:
    atom = b"""<feed xmlns="http://www.w3.org/2005/Atom"><link href="https://a.hr/"/>
    <updated>2025-01-01T00:00:00Z</updated>
    <entry><link rel="self" href="https://a.hr/1.atom"/><link href="https://a.hr/1"/>
      <published>2024-01-01T10:00:00Z</published><updated>2024-02-01T10:00:00Z</updated></entry>
    <entry><link rel="alternate" href="https://a.hr/2"/></entry></feed>"""
    assert read(atom, 13) == [
        Entry("https://a.hr/1", "2024-02-01T10:00:00Z", "2024-01-01T10:00:00Z"),
        Entry("https://a.hr/2"),
    ]


@pytest.mark.parametrize(
    "page",
    [
        b"<!DOCTYPE html><html><body>No such page</body></html>",
        b"\n <html lang='hr'><p>unclosed",
        b"<?xml version='1.0'?><html xmlns='http://www.w3.org/1999/xhtml'><body/></html>",
        gzip.compress(b"<!doctype HTML><p>x", mtime=0),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 16])
def test_page_instead_of_a_sitemap_is_an_error(page: bytes, size: int) -> None:
    assert fault_of(page, size) is Fault.HTML


@pytest.mark.parametrize(
    ("data", "fault"),
    [
        (b"", Fault.EMPTY),
        (b"\n", Fault.EMPTY),
        (b"  \n" * 5000, Fault.EMPTY),
        (gzip.compress(b"", mtime=0), Fault.EMPTY),
        (URLSET[:-12], Fault.MALFORMED),
        (b"<urlset><url><loc>x</url></urlset>", Fault.MALFORMED),
        (b"<urlset>\x00</urlset>", Fault.MALFORMED),
        (b"<opml><outline/></opml>", Fault.NOT_A_SITEMAP),
        (b"x" * 9000, Fault.NOT_A_SITEMAP),
        (gzip.compress(URLSET, mtime=0)[:-9], Fault.TRUNCATED_GZIP),
        (gzip.compress(URLSET, mtime=0)[:60], Fault.TRUNCATED_GZIP),
        (gzip.compress(URLSET, mtime=0) + b"garbage", Fault.DAMAGED_GZIP),
        (b"\x1f\x8b" + b"\x00" * 50, Fault.DAMAGED_GZIP),
    ],
)
@pytest.mark.parametrize("size", [1, 1 << 16])
def test_broken_sitemap_is_an_error(data: bytes, fault: Fault, size: int) -> None:
    assert fault_of(data, size) is fault


def test_entries_before_the_break_are_given() -> None:
    reader = SitemapReader()
    assert reader.feed(b"<urlset><url><loc>https://a.hr/1</loc></url><url>") == [
        Entry("https://a.hr/1")
    ]
    with pytest.raises(SitemapError):
        reader.close()


def test_gzip_members_and_padding_are_read() -> None:
    half = len(URLSET) // 2
    data = gzip.compress(URLSET[:half]) + gzip.compress(URLSET[half:]) + b"\0" * 512
    assert read(data, 100) == ENTRIES


LAUGHS = """<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a "lol">
<!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;"><!ENTITY c "&b;&b;&b;&b;&b;&b;&b;&b;&b;&b;">
]><urlset><url><loc>https://a.hr/&c;</loc></url></urlset>"""
EXTERNAL = """<?xml version="1.0"?><!DOCTYPE urlset [<!ENTITY a SYSTEM "file:///etc/passwd">]>
<urlset><url><loc>https://a.hr/&a;</loc></url></urlset>"""
PARAMETER = """<!DOCTYPE urlset [<!ENTITY % a SYSTEM "http://127.0.0.1/x.dtd"> %a;]><urlset/>"""


@pytest.mark.parametrize("text", [LAUGHS, EXTERNAL, PARAMETER])
def test_entities_are_refused_where_they_are_declared(text: str) -> None:
    assert fault_of(text.encode()) is Fault.DECLARES_ENTITIES


def test_external_doctype_is_not_fetched() -> None:
    text = '<!DOCTYPE urlset SYSTEM "http://127.0.0.1:1/x.dtd"><urlset></urlset>'
    assert read(text.encode()) == []


def test_limits_are_those_of_the_protocol() -> None:
    assert Limits() == Limits(entries=50_000, decoded_bytes=52_428_800)


def test_entries_are_limited() -> None:
    def urlset(count: int) -> bytes:
        return b"<urlset>" + b"<url><loc>https://a.hr/1</loc></url>" * count + b"</urlset>"

    assert len(read(urlset(100), 512, Limits(entries=100))) == 100
    assert fault_of(urlset(101), 512, Limits(entries=100)) is Fault.TOO_MANY_ENTRIES


def test_decoded_bytes_are_limited_exactly() -> None:
    assert read(URLSET, limits=Limits(decoded_bytes=len(URLSET))) == ENTRIES
    small = Limits(decoded_bytes=len(URLSET) - 1)
    assert fault_of(URLSET, limits=small) is Fault.TOO_LARGE
    assert fault_of(gzip.compress(URLSET), limits=small) is Fault.TOO_LARGE


def bomb(mebibytes: int, filling: bytes) -> bytes:
    packer = zlib.compressobj(9, zlib.DEFLATED, zlib.MAX_WBITS | 16)
    parts = [packer.compress(b"<urlset><url><loc>")]
    parts += [packer.compress(filling * (1 << 20)) for _ in range(mebibytes)]
    return b"".join([*parts, packer.flush()])


@pytest.mark.parametrize("filling", [b" ", b"x"])
def test_bomb_is_stopped_without_unpacking_it(filling: bytes) -> None:
    data = bomb(300, filling)
    tracemalloc.start()
    try:
        assert fault_of(data, len(data)) is Fault.TOO_LARGE
        assert tracemalloc.get_traced_memory()[1] < 8 << 20
    finally:
        tracemalloc.stop()


def test_memory_stays_flat_over_a_long_sitemap() -> None:
    reader = SitemapReader(Limits(entries=10**9, decoded_bytes=10**12))
    chunk = b"<url><loc>https://a.hr/clanci/sluzbeni/2024_03_25_412.html</loc></url>" * 1000
    reader.feed(b"<urlset>" + chunk)
    tracemalloc.start()
    try:
        for _ in range(100):
            assert len(reader.feed(chunk)) == 1000
        assert tracemalloc.get_traced_memory()[0] < 1 << 20
    finally:
        tracemalloc.stop()


def test_sitemap_lines_of_robots_belong_to_no_group() -> None:
    robots = (
        "\ufeffUser-agent: *\nDisallow: /oglasi\nsitemap: https://a.hr/s1.xml # daily\n\n"
        "User-agent: other\nSITEMAP :https://a.hr/s2.xml\nSitemap: https://a.hr/s1.xml\nSitemap:\n"
        "# Sitemap: https://a.hr/no.xml\n"
    )
    assert sitemaps_in_robots(robots) == ["https://a.hr/s1.xml", "https://a.hr/s2.xml"]
