"""Decides which sitemap of an index is read next. Pure: it is given entries and answers with
children.

The order depends on the URLs alone, and a cursor names the last sitemap that was read. A sitemap
that appears in the index later is therefore read in its place or, if the walk has passed that
place, by the next walk; none is read twice because the index changed.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right, insort
from collections import Counter
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from holdfast.model import Json
from holdfast_regulations.admission import Admission
from holdfast_regulations.dates import DateRange, Fit, date_in_url
from holdfast_regulations.sitemap.problems import Entry
from holdfast_regulations.sources import SitemapRules

_NUMBER = re.compile(r"\d+")
_LONGEST_NUMBER = 12


class Child(NamedTuple):
    """A sitemap to read. `modified` is what its index says: a hint."""

    url: str
    depth: int = 0
    modified: str = ""


class LeftOut(StrEnum):
    REFUSED = "REFUSED"  # another host, a private address, not http
    NOT_WANTED = "NOT_WANTED"  # does not match `children`
    REPEATED = "REPEATED"  # in the index twice, or a loop
    TOO_DEEP = "TOO_DEEP"
    OUT_OF_RANGE = "OUT_OF_RANGE"  # of a year that the run does not want


class Frontier:
    def __init__(
        self, rules: SitemapRules, admission: Admission, wanted: DateRange | None = None
    ) -> None:
        self._rules = rules
        self._admission = admission
        self._wanted = wanted or DateRange()
        self._by_url: dict[str, Child] = {}
        self._levels: list[list[tuple[str, str]]] = [[] for _ in range(rules.max_depth + 1)]
        self.left_out: Counter[LeftOut] = Counter()

    def __len__(self) -> int:
        return len(self._by_url)

    def start(self, urls: Iterable[str]) -> list[Child]:
        """Returns the roots: the source's own URL, or the Sitemap lines of its robots.txt."""
        return [child for url in urls if (child := self._take(Child(url), root=True))]

    def add(self, parent: Child, entries: Iterable[Entry]) -> list[Child]:
        """Returns the sitemaps that this index is the first to list."""
        children = (Child(entry.url, parent.depth + 1, entry.modified) for entry in entries)
        return [child for child in map(self._take, children) if child is not None]

    def following(self, cursor: Json | None) -> Child | None:
        """Returns the first sitemap after the one that the cursor names; None at the end."""
        for place in self._ahead(cursor):
            return self._by_url[place[1]]
        return None

    def remaining(self, cursor: Json | None) -> int:
        return sum(1 for _ in self._ahead(cursor))

    def _ahead(self, cursor: Json | None) -> Iterator[tuple[str, str]]:
        """Yields all places after the cursor, level by level."""
        depth = 0 if cursor is None else int(cursor["depth"])
        for number, level in enumerate(self._levels[depth:], depth):
            start, stop = 0, len(level)
            if cursor is not None and number == depth:
                here = _place(cursor["url"])
                if self._rules.newest_first:
                    stop = bisect_left(level, here)
                else:
                    start = bisect_right(level, here)
            places = range(start, stop)
            for index in reversed(places) if self._rules.newest_first else places:
                yield level[index]

    def _take(self, child: Child, *, root: bool = False) -> Child | None:
        reason = self._reason_against(child, root)
        if reason is not None:
            self.left_out[reason] += 1
            return None
        self._by_url[child.url] = child
        insort(self._levels[child.depth], _place(child.url))
        return child

    def _reason_against(self, child: Child, root: bool) -> LeftOut | None:
        if self._admission.refusal_of_place(child.url) is not None:
            return LeftOut.REFUSED
        if child.url in self._by_url:
            return LeftOut.REPEATED
        if child.depth > self._rules.max_depth:
            return LeftOut.TOO_DEEP
        pattern = self._rules.children
        if root or pattern is None:
            return None
        if pattern.search(child.url) is None:
            return LeftOut.NOT_WANTED
        if "year" in pattern.groupindex:
            fit = self._wanted.fit(date_in_url(child.url, [pattern]))
            return LeftOut.OUT_OF_RANGE if fit is Fit.OUTSIDE else None
        return None


def _place(url: str) -> tuple[str, str]:
    """Returns the sort key of a URL: numbers count as numbers, so issue 100 comes after issue
    99."""
    return _NUMBER.sub(lambda number: number[0].zfill(_LONGEST_NUMBER), url), url


def cursor_of(child: Child) -> Json:
    return {"depth": child.depth, "url": child.url}


def is_unchanged(child: Child, modified_when_read: str | None) -> bool:
    """Whether the index says that nothing happened since the sitemap was read.

    If it says nothing, the sitemap is requested, with its ETag."""
    return bool(child.modified) and child.modified == modified_when_read
