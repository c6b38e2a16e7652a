"""A small shop on loopback that answers like the real ones: mostly, and not always at once.

It prints its address as its first line and serves until it gets SIGTERM.
"""

import json
import signal
import sys
import threading
import time
import zlib
from collections import Counter
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import ClassVar
from urllib.parse import parse_qs, urlsplit

SHOPS = ("Kontor Nord", "Marktgasse 7", "Brightside Goods")

TOO_BUSY_AT_FIRST = {"Cordless drill 18 V", "Steam iron 2400 W"}
BROKEN_AT_FIRST = {"Kettle 1.7 l", "Laser distance meter 40 m", "Gas stove folding"}
SLOW = {"Pressure cooker 6 l", "Wool blanket 140 x 200", "Bicycle lock 110 cm"}
NOT_SOLD = {"Umbrella stand", "Hammock with straps"}
PAGE_IS_GONE = {"Curtain blackout grey"}
MEMBERS_ONLY = {"Water filter 0.1 µm"}


class Shop(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    visits: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()

    def do_GET(self) -> None:
        address = urlsplit(self.path)
        if address.path == "/robots.txt":
            self.answer(200, "User-agent: *\nAllow: /\n", "text/plain")
        elif address.path == "/search":
            self.search(parse_qs(address.query).get("q", [""])[0])
        else:
            self.answer(404, {"error": "no such page"})

    def search(self, title: str) -> None:
        first_visit = self.count_visit(title) == 1
        time.sleep(1.5 if title in SLOW else 0.05 + fate(title, 100) / 1000)
        if title in TOO_BUSY_AT_FIRST and first_visit:
            self.answer(429, {"error": "too many requests"}, headers={"Retry-After": "1"})
        elif title in BROKEN_AT_FIRST and first_visit:
            self.answer(500, {"error": "the shelf fell over"})
        elif title in PAGE_IS_GONE:
            self.answer(404, {"error": "no longer sold"})
        elif title in MEMBERS_ONLY:
            self.answer(403, {"error": "members only"})
        else:
            self.answer(200, {"offers": [] if title in NOT_SOLD else offers(title)})

    def count_visit(self, title: str) -> int:
        with self.lock:
            self.visits[title] += 1
            return self.visits[title]

    def answer(
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
        """Prints nothing: the progress display has the terminal."""


class QuietServer(ThreadingHTTPServer):
    daemon_threads = True

    def handle_error(self, request: object, client_address: object) -> None:
        """Prints nothing: a client that is stopped leaves in the middle of an answer."""


def offers(title: str) -> list[dict[str, object]]:
    """Returns the same prices at every visit."""
    sellers = [shop for shop in SHOPS if fate(title + shop, 3)] or [SHOPS[0]]
    return [{"shop": shop, "price": (990 + fate(shop + title, 24_000)) / 100} for shop in sellers]


def fate(text: str, below: int) -> int:
    return zlib.crc32(text.encode()) % below


def main() -> None:
    server = QuietServer(("127.0.0.1", 0), Shop)
    # Ctrl-C is for the program that is being shown; the script stops the shop when it has ended.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    print(f"http://127.0.0.1:{server.server_port}", flush=True)
    server.serve_forever()


if __name__ == "__main__":
    main()
