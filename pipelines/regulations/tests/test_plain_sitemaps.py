"""The short way through plain sitemaps reads what the parser reads, whatever else is in them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast_regulations.sitemap.markup import Markup
from holdfast_regulations.sitemap.plain import PlainUrlset, is_plain
from holdfast_regulations.sitemap.problems import Entry, SitemapError

HEAD = b'<?xml version="1.0" encoding="UTF-8"?>\n<urlset xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">'
PLAIN = [
    b"<url><loc>https://a.hr/1</loc></url>",
    b"\n<url>\n <loc> https://a.hr/2?a=1&amp;b=2 </loc>\n <lastmod>2024-03-05</lastmod>\n</url>",
    "<url><loc>https://a.hr/č</loc><priority>0.5</priority></url>".encode(),
    b"<url><loc></loc><changefreq>daily</changefreq><priority>1</priority></url>",
]
OTHER = [
    b"<!-- <url><loc>https://a.hr/commented</loc></url> -->",
    b"<url><lastmod>2024</lastmod><loc>https://a.hr/3</loc></url>",
    b"<url><loc><![CDATA[https://a.hr/4&5]]></loc></url>",
    b"<url><loc>https://a.hr/&#49;</loc></url>",
    b'<url lang="hr"><loc>https://a.hr/6</loc></url>',
    b"<url><loc>https://a.hr/7</loc><loc>https://a.hr/8</loc></url>",
    b"<x:url xmlns:x='y'><x:loc>https://a.hr/9</x:loc></x:url>",
    b"text between",
    b"<url><loc>https://a.hr/\xff</loc></url>",
    b"<url><loc>https://a.hr/\x01</loc></url>",
    b"<url><loc>https://a.hr/&unknown;</loc></url>",
    b"<url></url>",
    b"</urlset><urlset>",
    b"<url><loc>https://a.hr/10</loc>",
]
ENDS = [b"</urlset>", b"\n</urlset>\n", b"", b"</urlset>trailing", b"</url"]


def read(body: Markup | PlainUrlset, data: bytes, size: int) -> tuple[list[Entry], str | None]:
    """The entries, and the fault after them."""
    try:
        for start in range(0, len(data), size):
            body.feed(data[start : start + size])
        body.close()
    except SitemapError as error:
        return body.entries, error.fault
    return body.entries, None


@given(
    st.lists(st.sampled_from(PLAIN * 3 + OTHER), max_size=8),
    st.sampled_from(ENDS),
    st.sampled_from([7, 64, 1 << 16]),
)
def test_every_document_is_read_as_the_parser_reads_it(
    parts: list[bytes], end: bytes, size: int
) -> None:
    data = HEAD + b"".join(parts) + end
    body = PlainUrlset()
    body.feed(HEAD)
    assert read(body, data[len(HEAD) :], size) == read(Markup(), data, 1 << 16)


@pytest.mark.parametrize("part", PLAIN)
def test_plain_elements_never_reach_the_parser(part: bytes) -> None:
    body = PlainUrlset()
    assert read(body, HEAD + part * 3 + b"</urlset>", 1 << 16)[1] is None
    assert body._markup is None and len(body.entries) == 3


@pytest.mark.parametrize(
    "beginning",
    [
        b"<urlset>",
        b'<URLSET xmlns="x">',
        b'<s:urlset xmlns:s="x">',
        b'<sitemapindex xmlns="x">',
        b'<!DOCTYPE urlset><urlset xmlns="x">',
        b'<?xml version="1.0" encoding="windows-1250"?><urlset xmlns="x">',
        b'<urlset xmlns="x"',
    ],
)
def test_other_beginnings_are_the_parser_s(beginning: bytes) -> None:
    assert not is_plain(beginning)
