"""`python -m bench.regulations.scrapy_runs sitemaps|files PORT [COUNT FOLDER]`: Scrapy's sitemap
spider, which counts what it is given, or its files pipeline."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Iterable, Iterator
from typing import Any

import scrapy
from scrapy.crawler import CrawlerProcess
from scrapy.spiders import SitemapSpider

_PLAIN = {
    "LOG_LEVEL": "ERROR",
    "ROBOTSTXT_OBEY": True,
    "CONCURRENT_REQUESTS": 16,
    "CONCURRENT_REQUESTS_PER_DOMAIN": 16,
    "DOWNLOAD_DELAY": 0,
    "TELNETCONSOLE_ENABLED": False,
    "AUTOTHROTTLE_ENABLED": False,
}


class Sitemaps(SitemapSpider):
    name = "sitemaps"
    count = 0

    def sitemap_filter(self, entries: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """Follows indexes, and counts the rest instead of fetching it."""
        for entry in entries:
            if "/sitemap_" in entry["loc"]:
                yield entry
            else:
                type(self).count += 1


class Files(scrapy.Spider):
    name = "files"
    urls: tuple[str, ...] = ()

    async def start(self) -> AsyncIterator[Any]:
        for url in self.urls:
            yield {"file_urls": [url]}


def main() -> None:
    what, port = sys.argv[1], int(sys.argv[2])
    base = f"http://127.0.0.1:{port}"
    if what == "sitemaps":
        process = CrawlerProcess(_PLAIN)
        process.crawl(Sitemaps, sitemap_urls=[f"{base}/sitemap.xml"])
        process.start()
        print(Sitemaps.count)
        return
    count, folder = int(sys.argv[3]), sys.argv[4]
    files = {
        **_PLAIN,
        "ITEM_PIPELINES": {"scrapy.pipelines.files.FilesPipeline": 1},
        "FILES_STORE": folder,
    }
    urls = tuple(f"{base}/clanci/sluzbeni/1991_02_1_{n}.html" for n in range(1, count + 1))
    process = CrawlerProcess(files)
    process.crawl(Files, urls=urls)
    process.start()


if __name__ == "__main__":
    main()
