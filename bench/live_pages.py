"""Holds live pages open: `python -m bench.live_pages PORT TOKEN COUNT`, until it is ended.

It reads what arrives and discards it, all in one loop, so that it costs the machine as little as
possible; in the browsers that it stands for, that would happen elsewhere. It writes a line when all
pages have had their first event, and one with the count of bytes at the end.
"""

from __future__ import annotations

import selectors
import signal
import socket
import sys

BLOCK_BYTES = 1 << 16


def main(port: int, token: str, count: int) -> None:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    pages = selectors.DefaultSelector()
    for _ in range(count):
        pages.register(_opened(port, token), selectors.EVENT_READ)
    live: set[int] = set()
    while True:
        for key, _ in pages.select():
            data = key.fileobj.recv(BLOCK_BYTES)  # type: ignore[union-attr]
            if not data:
                sys.exit("the server closed a live page")
            if len(live) < count and b"event: jobs" in data:
                live.add(key.fd)
                if len(live) == count:
                    print("all pages are live", flush=True)


def _opened(port: int, token: str) -> socket.socket:
    page = socket.create_connection(("127.0.0.1", port))
    page.sendall(
        f"GET /api/events HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\n"
        f"Authorization: Bearer {token}\r\n\r\n".encode()
    )
    return page


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
