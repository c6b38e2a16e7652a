"""Writes WARC 1.1 (ISO 28500) from captures, as a stream: one gzip member for each record.

A capture whose body was seen before becomes a `revisit` that names the first one, so that a file
contains every body once. Bodies are stored decoded: headers about the encoding on the wire are kept
under another name, as Common Crawl does it, because they would be untrue of the payload.
"""

from __future__ import annotations

import base64
import uuid
import zlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus

_GZIP = zlib.MAX_WBITS | 16
_PROFILES = "http://netpreserve.org/warc/1.1/revisit"
_ABOUT_WIRE = frozenset({"content-encoding", "transfer-encoding", "content-length"})
_NAMESPACE = uuid.UUID("7c2b4d0a-5f43-4a55-9a3b-0d1f5ac9b9a1")
_CRLF = "\r\n"


@dataclass(frozen=True, slots=True)
class Capture:
    """The fact that a body was seen at a URL at a time.

    `digest` is the SHA-256 of the decoded body."""

    id: str
    url: str
    captured_at: datetime
    status: int
    headers: Sequence[tuple[str, str]]
    digest: bytes
    length: int
    final_url: str = ""


Body = Iterable[bytes]


class WarcWriter:
    """Writes captures, which have to be given in the order of their time."""

    def __init__(self, software: str) -> None:
        self._software = software
        self._first: dict[bytes, Capture] = {}

    def info(self, filename: str, written_at: datetime) -> Iterator[bytes]:
        """Yields the record that a file begins with."""
        fields = f"software: {self._software}\r\nformat: WARC File Format 1.1\r\n".encode()
        headers = {
            "WARC-Type": "warcinfo",
            "WARC-Record-ID": _record_id("info", filename, _date(written_at)),
            "WARC-Date": _date(written_at),
            "WARC-Filename": filename,
            "Content-Type": "application/warc-fields",
        }
        yield from _member(headers, len(fields), [fields])

    def is_revisit(self, capture: Capture) -> bool:
        """Whether the body is in the file already, and need not be fetched from the store."""
        return capture.digest in self._first

    def record(self, capture: Capture, body: Body = ()) -> Iterator[bytes]:
        """Yields a response with its body or, if the body came before, a revisit without it."""
        first = self._first.get(capture.digest)
        if first is None:
            self._first[capture.digest] = capture
            yield from self._response(capture, body)
        else:
            yield from self._revisit(capture, first)

    def _response(self, capture: Capture, body: Body) -> Iterator[bytes]:
        head = _http_head(capture)
        headers = _headers("response", capture)
        yield from _member(
            headers, len(head) + capture.length, _checked(head, body, capture.length)
        )

    def _revisit(self, capture: Capture, first: Capture) -> Iterator[bytes]:
        head = _http_head(capture)
        headers = {
            **_headers("revisit", capture),
            "WARC-Profile": f"{_PROFILES}/{_profile(capture)}",
            "WARC-Refers-To": _record_id("response", first.id),
            "WARC-Refers-To-Target-URI": _target(first),
            "WARC-Refers-To-Date": _date(first.captured_at),
        }
        yield from _member(headers, len(head), [head])


def _headers(kind: str, capture: Capture) -> dict[str, str]:
    return {
        "WARC-Type": kind,
        "WARC-Record-ID": _record_id(kind, capture.id),
        "WARC-Date": _date(capture.captured_at),
        "WARC-Target-URI": _target(capture),
        "WARC-Payload-Digest": f"sha256:{base64.b32encode(capture.digest).decode()}",
        "Content-Type": "application/http; msgtype=response",
    }


def _profile(capture: Capture) -> str:
    """Returns whether we saw the same body, or the server said so."""
    not_modified = capture.status == HTTPStatus.NOT_MODIFIED
    return "server-not-modified" if not_modified else "identical-payload-digest"


def _target(capture: Capture) -> str:
    """Returns where the body came from; the redirects before it have no records of their own."""
    return capture.final_url or capture.url


def _record_id(*names: str) -> str:
    """Returns an id that is the same whenever the same capture is exported."""
    return f"<urn:uuid:{uuid.uuid5(_NAMESPACE, ' '.join(names))}>"


def _date(moment: datetime) -> str:
    return moment.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")


def _http_head(capture: Capture) -> bytes:
    try:
        phrase = HTTPStatus(capture.status).phrase
    except ValueError:
        phrase = "Unknown"
    lines = [f"HTTP/1.1 {capture.status} {phrase}"]
    for name, value in capture.headers:
        shown = f"X-Crawler-{name}" if name.lower() in _ABOUT_WIRE else name
        lines.append(f"{_one_line(shown)}: {_one_line(value)}")
    lines.append(f"Content-Length: {capture.length}")
    return (_CRLF.join(lines) + _CRLF + _CRLF).encode("latin-1", "replace")


def _one_line(text: str) -> str:
    """Returns the text on one line: a line end inside of a header would begin a header of the
    server's choice."""
    return text.replace("\r", " ").replace("\n", " ")


def _checked(head: bytes, body: Body, length: int) -> Iterator[bytes]:
    yield head
    size = 0
    for part in body:
        size += len(part)
        yield part
    if size != length:
        raise ValueError(f"the body has {size} bytes, its capture says {length}")


def _member(headers: Mapping[str, str], length: int, block: Body) -> Iterator[bytes]:
    lines = [
        "WARC/1.1",
        *(f"{name}: {_one_line(value)}" for name, value in headers.items()),
        f"Content-Length: {length}",
    ]
    packer = zlib.compressobj(6, zlib.DEFLATED, _GZIP)
    yield packer.compress((_CRLF.join(lines) + _CRLF + _CRLF).encode())
    for part in block:
        packed = packer.compress(part)
        if packed:
            yield packed
    yield packer.compress(b"\r\n\r\n") + packer.flush()
