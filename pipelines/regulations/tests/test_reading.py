"""Pages that take their reader's time and memory, or its life."""

from __future__ import annotations

import array
import fcntl
import os
import signal
import termios
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from pathlib import Path

import pytest

from holdfast.errors import ItemError
from holdfast_regulations.content import ContentClass
from holdfast_regulations.reading import FetchedPage, PageReader, read_page
from holdfast_regulations.sources import Source

SOURCE = Source.model_validate(
    {
        "slug": "gazette",
        "name": "Gazette",
        "hosts": ["gazette.example"],
        "verified": date(2026, 1, 1),
        "mode": "sitemap",
        "sitemap": {},
        "canonical": {"identity": [r"/(?P<year>\d{4})/(?P<issue>\d+)/(?P<act>\d+)"]},
    }
)
GOOD = b"<html><head><title>Law</title><meta name=date content=2026-03-01></head><p>Words.</p>"


@pytest.fixture(scope="module")
def reader() -> Iterator[PageReader]:
    reader = PageReader()
    yield reader
    assert reader._process is not None
    reader._process.kill()


def page(content: bytes, content_type: str = "text/html") -> FetchedPage:
    url = "https://gazette.example/2026/12/0345"
    return FetchedPage(url, url, content, content_type, "")


def test_child_reads_what_this_process_reads(reader: PageReader) -> None:
    extracted = reader.read(page(GOOD), SOURCE)
    assert extracted == read_page(page(GOOD), SOURCE)
    assert (extracted.kind, extracted.title) == (ContentClass.HTML, "Law")
    assert str(extracted.published) == "2026-03-01"
    assert extracted.act is not None and extracted.act.eli == "/eli//2026/12/345"


def test_child_that_somebody_kills_costs_no_document(reader: PageReader) -> None:
    """A host that shuts down, or runs out of memory, says nothing about the page."""
    reader.read(page(GOOD), SOURCE)
    child = reader._process
    assert child is not None and child.stdin is not None
    os.kill(child.pid, signal.SIGTERM)
    assert reader.read(page(GOOD), SOURCE).title == "Law"
    assert reader._process is child
    os.kill(child.pid, signal.SIGSTOP)  # so that it dies with the page before it
    with ThreadPoolExecutor(1) as pool:
        reading = pool.submit(reader.read, page(GOOD), SOURCE)
        while not _unread_bytes(child.stdin.fileno()):
            time.sleep(0.001)
        os.kill(child.pid, signal.SIGKILL)
        assert reading.result(30).title == "Law"


def _unread_bytes(pipe: int) -> int:
    count = array.array("i", [0])
    fcntl.ioctl(pipe, termios.FIONREAD, count)
    return count[0]


def test_page_that_takes_too_long_fails_alone(
    reader: PageReader, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It took the parser minutes, in which the worker stood still."""
    reader.read(page(GOOD), SOURCE)
    with monkeypatch.context() as limited:
        limited.setattr(reader, "cpu_seconds", 1)
        with pytest.raises(ItemError, match="time or memory") as failed:
            reader.read(page(b"<html>" + b"<ul><li>" * 200_000), SOURCE)
    assert failed.value.code == "PARSE_ERROR"
    monkeypatch.setenv("HOLDFAST_S3_SECRET_KEY", "s3cret")
    assert reader.read(page(GOOD), SOURCE).title == "Law"
    assert reader._process is not None
    environment = Path(f"/proc/{reader._process.pid}/environ").read_bytes()
    assert b"PATH" in environment and b"s3cret" not in environment
