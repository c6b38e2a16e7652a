"""What an extension adds to `holdfast up --demo`: upstreams, settings and sample data."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from holdfast.extension import installed
from holdfast.pipeline import Pipeline

if TYPE_CHECKING:
    from holdfast.engine.control import Control


@dataclass(frozen=True, slots=True)
class Ask:
    """A GET request to an upstream of the demo."""

    path: str  # below the extension's own: of /weather/stations/7, stations/7
    query: Mapping[str, str]
    now: datetime
    uptime_seconds: float


@dataclass(frozen=True, slots=True)
class Reply:
    body: Any  # text, or what becomes JSON
    status: int = 200
    content_type: str = "application/json"
    headers: Mapping[str, str] | None = None
    delay_seconds: float = 0.0


NOT_FOUND = Reply({"error": "no such page"}, 404)


@dataclass(frozen=True, slots=True)
class Sample:
    """What an extension makes its sample data with."""

    control: Control
    pipeline: Pipeline
    fetch: Callable[..., Awaitable[Sequence[Any]]]  # reads with a query of the extension


@dataclass(frozen=True, slots=True)
class DemoPart:
    """The upstreams are at http://HOST:PORT/NAME; whatever is asked for below it goes to
    `answer`. `fill` is called at every start of the demo, so it looks what is there already."""

    answer: Callable[[Ask], Reply]
    environment: Callable[[str], Mapping[str, str]]  # address of the upstreams -> settings
    fill: Callable[[Sample], Awaitable[None]]


def demo_parts() -> dict[str, DemoPart]:
    """Those of all installed extensions."""
    extensions = [extension for extension in installed().values() if extension.demo]
    return {extension.name: extension.load("demo") for extension in extensions}
