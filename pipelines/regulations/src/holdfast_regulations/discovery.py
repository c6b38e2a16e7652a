"""Yields the pages of a source for `discover`, whichever way the source lists its URLs.

Each page is one child sitemap (or a part of a long one), one archive page or one listing page, with
the cursor to continue from.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from holdfast.errors import DiscoveryError, ItemError, RetryClass, error_code
from holdfast.model import Json, Page, Record
from holdfast.pipeline import Http
from holdfast_regulations.archive import ArchiveWalk
from holdfast_regulations.canonical import InvalidUrl, item_id, key_maker
from holdfast_regulations.dates import (
    DateFilter,
    DateRange,
    Period,
    date_in_url,
    read_date,
)
from holdfast_regulations.listing import Fetched, Found
from holdfast_regulations.pagination import PaginationWalk
from holdfast_regulations.sitemap.frontier import (
    Child,
    Frontier,
    LeftOut,
    is_unchanged,
)
from holdfast_regulations.sitemap.problems import Entry, Kind, SitemapError
from holdfast_regulations.sitemap.reader import (
    Limits,
    SitemapReader,
    sitemaps_in_robots,
)
from holdfast_regulations.sources import Mode, Source

_MOST_BYTES = 52_428_800  # limit of a sitemap, as sent; what it unpacks to has the same limit
_RECORDS_IN_A_PAGE = 5_000
_MOST_FAULTS = 100
_new = tuple.__new__  # a third of the time that a named tuple takes to create itself
#: A known URL is fetched again only when its document is due, not because its listing differs.
_UNCHANGED = ""


class SitemapMark(NamedTuple):
    """What a sitemap said about itself when it was read to its end."""

    modified: str | None = None
    etag: str | None = None


class _Unchanged(Exception):
    """Raised if the server says that the sitemap has not changed."""


class Discovery:
    """One walk of one source in one mode."""

    def __init__(
        self,
        source: Source,
        http: Http,
        wanted: DateRange,
        this_year: int,
        *,
        read_before: Mapping[str, SitemapMark] | None = None,
        indexes: Mapping[str, Sequence[Entry]] | None = None,
        first_year: int | None = None,
    ) -> None:
        """Takes as `read_before` the sitemaps that an earlier walk read, and as `indexes` what this
        walk has read of indexes; `first_year` is the oldest year of an archive that is read."""
        self.source = source
        self.http = http
        self.wanted = wanted
        self.this_year = this_year
        self.read_before = read_before or {}
        self.indexes = indexes or {}
        self.first_year = first_year
        self.admission = source.admission()
        self.dates = DateFilter(wanted)
        self.invalid_count = 0
        self._key = key_maker(source.canonical_rules)
        self._has_range = not wanted.is_open

    def pages(self, mode: Mode, cursor: Json | None, *, again: bool = False) -> AsyncIterator[Page]:
        """Yields pages from the cursor on. With `again`, a listing starts one page earlier."""
        if mode is Mode.SITEMAP:
            return _SitemapPages(self).pages(cursor)
        return self._listing_pages(self._walk(mode), cursor, again)

    def counts(self) -> Json:
        """Returns what was seen and refused, by reason."""
        return {
            "refused": {reason.value: count for reason, count in self.admission.counts.items()},
            "dates": {fit.value: count for fit, count in self.dates.counts.items()},
            "invalid": self.invalid_count,
        }

    def record(
        self, url: str, listed_on: str, published: Period | None = None, title: str = ""
    ) -> Record | None:
        """Returns a record; None if the URL cannot be one, or was not published in the range.

        This runs for every URL of every sitemap: the date in a URL is read only if a range asks for
        it, otherwise when the URL is fetched."""
        if self._has_range:
            published = published or date_in_url(url, self.source.dates.url)
            if not self.dates.admits(published):
                return None
        try:
            key = self._key(url)
        except InvalidUrl:
            self.invalid_count += 1
            return None
        row = {"source": self.source.slug, "url": url, "canonical": key, "listed_on": listed_on}
        if title:
            row["title"] = title
        if published is not None:
            row["published"] = str(published)
        return Record(row, item_id(self.source.slug, key), _UNCHANGED)

    def records(self, entries: Sequence[Entry], listed_on: str) -> list[Record]:
        """Returns the wanted records of a sitemap."""
        if self._has_range or any(entry[2] for entry in entries):
            return self._dated_records(entries, listed_on)
        key_of, slug = self._key, self.source.slug
        records = []
        for url in self.admission.admitted([entry[0] for entry in entries]):
            try:
                key = key_of(url)
            except InvalidUrl:
                self.invalid_count += 1
                continue
            row = {"source": slug, "url": url, "canonical": key, "listed_on": listed_on}
            records.append(_new(Record, (row, item_id(slug, key), _UNCHANGED)))
        return records

    def _dated_records(self, entries: Sequence[Entry], listed_on: str) -> list[Record]:
        """Returns the records of a feed, and all records if the run has a range."""
        records = (
            self.record(url, listed_on, read_date(feed_date) if feed_date else None)
            for url, _, feed_date in entries
            if self.admission.admits(url)
        )
        return [record for record in records if record is not None]

    def _walk(self, mode: Mode) -> ArchiveWalk | PaginationWalk:
        if mode is Mode.ARCHIVE and self.source.archive is not None:
            first, last = self.wanted.first, self.wanted.last
            years = (first.year if first else self.first_year, last.year if last else None)
            return ArchiveWalk(
                self.source.archive, self.admission, this_year=self.this_year, years=years
            )
        if mode is Mode.PAGINATION and self.source.pagination is not None:
            return PaginationWalk(self.source.pagination, self.admission)
        raise DiscoveryError(f"the source {self.source.slug} has no {mode}")

    async def _listing_pages(
        self, walk: ArchiveWalk | PaginationWalk, cursor: Json | None, again: bool
    ) -> AsyncIterator[Page]:
        at = walk.start() if cursor is None else cursor
        if at is None:
            yield Page([], end=True)
        if cursor is not None and again and isinstance(walk, PaginationWalk):
            at = walk.resumed(cursor)
        while at is not None:
            url = walk.request(at)
            walked = walk.read(at, await self._fetch(url))
            at = walked.cursor
            records = self._listed(walked.found, listed_on=url)
            notes = {**walked.notes, **self.counts()}
            yield Page(records, at, end=walked.end, notes=notes)

    def _listed(self, found: Iterable[Found], listed_on: str) -> list[Record]:
        records = (self.record(f.url, listed_on, f.published, f.title) for f in found)
        return [record for record in records if record is not None]

    async def _fetch(self, url: str) -> Fetched:
        """Fetches a page.

        A missing one is for the walker to judge; every other error reply is the engine's."""
        reply = await self.http.get(url, raise_for_status=False)
        if reply.status not in (404, 410):
            reply.raise_for_status()
        link = reply.headers.get("link", "")
        return Fetched(url, reply.status, reply.text, reply.url, link)


