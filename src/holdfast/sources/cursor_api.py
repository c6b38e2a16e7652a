"""Walks a JSON API page by page, from a cursor to an explicit end.

source = CursorApi(
    "https://api.example/items", records="data.items", style=NextToken("data.next", "cursor")
)
async for page in source.pages(ctx.http, cursor):
    ...

An end is only what the style takes for one in a successful, well-formed reply. A reply without
its list of records, a has-more flag that is missing, or an empty page where the server's own
count promises more is a DiscoveryError. Errors of the request itself (ItemError, GateWait) pass
through: whether and when a page is asked for again is the engine's business.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import SplitResult, urljoin, urlsplit

import orjson

from holdfast.errors import DiscoveryError, ItemError
from holdfast.model import Page, Record
from holdfast.pipeline import Http

_ABSENT: Any = object()
_LINK = re.compile(r"<([^<>]*)>([^<]*)")
_REL_NEXT = re.compile(r";\s*rel\s*=\s*(\"[^\"]*\"|[^\s;,]+)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Ask:
    """The request for a page."""

    url: str
    params: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Seen:
    """What a reply showed, for a style to judge."""

    url: str  # URL of the request
    body: Any
    headers: Mapping[str, str]
    count: int
    total: int | None

    @property
    def label(self) -> str:
        return _label(self.url)


class Style(Protocol):
    """How an API is read.

    A cursor is plain JSON; None means the beginning or, if it follows a page, the end."""

    def ask(self, start: Ask, cursor: Any) -> Ask: ...

    def following(self, cursor: Any, seen: Seen) -> Any: ...


@dataclass(frozen=True, slots=True)
class NextToken:
    """The reply holds a token at `path`, to be sent back as `parameter`.

    The end: the token is null, empty or absent.
    """

    path: str = "next"
    parameter: str = "cursor"

    def ask(self, start: Ask, cursor: Any) -> Ask:
        if cursor is None:
            return start
        return Ask(start.url, {**start.params, self.parameter: cursor})

    def following(self, cursor: Any, seen: Seen) -> Any:
        token = _at(seen.body, self.path)
        if token is _ABSENT or token is None or token in ("", 0):
            return None
        if not isinstance(token, str | int) or token is True:
            raise DiscoveryError(f"{self.path} of {seen.label} is not a token: {_sample(token)}")
        return token


@dataclass(frozen=True, slots=True)
class NextUrl:
    """The reply holds the next page's URL at `path`. The end: it is null, empty or absent."""

    path: str = "next"

    def ask(self, start: Ask, cursor: Any) -> Ask:
        return start if cursor is None else Ask(_on_host(start.url, cursor), {})

    def following(self, cursor: Any, seen: Seen) -> Any:
        target = _at(seen.body, self.path)
        if target is _ABSENT or target is None or target == "":
            return None
        return _on_host(seen.url, target)


@dataclass(frozen=True, slots=True)
class LinkHeader:
    """The Link header names the next page (rel="next"). The end: it names none."""

    def ask(self, start: Ask, cursor: Any) -> Ask:
        return start if cursor is None else Ask(_on_host(start.url, cursor), {})

    def following(self, cursor: Any, seen: Seen) -> Any:
        target = next_link(seen.headers.get("link") or "")
        return None if target is None else _on_host(seen.url, target)


@dataclass(frozen=True, slots=True)
class PageNumber:
    """Pages are numbered from `first`.

    The end: the flag at `has_more` is false, or this was page `last_page` (the path of the number
    of pages); if neither is given, an empty page."""

    parameter: str = "page"
    first: int = 1
    size_parameter: str | None = None
    size: int | None = None
    has_more: str | None = None
    last_page: str | None = None

    def ask(self, start: Ask, cursor: Any) -> Ask:
        number = self.first if cursor is None else _whole(cursor, "the cursor")
        return _sized(start, {self.parameter: number}, self.size_parameter, self.size)

    def following(self, cursor: Any, seen: Seen) -> Any:
        number = self.first if cursor is None else cursor
        if self.has_more is not None:
            more = _flag(seen, self.has_more)
        elif self.last_page is not None:
            pages = _whole(_at(seen.body, self.last_page), f"{self.last_page} of {seen.label}")
            more = number - self.first + 1 < pages
        else:
            more = seen.count > 0
        return number + 1 if more else None


@dataclass(frozen=True, slots=True)
class Offset:
    """Pages start at a record's position.

    The next position counts the records that were returned, not those that were requested: servers
    lower the size silently. The end: the flag at `has_more` is false, or the source's total is
    reached; if neither is known, an empty page."""

    parameter: str = "offset"
    size_parameter: str | None = "limit"
    size: int | None = 100
    has_more: str | None = None

    def ask(self, start: Ask, cursor: Any) -> Ask:
        position = 0 if cursor is None else _whole(cursor, "the cursor")
        return _sized(start, {self.parameter: position}, self.size_parameter, self.size)

    def following(self, cursor: Any, seen: Seen) -> Any:
        position = (cursor or 0) + seen.count
        if self.has_more is not None:
            more = _flag(seen, self.has_more)
        elif seen.total is not None:
            more = position < seen.total
        else:
            more = seen.count > 0
        if more and not seen.count:
            raise DiscoveryError(
                f"{seen.label} returned nothing at {position} but says that there is more"
            )
        return position if more else None


