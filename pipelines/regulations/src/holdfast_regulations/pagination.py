"""Reads a paginated listing: from a page, the URLs on it and where the next page is.

Completion needs proof. A listing ends in the way that its source names under `stop`; a page without
links, a repeated page or a missing one is otherwise an error, and so are links that were never
matched at all: a changed layout must not look like an empty site.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

from holdfast.errors import DiscoveryError
from holdfast.model import Json
from holdfast.sources.cursor_api import next_link
from holdfast_regulations.admission import Admission
from holdfast_regulations.listing import Fetched, Found, ListingPage, Walked
from holdfast_regulations.sources import PaginationRules

_REMEMBERED_PAGES = 16
_DIGEST_HEX_DIGITS = 16
_NEXT_WORDS = frozenset({"dalje", "sljedeća", "sljedeće", "sljedeca", "»", "→", "›", "next", ">"})


@dataclass(frozen=True, slots=True)
class _Position:
    """The cursor. `recent` contains (page, digest of its URLs), to notice pages that come again."""

    page: int
    url: str
    walked: int = 0
    matched: int = 0
    empty: int = 0
    first_digest: str | None = None
    recent: tuple[tuple[int, str], ...] = ()

    def before(self) -> list[tuple[int, str]]:
        """Returns earlier pages, without this one itself, which a resumed walk reads for the second
        time."""
        return [pair for pair in self.recent if pair[0] < self.page]

    def as_json(self) -> Json:
        return {
            "page": self.page,
            "url": self.url,
            "walked": self.walked,
            "matched": self.matched,
            "empty": self.empty,
            "first_digest": self.first_digest,
            "recent": [list(pair) for pair in self.recent],
        }


def _position(cursor: Json) -> _Position:
    recent = tuple((int(page), str(digest)) for page, digest in cursor["recent"])
    return _Position(**{**cursor, "recent": recent})


class PaginationWalk:
    def __init__(self, rules: PaginationRules, admission: Admission) -> None:
        self._rules = rules
        self._admission = admission

    def start(self) -> Json:
        first = self._rules.first
        url = self._rules.url if self._rules.by_link else self._page_url(first)
        return _Position(first, url).as_json()

    def request(self, cursor: Json) -> str:
        """Returns the URL of the page that the cursor names."""
        return str(cursor["url"])

    def resumed(self, cursor: Json) -> Json:
        """Returns the cursor one page back: entries may have moved to the next page in the
        meantime."""
        page = int(cursor["page"]) - self._rules.step
        if self._rules.by_link or page < self._rules.first:
            return cursor
        return {**cursor, "page": page, "url": self._page_url(page), "empty": 0}

    def read(self, cursor: Json, fetched: Fetched) -> Walked:
        """Reads a page; raises DiscoveryError if continuing would lose or repeat something for
        ever."""
        at = _position(cursor)
        if fetched.is_missing and at.matched and "not-found" in self._rules.stops:
            return Walked([], None, end=True, notes={"stop": "not-found", "page": at.page})
        fetched.check()
        page = ListingPage(fetched)
        found = page.found(self._rules.links, self._admission, self._rules.date)
        if not found:
            return self._empty(at, page, fetched)
        digest = _digest(found)
        if self._is_repeated(at, digest):
            return Walked([], None, end=True, notes={"stop": "repeat", "page": at.page})
        return self._onward(
            at,
            page,
            fetched,
            found,
            matched=at.matched + len(found),
            empty=0,
            first_digest=at.first_digest or digest,
            recent=tuple([*at.before(), (at.page, digest)][-_REMEMBERED_PAGES:]),
        )

    def _empty(self, at: _Position, page: ListingPage, fetched: Fetched) -> Walked:
        empty = at.empty + 1
        if empty < self._rules.empty_pages and not self._rules.by_link:
            return self._onward(at, page, fetched, [], empty=empty)
        if at.matched and "empty" in self._rules.stops:
            return Walked([], None, end=True, notes={"stop": "empty", "page": at.page})
        raise DiscoveryError(
            f"{self._rules.links!r} matched no wanted link on {empty} page(s) in a row, "
            f"last {fetched.url}; has the site's layout changed?"
        )

    def _is_repeated(self, at: _Position, digest: str) -> bool:
        """Whether the page is repeated at an end; one that came before in any other way is an
        error."""
        before = at.before()
        earlier = [page for page, other in before if other == digest]
        if digest == at.first_digest and at.page > self._rules.first:
            earlier.append(self._rules.first)
        if not earlier:
            return False
        previous = before[-1][0] if before else self._rules.first
        if "repeat" in self._rules.stops and earlier[-1] in (previous, self._rules.first):
            return True
        raise DiscoveryError(
            f"page {at.page} has the links of page {earlier[-1]}: the listing is endless ({at.url})"
        )

    def _onward(
        self,
        at: _Position,
        page: ListingPage,
        fetched: Fetched,
        found: list[Found],
        **changed: Any,
    ) -> Walked:
        following = self._next_url(at, page, fetched)
        if following is None:
            return self._without_next(at, found, fetched)
        if at.walked + 1 >= self._rules.max_pages:
            raise DiscoveryError(f"no end after {self._rules.max_pages} pages ({fetched.url})")
        number = at.page + self._rules.step
        kept = {"matched": at.matched, "first_digest": at.first_digest, "recent": at.recent}
        onward = _Position(number, following, at.walked + 1, **{**kept, **changed})
        return Walked(found, onward.as_json())

    def _without_next(self, at: _Position, found: list[Found], fetched: Fetched) -> Walked:
        if "no-next" not in self._rules.stops:
            raise DiscoveryError(f"{fetched.url} has no link to a next page")
        if not found and not at.matched:
            raise DiscoveryError(f"{self._rules.links!r} matched no wanted link ({fetched.url})")
        return Walked(found, None, end=True, notes={"stop": "no-next", "page": at.page})

    def _next_url(self, at: _Position, page: ListingPage, fetched: Fetched) -> str | None:
        if not self._rules.by_link:
            if "no-next" in self._rules.stops and _next_link(page, fetched, self._rules) is None:
                return None
            return self._page_url(at.page + self._rules.step)
        following = _next_link(page, fetched, self._rules)
        if following is None:
            return None
        if self._admission.refusal_of_place(following) is not None:
            raise DiscoveryError(f"{fetched.url} continues on another host: {following}")
        if following in (fetched.url, fetched.place):
            raise DiscoveryError(f"{fetched.url} names itself as the next page")
        return following

    def _page_url(self, number: int) -> str:
        if self._rules.template is not None:
            return self._rules.template.format(page=number)
        assert self._rules.parameter is not None
        parts = urlsplit(self._rules.url)
        pairs = parse_qsl(parts.query, keep_blank_values=True)
        query = [pair for pair in pairs if pair[0] != self._rules.parameter]
        query.append((self._rules.parameter, str(number)))
        return urlunsplit(parts._replace(query=urlencode(query)))


def _next_link(page: ListingPage, fetched: Fetched, rules: PaginationRules) -> str | None:
    if rules.next_link is not None:
        return page.first_link(rules.next_link)
    target = next_link(fetched.link_header)
    if target is not None:
        return page.absolute(target)
    by_rel = page.first_link('link[rel~="next"], a[rel~="next"]')
    if by_rel is not None:
        return by_rel
    for node, url in page.links("a[href]"):
        words = (
            node.text().strip(),
            node.attributes.get("title"),
            node.attributes.get("aria-label"),
        )
        if any(word and word.strip().lower() in _NEXT_WORDS for word in words):
            return url
    return None


def _digest(found: list[Found]) -> str:
    urls = "\n".join(sorted(entry.url for entry in found))
    return hashlib.sha256(urls.encode()).hexdigest()[:_DIGEST_HEX_DIGITS]