@dataclass(slots=True)
class _Progress:
    """The cursor of a walk through sitemaps.

    `indexes` say what is ahead; `faults` are read once more at the end."""

    depth: int = 0
    url: str | None = None
    part: int = 0
    indexes: tuple[tuple[int, str], ...] = ()
    faults: tuple[tuple[int, str], ...] = ()
    roots: tuple[str, ...] = ()
    checkpoints: int = 0  # makes cursors differ that say only what was read
    ended: bool = False  # only the faults are left

    def as_json(self) -> Json:
        return {
            "depth": self.depth,
            "url": self.url,
            "part": self.part,
            "indexes": [list(index) for index in self.indexes],
            "faults": [list(fault) for fault in self.faults],
            "roots": list(self.roots),
            "checkpoints": self.checkpoints,
            "ended": self.ended,
        }

    @property
    def place(self) -> Json | None:
        return None if self.url is None else {"depth": self.depth, "url": self.url}

    def passed(self, child: Child) -> None:
        self.depth, self.url, self.part = child.depth, child.url, 0

    def go_back_to(self, child: Child) -> None:
        self.passed(child)
        self.checkpoints += 1


class _SitemapPages:
    def __init__(self, discovery: Discovery) -> None:
        rules = discovery.source.sitemap
        if rules is None:
            raise DiscoveryError(f"the source {discovery.source.slug} has no sitemap")
        self._rules = rules
        self._discovery = discovery
        self._frontier = Frontier(rules, discovery.admission, discovery.wanted)
        self._sitemaps_count = 0
        self._known_count = 0  # first listed in this walk: the one before has counted the rest
        self._unchanged_count = 0
        self._etag: str | None = None  # of the sitemap that was read last
        self._finished: list[tuple[str, str, str | None]] = []
        self._indexes: list[tuple[str, list[tuple[str, str]]]] = []
        self._problems: dict[str, str] = {}
        self._read: set[str] = set()

    async def pages(self, cursor: Json | None) -> AsyncIterator[Page]:
        progress = _progress(cursor)
        async for page in self._look_ahead(progress):
            yield page
        is_first = True
        while is_first or self._frontier.following(progress.place) is not None:
            is_first = False
            async for page in self._children(progress):
                yield page
            async for page in self._once_more(progress):
                yield page
        if self._problems:
            progress.ended = True
            yield self._checkpoint(progress)
            raise DiscoveryError(_faults(self._problems))
        yield Page([], end=True, notes=self._notes())

    async def _children(self, progress: _Progress) -> AsyncIterator[Page]:
        while (child := self._frontier.following(progress.place)) is not None:
            if child.url in self._read:
                progress.passed(child)
            elif self._is_unchanged(child):
                self._unchanged_count += 1
                progress.passed(child)
            else:
                async for page in self._child(child, progress):
                    yield page
                self._read.add(child.url)

    def _is_unchanged(self, child: Child) -> bool:
        mark = self._discovery.read_before.get(child.url)
        return mark is not None and is_unchanged(child, mark.modified)

    async def _once_more(self, progress: _Progress) -> AsyncIterator[Page]:
        """Reads again what could not be read; records from the first time are known by their keys.

        What an index lists is read too: the walk goes back to the place of the index."""
        for depth, url in progress.faults:
            child = Child(url, depth)
            records: list[Record] = []
            reader = SitemapReader(Limits(entries=self._rules.max_entries))
            try:
                async for entries in self._entries(url, reader):
                    records += self._records(child, reader.kind, entries)
            except _Unchanged:
                self._unchanged_count += 1
            except (SitemapError, ItemError) as error:
                self._problems[url] = _lasting(error)
                continue
            self._problems.pop(url, None)
            progress.faults = tuple(fault for fault in progress.faults if fault[1] != url)
            if reader.kind is Kind.INDEX:
                progress.indexes = (*progress.indexes, (depth, url))
                progress.go_back_to(child)
            yield Page(records, progress.as_json(), notes=self._notes())
            if reader.kind is Kind.INDEX:
                return

    def _records(self, child: Child, kind: Kind | None, entries: list[Entry]) -> list[Record]:
        """Returns the records of a sitemap.

        Those of an index are sitemaps that are ahead, not records."""
        if kind is Kind.INDEX:
            self._list(child, entries)
            return []
        return self._discovery.records(entries, child.url)

    async def _look_ahead(self, progress: _Progress) -> AsyncIterator[Page]:
        """Reads the roots, and the indexes that were read before a resume.

        Each request has a checkpoint: a walk that must wait for its gate after every request still
        makes progress."""
        if self._rules.url is not None:
            progress.roots = (self._rules.url,)
        elif not progress.roots:
            progress.roots = tuple(await self._roots_in_robots())
            yield self._checkpoint(progress)
        roots = self._frontier.start(progress.roots)
        if progress.url is None:
            self._known_count += len(roots)
        if not roots:
            raise DiscoveryError(f"{self._discovery.source.slug} has no sitemap on its own hosts")
        for depth, url in progress.indexes:
            known = self._discovery.indexes.get(url)
            if known is not None:
                self._frontier.add(Child(url, depth), known)
                continue
            reader = SitemapReader(Limits(entries=self._rules.max_entries))
            async for entries in self._entries(url, reader):
                self._list(Child(url, depth), entries)
            yield self._checkpoint(progress)

    def _checkpoint(self, progress: _Progress) -> Page:
        progress.checkpoints += 1
        return Page([], progress.as_json(), notes=self._notes())

    def _list(self, index: Child, entries: Iterable[Entry]) -> None:
        children = [(child.url, child.modified) for child in self._frontier.add(index, entries)]
        self._known_count += len(children)
        if not self._indexes or self._indexes[-1][0] != index.url:
            self._indexes.append((index.url, []))
        self._indexes[-1][1].extend(children)

    async def _roots_in_robots(self) -> list[str]:
        host = self._discovery.source.hosts[0]
        reply = await self._discovery.http.get(f"https://{host}/robots.txt")
        return sitemaps_in_robots(reply.text)

    async def _child(self, child: Child, progress: _Progress) -> AsyncIterator[Page]:
        """Yields the pages of one sitemap.

        One that cannot be read does not stop the walk; it is read again at the end, and then it
        counts."""
        reader = SitemapReader(Limits(entries=self._rules.max_entries))
        records: list[Record] = []
        problem: str | None = None
        try:
            async for entries in self._entries(child.url, reader):
                records += self._records(child, reader.kind, entries)
                if len(records) >= _RECORDS_IN_A_PAGE:
                    progress.part += 1
                    yield Page(records, progress.as_json(), notes=self._notes())
                    records = []
        except _Unchanged:
            self._unchanged_count += 1
            progress.passed(child)
            yield Page([], progress.as_json(), notes=self._notes())
            return
        except (SitemapError, ItemError) as error:
            problem = _lasting(error)
        self._sitemaps_count += 1
        yield self._last_page(child, progress, records, reader.kind, problem)
        if problem is None and reader.kind is not Kind.INDEX:
            # Noted with the next page: only then is this one certain to be stored completely.
            self._finished.append((child.url, child.modified, self._etag))

    def _last_page(
        self,
        child: Child,
        progress: _Progress,
        records: list[Record],
        kind: Kind | None,
        problem: str | None,
    ) -> Page:
        if problem is not None:
            self._problems[child.url] = problem
            progress.faults = (*progress.faults, (child.depth, child.url))
            if len(progress.faults) > _MOST_FAULTS:
                raise DiscoveryError(_faults(self._problems))
        elif kind is Kind.INDEX:
            progress.indexes = (*progress.indexes, (child.depth, child.url))
        progress.passed(child)
        return Page(records, progress.as_json(), notes=self._notes())

    async def _entries(self, url: str, reader: SitemapReader) -> AsyncIterator[list[Entry]]:
        mark = self._discovery.read_before.get(url)
        headers = {"If-None-Match": mark.etag} if mark is not None and mark.etag else {}
        entries: list[Entry] = []
        try:
            reply = await self._discovery.http.get(
                url,
                headers=headers,
                max_bytes=_MOST_BYTES,
                into=lambda part: entries.extend(reader.feed(part)),
            )
        except SitemapError:
            yield entries  # those before the fault are valid
            raise
        if reply.status == 304:
            raise _Unchanged
        self._etag = reply.headers.get("etag")
        for start in range(0, len(entries), _RECORDS_IN_A_PAGE):
            yield entries[start : start + _RECORDS_IN_A_PAGE]
        yield reader.close()

    def _notes(self) -> Json:
        left_out: Counter[LeftOut] = self._frontier.left_out
        finished, self._finished = self._finished, []
        indexes, self._indexes = self._indexes, []
        return {
            "finished": finished,
            "indexes": indexes,
            **self._discovery.counts(),
            "sitemaps": {
                "read": self._sitemaps_count,
                "known": self._known_count,
                "unchanged": self._unchanged_count,
            },
            "sitemaps_left_out": {reason.value: count for reason, count in left_out.items()},
            "faults": dict(self._problems),
        }


def _progress(cursor: Json | None) -> _Progress:
    if cursor is None:
        return _Progress()
    # A sitemap that was left in the middle is read from its beginning: it may have changed, and
    # what it repeats is known by its key.
    indexes = tuple((int(depth), str(url)) for depth, url in cursor["indexes"])
    faults = tuple((int(depth), str(url)) for depth, url in cursor["faults"])
    return _Progress(
        cursor["depth"],
        cursor["url"],
        0,
        indexes,
        faults,
        tuple(cursor["roots"]),
        cursor["checkpoints"],
    )


def _lasting(error: SitemapError | ItemError) -> str:
    """Returns what is wrong with the sitemap itself; raises errors that pass with time, which are
    the engine's."""
    if isinstance(error, ItemError) and error_code(error.code).retry is not RetryClass.NEVER:
        raise error
    return str(error)


def _faults(problems: dict[str, str]) -> str:
    shown = "; ".join(f"{url}: {problem}" for url, problem in list(problems.items())[:3])
    return f"{len(problems)} sitemap(s) cannot be read: {shown}"