@dataclass(frozen=True, slots=True)
class CursorApi:
    """A JSON API with a list of records at the path `records` ("" if the reply is the list).

    `total` and `key` are paths too: of the server's own count of all records, and of a record's
    identity. Put credentials into `headers`: they are not part of the fingerprint."""

    url: str
    style: Style
    records: str = "items"
    params: Mapping[str, Any] = field(default_factory=dict)
    headers: Mapping[str, str] = field(default_factory=dict)
    total: str | None = None
    key: str | None = None
    robots: bool | None = None  # None: as the client is configured

    def fingerprint(self) -> str:
        """Identifies the query: a cursor of another query must not be used."""
        query = {
            "url": self.url,
            "params": {name: str(value) for name, value in self.params.items()},
            "records": self.records,
            "style": repr(self.style),
        }
        return hashlib.sha256(orjson.dumps(query, option=orjson.OPT_SORT_KEYS)).hexdigest()

    async def pages(self, http: Http, cursor: Any = None) -> AsyncIterator[Page]:
        """Yields pages from the cursor (None: the beginning) to the end that the server
        declares."""
        while True:
            page = await self._page(http, cursor)
            yield page
            if page.end:
                return
            cursor = page.next_cursor

    async def _page(self, http: Http, cursor: Any) -> Page:
        ask = self.style.ask(Ask(self.url, self.params), cursor)
        reply = await http.get(
            ask.url,
            params=ask.params,
            headers=self.headers,
            robots=self.robots,
            follow_off_host=False,
        )
        body = reply.json()
        records = self._records(reply, body)
        total = self._total(body)
        following = self.style.following(
            cursor, Seen(reply.url, body, reply.headers, len(records), total)
        )
        if following is not None and following == cursor:
            raise DiscoveryError(
                f"{_label(ask.url)} returned the same cursor again: {_sample(cursor)}"
            )
        return Page(records, following, end=following is None, expected_count=total)

    def _records(self, reply: Any, body: Any) -> list[Record]:
        found = _at(body, self.records)
        if isinstance(found, list):
            return [self._record(entry) for entry in found]
        if reply.retry_after is not None:
            raise ItemError(
                "RATE_LIMITED", f"{_label(self.url)}: {reply.sample}", retry_after=reply.retry_after
            )
        where = f"at {self.records!r}" if self.records else "as a whole"
        raise DiscoveryError(f"{_label(self.url)}: no list of records {where}: {reply.sample}")

    def _record(self, entry: Any) -> Record:
        row = entry if isinstance(entry, dict) else {"value": entry}
        identity = _at(row, self.key) if self.key else _ABSENT
        return Record(row, None if identity in (_ABSENT, None) else str(identity))

    def _total(self, body: Any) -> int | None:
        """Returns the server's count.

        Null is not a count: some servers give up counting when it takes too long."""
        found = _at(body, self.total) if self.total else None
        return None if found is None else _whole(found, f"{self.total} of {_label(self.url)}")


def next_link(header: str) -> str | None:
    """Returns the target of rel="next" in a Link header."""
    for target, attributes in _LINK.findall(header):
        relation = _REL_NEXT.search(attributes)
        if relation and "next" in relation[1].strip('"').lower().split():
            return str(target)
    return None


def _at(value: Any, path: str) -> Any:
    """Returns the value at a dotted path; _ABSENT if the path leads nowhere."""
    for name in path.split(".") if path else ():
        if not isinstance(value, dict) or name not in value:
            return _ABSENT
        value = value[name]
    return value


def _on_host(page: str, target: Any) -> str:
    """Returns the absolute URL of a next page, which has to be on the same host.

    Servers behind a proxy may give http URLs of their own pages; a walk over https stays there."""
    if not isinstance(target, str):
        raise DiscoveryError(f"the next page of {_label(page)} is not a URL: {_sample(target)}")
    ours = urlsplit(page)
    try:
        absolute = urlsplit(urljoin(page, target))
        if ours.scheme == "https" and absolute.scheme == "http":
            absolute = absolute._replace(scheme="https")
        same = absolute.scheme in ("http", "https") and _host(absolute) == _host(ours)
    except ValueError as error:
        raise DiscoveryError(f"the next page of {_label(page)} is not a URL: {error}") from error
    if not same:
        raise DiscoveryError(
            f"the next page of {_label(page)} is on another host: {_sample(_label(target))}"
        )
    return absolute.geturl()


def _host(url: SplitResult) -> tuple[str | None, int | None]:
    default = 443 if url.scheme == "https" else 80
    return url.hostname, None if url.port == default else url.port


def _label(url: str) -> str:
    """Returns the URL without its query, which may contain a key."""
    return url.partition("?")[0]


def _sized(start: Ask, position: dict[str, Any], parameter: str | None, size: int | None) -> Ask:
    asked = {parameter: size} if parameter and size else {}
    return Ask(start.url, {**start.params, **asked, **position})


def _flag(seen: Seen, path: str) -> bool:
    found = _at(seen.body, path)
    if not isinstance(found, bool):
        raise DiscoveryError(f"{seen.label} does not say at {path!r} whether there is more")
    return found


def _whole(value: Any, what: str) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        shown = "absent" if value is _ABSENT else _sample(value)
        raise DiscoveryError(f"{what} is not a whole number: {shown}")
    return value


def _sample(value: Any) -> str:
    return repr(value)[:200]
