"""Servers on loopback that behave like real ones: they mostly answer, and not always at once.

`python -m holdfast.demo.world PORT` serves until it gets SIGTERM or its standard input ends.

/search?q=TITLE         a shop: slow, busy, broken at first, sold out, members only
/catalogue?cursor=N     a list of products, page by page, sometimes throttled
/stock/SKU              how many of a product are left
/NAME/...               the upstreams of the extension NAME
"""

from __future__ import annotations

import json
import signal
import sys
import threading
import time
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

from holdfast.clock import SystemClock
from holdfast.demo.goods import CATALOGUE_SIZE, fate, offers, product
from holdfast.demo.part import NOT_FOUND, Ask, DemoPart, Reply, demo_parts

_PAGE = 100
_BUSY_EVERY = 700
_BUSY_SECONDS = 6


class World(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    visits: ClassVar[Counter[str]] = Counter()
    clock: ClassVar[SystemClock] = SystemClock()
    began: ClassVar[float] = SystemClock().monotonic()
    lock: ClassVar[threading.Lock] = threading.Lock()
    parts: ClassVar[dict[str, DemoPart]] = {}

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        query = {name: values[0] for name, values in parse_qs(address.query).items()}
        if address.path == "/robots.txt":
            self._answer(200, "User-agent: *\nAllow: /\n", "text/plain")
        elif address.path == "/search":
            self._search(query.get("q", ""))
        elif address.path == "/catalogue":
            self._catalogue(int(query.get("cursor", "0")))
        elif address.path.startswith("/stock/"):
            self._stock(address.path.rpartition("/")[2])
        else:
            name, _, path = address.path.removeprefix("/").partition("/")
            self._reply(self._of_extension(name, path, query))

    def _search(self, title: str) -> None:
        first = self._count(f"search {title}") == 1
        mood = fate(f"mood {title}", 100)
        time.sleep(1.2 if mood < 3 else 0.04 + fate(title, 120) / 1000)
        if self._count("search") % _BUSY_EVERY == 0:
            headers = {"Retry-After": str(_BUSY_SECONDS)}
            self._answer(429, {"error": "too many requests"}, headers=headers)
        elif mood in range(3, 9) and first:
            self._answer(503, {"error": "the shelf fell over"})
        elif mood in (9, 10):
            self._answer(403, {"error": "members only"})
        elif mood == 11:
            self._answer(200, "<h1>Maintenance</h1>", "text/html")
        else:
            self._answer(200, {"offers": [] if mood in range(12, 17) else offers(title)})

    def _catalogue(self, cursor: int) -> None:
        time.sleep(0.15)
        visit = self._count(f"catalogue {cursor}")
        if fate(f"page {cursor}", 5) == 0 and visit == 1:
            self._answer(502, {"error": "the storeroom is locked"})
            return
        end = min(cursor + _PAGE, CATALOGUE_SIZE)
        page = [product(number) for number in range(cursor + 1, end + 1)]
        following = end if end < CATALOGUE_SIZE else None
        self._answer(200, {"products": page, "next": following, "total": CATALOGUE_SIZE})

    def _stock(self, sku: str) -> None:
        time.sleep(0.02 + fate(sku, 60) / 1000)
        if fate(f"gone {sku}", 40) == 0:
            self._answer(404, {"error": "no longer sold"})
        elif fate(f"late {sku}", 25) == 0 and self._count(f"stock {sku}") == 1:
            self._answer(500, {"error": "the counter is stuck"})
        else:
            self._answer(200, {"sku": sku, "left": fate(f"left {sku}", 300)})

    def _of_extension(self, name: str, path: str, query: dict[str, str]) -> Reply:
        if name not in self.parts:
            return NOT_FOUND
        uptime = self.clock.monotonic() - self.began
        url = f"http://{self.headers.get('Host', '')}/{name}"
        return self.parts[name].answer(Ask(path, query, self.clock.now(), uptime, url))

    def _reply(self, reply: Reply) -> None:
        time.sleep(reply.delay_seconds)
        headers = dict(reply.headers or {})
        self._answer(reply.status, reply.body, reply.content_type, headers)

    def _count(self, what: str) -> int:
        with self.lock:
            self.visits[what] += 1
            return self.visits[what]

    def _answer(
        self,
        status: int,
        body: object,
        content_type: str = "application/json",
        headers: dict[str, str] | None = None,
    ) -> None:
        content = (body if isinstance(body, str) else json.dumps(body)).encode()
        self.send_response(status)
        self.send_header("Content-Type", content_type)
        self.send_header("Content-Length", str(len(content)))
        for name, value in (headers or {}).items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:
        """Prints nothing, to keep the terminal clean."""


class _QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Prints nothing: a worker that is killed disconnects in the middle of a response."""


def serve(port: int) -> None:
    World.parts = demo_parts()
    server = _QuietServer(("127.0.0.1", port), World)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    sys.stdin.read()


if __name__ == "__main__":
    serve(int(sys.argv[1]))
