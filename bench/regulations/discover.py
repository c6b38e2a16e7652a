"""`python -m bench.regulations.discover PORT`: discovery as a worker does it, without the store:
download, robots.txt, admission, canonical keys, item ids, records. Prints the records and the
memory in use at a tenth of them and at the end."""

from __future__ import annotations

import random
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import psutil
import uvloop

from holdfast.cli.work import collect_garbage_less_often
from holdfast.clock import SystemClock
from holdfast.http import HttpClient, HttpOptions
from holdfast.kernel.gates.gates import Passage
from holdfast_regulations.dates import DateRange
from holdfast_regulations.discovery import Discovery
from holdfast_regulations.sources import Mode
from holdfast_regulations.sources_file import parse_sources

SOURCE = """
[[source]]
slug = "gazette"
name = "Gazette"
hosts = ["127.0.0.1:{port}"]
verified = 2026-11-16
mode = "sitemap"
include = ['/clanci/']
exclude = ['/oglasi/']
[source.sitemap]
url = "http://127.0.0.1:{port}/sitemap.xml"
children = '/sitemap_(?P<part>[12])_(?P<year>\\d{{4}})_(?P<issue>\\d+)\\.xml'
[source.canonical]
identity = [
  '/clanci/(?P<part>[a-z]+)/(?P<year>\\d{{4}})_\\d{{2}}_(?P<issue>\\d+)_(?P<act>\\d+)\\.html',
]
[source.gate]
min_delay_seconds = 0
max_delay_seconds = 0
concurrency = 16
[source.caps]
max_urls = 10000000
"""


class OpenGates:
    @asynccontextmanager
    async def passing(self, name: str) -> AsyncIterator[Passage]:
        yield Passage()

    async def close(self, name: str, seconds: float, reason: str) -> None:
        raise RuntimeError(f"{name} was throttled: {reason}")

    async def slow_down(self, name: str, spacing: float) -> None:
        raise RuntimeError(f"{name} asks for {spacing} s")


async def main(port: int) -> None:
    source = parse_sources(SOURCE.format(port=port), "bench")["gazette"]
    options = HttpOptions(allow_private_addresses=True)
    http = HttpClient(OpenGates(), options, SystemClock(), random.Random(1))
    process = psutil.Process()
    collect_garbage_less_often()  # as a worker does
    count = pages = early = 0
    async for page in Discovery(source, http, DateRange(), 2026).pages(Mode.SITEMAP, None):
        count += len(page.records)
        pages += 1
        if pages == 1000:
            early = process.memory_info().rss
    http.close()
    print(count, early or process.memory_info().rss, process.memory_info().rss)


if __name__ == "__main__":
    uvloop.run(main(int(sys.argv[1])))
