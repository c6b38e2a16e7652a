"""What an extension adds to `holdfast up --demo`: servers, settings and sample data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.extension import installed
from holdfast.pipeline import Fetch, Pipeline

if TYPE_CHECKING:
    from holdfast.kernel.jobs.control import Control


@dataclass(frozen=True, slots=True)
class Ask:
    """A GET request to a server of the demo."""

    path: str  # the path below the extension's own: of /weather/stations/7, stations/7
    query: Mapping[str, str]
    now: datetime
    uptime_seconds: float
    url: str = ""  # the extension's own address, as requested: http://HOST:PORT/weather


@dataclass(frozen=True, slots=True)
class Reply:
    body: Any  # text, or a value that is sent as JSON
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] | None = None
    delay_seconds: float = 0.0


NOT_FOUND = Reply({"error": "no such page"}, 404)


#: Starts a job of the pipeline over a CSV file: (name, text, options) -> the job.
Upload = Callable[[str, str, Mapping[str, Any]], Awaitable[int]]


#: Passes a message to the consumer of the extension's first queue, with the files that it refers
#: to, by BUCKET/KEY: the demo has no broker.
TakeMessage = Callable[[bytes, Mapping[str, bytes]], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Sample:
    """What an extension needs to create its sample data."""

    control: Control
    pipeline: Pipeline
    fetch: Fetch
    upload: Upload
    take: TakeMessage


@dataclass(frozen=True, slots=True)
class DemoPart:
    """What an extension adds.

    Requests to http://HOST:PORT/NAME/… go to `answer`. `fill` is called at every start of the demo,
    so it must check what already exists. `files` are settings that name a file: the file's name and
    its text."""

    answer: Callable[[Ask], Reply]
    environment: Callable[[str], Mapping[str, str]]  # address of the servers -> settings
    fill: Callable[[Sample], Awaitable[None]]
    files: Callable[[str], Mapping[str, tuple[str, str]]] = lambda url: {}


def demo_parts() -> dict[str, DemoPart]:
    """Returns the demo parts of all installed extensions."""
    extensions = [extension for extension in installed().values() if extension.demo]
    return {extension.name: extension.load("demo") for extension in extensions}
