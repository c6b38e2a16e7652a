"""WARC files, read by warcio as any archive would read them."""

from __future__ import annotations

import hashlib
import io
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from warcio.archiveiterator import ArchiveIterator
from warcio.checker import Checker

from holdfast_regulations.warc import Capture, WarcWriter

AT = datetime(2026, 1, 11, 5, 0, 0, 123456, tzinfo=UTC)
A, B = b"<html>A \xc4\x8d</html>", b"<html>B</html>" * 10_000


def capture(number: int, body: bytes, url: str = "https://a.hr/akt") -> Capture:
    return Capture(
        id=str(number),
        url=url,
        captured_at=AT + timedelta(days=number),
        status=200,
        headers=[
            ("Content-Type", "text/html"),
            ("Content-Encoding", "gzip"),
            ("Content-Length", "7"),
            ("Transfer-Encoding", "chunked"),
            ("X-Evil", "a\r\nWARC-Type: x"),
        ],
        digest=hashlib.sha256(body).digest(),
        length=len(body),
    )


def written(*captures: tuple[Capture, bytes]) -> bytes:
    writer = WarcWriter("holdfast 0")
    parts = list(writer.info("a.warc.gz", AT))
    for shot, body in captures:
        # A body that is in the file already is not asked for again.
        chunks = (
            []
            if writer.is_revisit(shot)
            else [body[i : i + 7000] for i in range(0, len(body), 7000)]
        )
        parts += writer.record(shot, chunks)
    return b"".join(parts)


def records(data: bytes) -> list[dict[str, Any]]:
    found = []
    for record in ArchiveIterator(io.BytesIO(data), check_digests="raise"):
        body = record.content_stream().read()
        found.append(
            {
                "type": record.rec_type,
                "warc": dict(record.rec_headers.headers),
                "http": dict(record.http_headers.headers) if record.http_headers else {},
                "status": record.http_headers.get_statuscode() if record.http_headers else None,
                "body": body,
                "passed": record.digest_checker.passed,
            }
        )
    return found


def test_content_that_changes_and_returns_is_two_responses_and_a_revisit() -> None:
    first, second, third = capture(0, A), capture(1, B), capture(2, A)
    info, one, two, three = records(written((first, A), (second, B), (third, A)))
    assert info["type"] == "warcinfo"
    assert [one["type"], two["type"], three["type"]] == ["response", "response", "revisit"]
    assert (one["body"], two["body"], three["body"]) == (A, B, b"")
    assert one["passed"] and two["passed"]
    assert three["warc"]["WARC-Profile"].endswith("/1.1/revisit/identical-payload-digest")
    assert three["warc"]["WARC-Refers-To"] == one["warc"]["WARC-Record-ID"]
    assert three["warc"]["WARC-Refers-To-Target-URI"] == "https://a.hr/akt"
    assert three["warc"]["WARC-Refers-To-Date"] == one["warc"]["WARC-Date"]
    assert three["warc"]["WARC-Payload-Digest"] == one["warc"]["WARC-Payload-Digest"]
    assert one["warc"]["WARC-Date"] == "2026-01-11T05:00:00.123456Z"
    assert three["status"] == "200"


def test_headers_about_the_wire_do_not_lie_about_the_payload() -> None:
    _, response = records(written((capture(0, A), A)))
    assert response["http"]["Content-Length"] == str(len(A))
    assert response["http"]["X-Crawler-Content-Encoding"] == "gzip"
    assert "Content-Encoding" not in response["http"]
    assert "Transfer-Encoding" not in response["http"]
    assert response["http"]["X-Evil"] == "a  WARC-Type: x"
    assert response["warc"]["WARC-Type"] == "response"


def test_export_of_the_same_captures_is_the_same_file() -> None:
    assert written((capture(0, A), A)) == written((capture(0, A), A))


def test_body_that_does_not_fit_its_capture_stops_the_export() -> None:
    writer = WarcWriter("holdfast 0")
    with pytest.raises(ValueError, match="its capture says"):
        list(writer.record(capture(0, A), [A[:-1]]))


def test_standard_checker_accepts_the_file(tmp_path: Any, capsys: Any) -> None:
    path = tmp_path / "a.warc.gz"
    path.write_bytes(written((capture(0, A), A), (capture(1, B), B), (capture(2, A), A)))

    class Arguments:
        inputs = (str(path),)
        verbose = True

    checker = Checker(Arguments())
    checker.process_all()
    assert checker.exit_value == 0
    assert "digest failed" not in capsys.readouterr().out
