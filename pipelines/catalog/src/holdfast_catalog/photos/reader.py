"""Asks the child process what is on a photograph; starts another if it died or hangs."""

from __future__ import annotations

import asyncio
import base64
import sys
from asyncio.subprocess import PIPE, Process
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import orjson

from holdfast.child_environment import child_environment
from holdfast.errors import Failed
from holdfast_catalog.photos import NO_MEMORY

_CHILD = "holdfast_catalog.photos.child"
#: Makes memory that an image took return after reading; numpy needs no threads here.
LEAN = {
    "MALLOC_ARENA_MAX": "1",
    "MALLOC_MMAP_THRESHOLD_": "131072",
    "MALLOC_TRIM_THRESHOLD_": "131072",
    "OPENBLAS_NUM_THREADS": "1",
}
_LONGEST_LINE = 8 * 1024 * 1024
_CRASH = {"code": "CRASHED", "error": "the process that reads images crashed on it twice"}
#: Failures after which the child is restarted, and the error code the image gets if it happens
#: twice.
_ENDS = {"CRASHED": "MEDIA_FORMAT_ERROR", NO_MEMORY: "MEDIA_TOO_LARGE"}


@dataclass(frozen=True, slots=True)
class Photo:
    """What is on a photograph. `hash` is the same for the same photograph at another size."""

    width: int
    height: int
    hash: str
    thumbnail: bytes
    barcodes: tuple[str, ...]


class PhotoReader:
    """Reads photographs with one child for each event loop that uses it, one image at a time."""

    def __init__(self, megabytes: int, most_pixels: int, seconds: float) -> None:
        self._arguments = (str(megabytes), str(most_pixels))
        self._seconds = seconds
        self._process: Process | None = None
        self._lock: asyncio.Lock | None = None
        self._loop: asyncio.AbstractEventLoop | None = None

    @property
    def child_id(self) -> int | None:
        return self._process.pid if self._process is not None else None

    async def look(self, path: Path) -> Photo:
        answer = await self._ask(path, text=False)
        return Photo(
            answer["width"],
            answer["height"],
            answer["hash"],
            base64.b64decode(answer["thumbnail"]),
            tuple(answer["barcodes"]),
        )

    async def text(self, path: Path) -> list[str]:
        """Returns the lines that can be read on it, the largest first."""
        lines: list[str] = (await self._ask(path, text=True))["text"]
        return lines

    async def close(self) -> None:
        if self._process is not None:
            with suppress(ProcessLookupError):
                self._process.kill()
            await self._process.wait()
            self._process = None

    async def _ask(self, path: Path, text: bool) -> dict[str, Any]:
        if find_spec("PIL") is None or find_spec("zxingcpp") is None:
            raise Failed("MEDIA_FORMAT_ERROR", "photographs need holdfast-catalog[photos]")
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self._loop, self._lock, self._process = loop, asyncio.Lock(), None
        assert self._lock is not None
        request = {"path": str(path), "text": text}
        async with self._lock:
            answer = await self._exchange(request)
            if answer.get("code") in _ENDS:
                # The image need not be the reason: a host that is short of memory kills, too, and
                # earlier images may have left too little of it.
                await self.close()
                answer = await self._exchange(request)
            if answer.get("code") in _ENDS:
                await self.close()
        if "error" in answer:
            code = _ENDS.get(answer["code"], answer["code"])
            raise Failed(code, f"{path.name}: {answer['error']}")
        return answer

    async def _exchange(self, request: dict[str, Any]) -> dict[str, Any]:
        process = await self._started()
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(orjson.dumps(request) + b"\n")
            async with asyncio.timeout(self._seconds):
                await process.stdin.drain()
                line = await process.stdout.readline()
        except BaseException as error:
            # It may still answer this request: the next one must not get that answer.
            await self.close()
            if isinstance(error, TimeoutError):
                return {"code": "MEDIA_FORMAT_ERROR", "error": "it takes too long to read"}
            if isinstance(error, OSError):
                return dict(_CRASH)
            raise
        if not line:
            return dict(_CRASH)
        answer: dict[str, Any] = orjson.loads(line)
        return answer

    async def _started(self) -> Process:
        if self._process is None or self._process.returncode is not None:
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-m",
                _CHILD,
                *self._arguments,
                stdin=PIPE,
                stdout=PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                limit=_LONGEST_LINE,
                env=child_environment(**LEAN),
            )
        return self._process
