"""`python -m bench.regulations.site PORT SITEMAPS URLS`: a site as fast as Python can answer.

/sitemap.xml lists SITEMAPS sitemaps, which together list URLS URLs; every other path is a page of
an act.
"""

from __future__ import annotations

import asyncio
import sys
from functools import cache
from typing import Any

import uvloop

from holdfast_regulations.demo import sitemap_markup

_WORDS = "Na temelju članka 89. Ustava Republike Hrvatske donosim odluku o proglašenju zakona. "


class Site(asyncio.Protocol):
    """Answers pipelined requests of one connection in order."""

    base = ""
    sitemaps = 0
    urls = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport: Any = transport  # uvloop's own is not an asyncio.Transport
        self._rest = b""

    def data_received(self, data: bytes) -> None:
        *requests, self._rest = (self._rest + data).split(b"\r\n\r\n")
        for request in requests:
            path = request.split(b" ", 2)[1].decode()
            self._transport.write(self._answer(path))

    def _answer(self, path: str) -> bytes:
        if path == "/robots.txt":
            return _reply("404 Not Found", "text/plain", b"")
        if path == "/sitemap.xml":
            return _index(self.base, self.sitemaps)
        if path.startswith("/sitemap_"):
            number = int(path.rpartition("_")[2].removesuffix(".xml"))
            return _sitemap(self.base, number, self.sitemaps, self.urls)
        return _reply("200 OK", "text/html; charset=utf-8", _page(path))


def _reply(status: str, kind: str, body: bytes) -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n\r\n"
    return head.encode() + body


@cache
def _index(base: str, count: int) -> bytes:
    urls = [f"{base}/sitemap_1_{1990 + n % 35}_{n}.xml" for n in range(1, count + 1)]
    return _reply("200 OK", "application/xml", sitemap_markup("sitemapindex", urls).encode())


def _sitemap(base: str, number: int, sitemaps: int, urls: int) -> bytes:
    body = sitemap_body(base, number, sitemaps, urls)
    return _reply("200 OK", "application/xml", body)


def sitemap_body(base: str, number: int, sitemaps: int, urls: int) -> bytes:
    first, last = (urls * n // sitemaps for n in (number - 1, number))
    year = 1990 + number % 35
    act = f"{base}/clanci/sluzbeni/{year}_{number % 12 + 1:02}_{number}_"
    urls = [f"{act}{n}.html" for n in range(1, last - first + 1)]
    return sitemap_markup("urlset", urls, "2024-03-05").encode()


def _page(path: str) -> bytes:
    paragraphs = "".join(f"<p>Članak {n}. {_WORDS * 3}</p>" for n in range(1, 25))
    return (
        f'<!DOCTYPE html><html lang="hr"><head><meta charset="utf-8"><title>Odluka {path}</title>'
        '<meta property="eli:date_publication" content="2024-03-05"></head><body>'
        f"<nav><a href='/'>Naslovnica</a></nav><main><h1>Odluka {path}</h1>{paragraphs}</main>"
        "</body></html>"
    ).encode()


async def main(port: int, sitemaps: int, urls: int) -> None:
    Site.base, Site.sitemaps, Site.urls = f"http://127.0.0.1:{port}", sitemaps, urls
    server = await asyncio.get_running_loop().create_server(Site, "127.0.0.1", port)
    async with server:
        print("ready", flush=True)
        await server.serve_forever()


if __name__ == "__main__":
    uvloop.run(main(*(int(word) for word in sys.argv[1:4])))
