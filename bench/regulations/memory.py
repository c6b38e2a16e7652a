"""`python -m bench.regulations.memory bare|holdfast SITEMAPS URLS`: the same sitemaps from memory,
by a bare lxml.iterparse loop or through reader, admission and keys. Prints seconds."""

from __future__ import annotations

import io
import sys
import time

from lxml import etree

from bench.regulations import site
from bench.regulations.discover import SOURCE
from holdfast.cli.work import collect_garbage_less_often
from holdfast_regulations.dates import DateRange
from holdfast_regulations.discovery import Discovery
from holdfast_regulations.sitemap.reader import SitemapReader
from holdfast_regulations.sources_file import parse_sources

_LOC = "{http://www.sitemaps.org/schemas/sitemap/0.9}loc"
_BASE = "http://gazette.example.hr"


def bare(body: bytes) -> int:
    count = 0
    for _, element in etree.iterparse(io.BytesIO(body), tag=_LOC):
        count += element.text is not None
        element.clear()
    return count


class Holdfast:
    def __init__(self) -> None:
        text = SOURCE.replace("127.0.0.1:{port}", "gazette.example.hr").format(port=0)
        source = parse_sources(text, "bench")["gazette"]
        self._discovery = Discovery(source, None, DateRange(), 2026)  # type: ignore[arg-type]

    def __call__(self, body: bytes) -> int:
        discovery = self._discovery
        reader = SitemapReader()
        entries = [*reader.feed(body), *reader.close()]
        return len(discovery.records(entries, _BASE))


def main(way: str, sitemaps: int, urls: int) -> None:
    read = bare if way == "bare" else Holdfast()
    if way != "bare":
        collect_garbage_less_often()  # as a worker does
    seconds, count = 0.0, 0
    for number in range(1, sitemaps + 1):
        body = site.sitemap_body(_BASE, number, sitemaps, urls)
        started = time.process_time()
        count += read(body)
        seconds += time.process_time() - started
    print(count, f"{seconds:.3f}")


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
