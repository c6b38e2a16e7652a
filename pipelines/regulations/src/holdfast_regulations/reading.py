"""Reads what was fetched in a child process with limits: anyone can publish pages and PDFs, and for
some of a few hundred kilobytes the libraries that open them take quadratic time, or any amount of
memory. They also hold the interpreter, so a thread would stop the whole worker."""

from __future__ import annotations

import pickle
import signal
import struct
import subprocess
import sys
import threading
import weakref
from dataclasses import dataclass
from datetime import date
from typing import IO, Any

import orjson

from holdfast.child_environment import child_environment
from holdfast.errors import ItemError
from holdfast_regulations.canonical import Identity
from holdfast_regulations.content import (
    ContentClass,
    check_place,
    check_words,
    content_class,
)
from holdfast_regulations.dates import Period
from holdfast_regulations.extract import Extract, extract
from holdfast_regulations.sources import Source

_CHILD = "holdfast_regulations.reading_child"
_CPU_SECONDS = 60  # for one page
_CLOCK_SECONDS = 180.0  # in case the child waits for something
_SIZE = struct.Struct(">I")


@dataclass(frozen=True, slots=True)
class FetchedPage:
    url: str
    final_url: str
    content: bytes
    content_type: str
    charset: str


def read_page(page: FetchedPage, source: Source) -> Extract:
    """Reads a page in this process. Raises ItemError for what is not evidence of the URL."""
    kind = content_class(page.content, page.content_type)
    check_place(page.url, page.final_url, kind, source.missing)
    extracted = extract(page.content, kind, page.url, source, page.charset)
    check_words(extracted.title, extracted.text or "", source.missing)
    return extracted


def extract_form(extracted: Extract) -> dict[str, Any]:
    period = extracted.published
    return {
        "kind": extracted.kind,
        "title": extracted.title,
        "text": extracted.text,
        "published": None if period is None else (str(period.first), str(period.last)),
        "act": None if extracted.act is None else list(extracted.act),
        "text_hash": extracted.text_hash,
    }


def extract_from(form: dict[str, Any]) -> Extract:
    days, act = form["published"], form["act"]
    return Extract(
        ContentClass(form["kind"]),
        form["title"],
        form["text"],
        None if days is None else Period(*map(date.fromisoformat, days)),
        None if act is None else Identity(*act),
        form["text_hash"],
    )


class PageReader:
    """Reads one page at a time in a child, and starts another one if it dies. Blocking."""

    def __init__(self, cpu_seconds: int = _CPU_SECONDS) -> None:
        self.cpu_seconds = cpu_seconds
        self._lock = threading.Lock()
        self._process: subprocess.Popen[bytes] | None = None
        self._ran_out = False  # whether the last child died of a limit

    def read(self, page: FetchedPage, source: Source) -> Extract:
        request = pickle.dumps((page, source, self.cpu_seconds))
        with self._lock:
            answer = self._exchange(request)
            if answer is None and not self._ran_out:  # someone else ended the child
                answer = self._exchange(request)
        if answer is None:
            raise ItemError(
                "PARSE_ERROR", "reading it takes more time or memory than a document may need"
            )
        if "code" in answer:
            raise ItemError(answer["code"], answer["message"])
        return extract_from(answer)

    def _exchange(self, request: bytes) -> dict[str, Any] | None:
        """Sends a request and returns the answer; None if the child died from it."""
        process, late = self._started(), threading.Event()

        def end() -> None:
            late.set()
            process.kill()

        timer = threading.Timer(_CLOCK_SECONDS, end)
        timer.start()
        try:
            assert process.stdin is not None and process.stdout is not None
            write_frame(process.stdin, request)
            frame = read_frame(process.stdout)
        except OSError:
            frame = None
        finally:
            timer.cancel()
        if frame is None:
            _stop(process)
            self._process = None
            self._ran_out = late.is_set() or process.returncode == -signal.SIGXCPU
            return None
        answer: dict[str, Any] = orjson.loads(frame)
        return answer

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._process.poll() is not None:
            self._process = subprocess.Popen(
                [sys.executable, "-m", _CHILD],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=child_environment(),
                # Ctrl-C is for this process to handle; it would kill the child first.
                start_new_session=True,
            )
            weakref.finalize(self, _stop, self._process)
        return self._process


def write_frame(pipe: IO[bytes], content: bytes) -> None:
    pipe.write(_SIZE.pack(len(content)))
    pipe.write(content)
    pipe.flush()


def read_frame(pipe: IO[bytes]) -> bytes | None:
    """Reads a frame; returns None at the end."""
    head = pipe.read(_SIZE.size)
    if len(head) < _SIZE.size:
        return None
    content = pipe.read(_SIZE.unpack(head)[0])
    return content if len(content) == _SIZE.unpack(head)[0] else None


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            try:
                pipe.close()
            except OSError:  # data that was not sent yet
                continue


#: The reader of this process: a child takes a second to start.
PAGES = PageReader()
