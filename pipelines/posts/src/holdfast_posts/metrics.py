"""Metrics of posts.

Labels are bounded: all unknown platforms share one label value, and so do all unknown codes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from holdfast_posts.crawl_codes import CRAWL_CODES, label_of

if TYPE_CHECKING:
    from holdfast.observe.metrics import Declaring

PLATFORMS = frozenset({"tiktok", "youtube", "facebook", "instagram"})
_FETCH_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
_BATCH_BOUNDS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0)


def platform_label(platform: str | None) -> str:
    return platform if platform in PLATFORMS else "other"


class PostsMetrics:
    def __init__(self, declare: Declaring) -> None:
        self.events = declare.counter(
            "events",
            "Messages by format and what became of them: taken, repeated, parked, waiting, dead.",
            "format",
            "outcome",
        )
        self.items = declare.counter(
            "items",
            "Items by platform and status: success, error (of the crawler), failed (here).",
            "platform",
            "status",
        )
        self.errors = declare.counter(
            "errors", "Errors that crawlers reported, by code and category.", "code", "category"
        )
        self.warnings = declare.counter(
            "warnings",
            "Oddities that were processed: size, count, envelope, project, item.",
            "kind",
        )
        self.differences = declare.counter(
            "differences", "Fields that differed in shadow mode.", "field"
        )
        self.fetch_seconds = declare.histogram(
            "batch_fetch_seconds", "Time to fetch and read a batch.", _FETCH_BOUNDS, "platform"
        )
        self.batch_seconds = declare.histogram(
            "batch_seconds",
            "Time from the event (or its arrival, if it has no time) to the last outcome of its"
            " batch.",
            _BATCH_BOUNDS,
            "platform",
        )

    def error(self, code: str, category: str) -> None:
        known = category if code in CRAWL_CODES else "generic"
        self.errors.labels(label_of(code), known).inc()
