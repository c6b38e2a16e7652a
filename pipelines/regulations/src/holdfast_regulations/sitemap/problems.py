"""Defines what can be wrong with a sitemap, and the entries a good one has."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple

from holdfast.errors import DiscoveryError


class Entry(NamedTuple):
    """One `url`, `sitemap`, `item` or `entry`, with what it says; empty values were not given.

    `modified` is a hint and never the publication date: only feeds give that."""

    url: str
    modified: str = ""
    published: str = ""


class Kind(StrEnum):
    INDEX = "index"
    URLSET = "urlset"
    FEED = "feed"
    TEXT = "text"


class Fault(StrEnum):
    HTML = "HTML"
    EMPTY = "EMPTY"
    MALFORMED = "MALFORMED"
    NOT_A_SITEMAP = "NOT_A_SITEMAP"
    DECLARES_ENTITIES = "DECLARES_ENTITIES"
    DAMAGED_GZIP = "DAMAGED_GZIP"
    TRUNCATED_GZIP = "TRUNCATED_GZIP"
    TOO_LARGE = "TOO_LARGE"
    TOO_MANY_ENTRIES = "TOO_MANY_ENTRIES"


class SitemapError(DiscoveryError):
    """Raised for a sitemap that cannot be read to its end; entries returned before it are valid."""

    def __init__(self, fault: Fault, detail: str) -> None:
        super().__init__(f"{fault}: {detail}")
        self.fault = fault
        self.detail = detail
