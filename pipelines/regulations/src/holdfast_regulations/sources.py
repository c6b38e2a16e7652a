"""Describes a source: where its URLs are listed, which of them are wanted, how it is asked."""

from __future__ import annotations

import re
from datetime import date
from enum import StrEnum
from string import Formatter
from typing import Annotated, Any, Literal, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from selectolax.lexbor import LexborHTMLParser

from holdfast_regulations.admission import Admission
from holdfast_regulations.canonical import TRACKERS, CanonicalRules

_ACT_GROUPS = frozenset({"year", "issue", "act"})
_BLANK_PAGE = LexborHTMLParser("<p>")


class Mode(StrEnum):
    SITEMAP = "sitemap"
    ARCHIVE = "archive"
    PAGINATION = "pagination"


def _pattern(value: Any) -> re.Pattern[str]:
    if isinstance(value, re.Pattern):
        return value
    if not isinstance(value, str):
        raise ValueError("must be a regular expression in quotes")
    try:
        return re.compile(value)
    except re.error as error:
        raise ValueError(f"is not a regular expression: {error}") from error


def _dated(pattern: re.Pattern[str]) -> re.Pattern[str]:
    if "year" not in pattern.groupindex:
        raise ValueError("needs a group named year, such as (?P<year>\\d{4})")
    return pattern


def _act(pattern: re.Pattern[str]) -> re.Pattern[str]:
    missing = _ACT_GROUPS - pattern.groupindex.keys()
    if missing:
        raise ValueError(f"needs groups named year, issue and act; {min(missing)} is missing")
    return pattern


def _selector(value: str) -> str:
    try:
        _BLANK_PAGE.css_first(value)
    except Exception as error:
        raise ValueError(f"is not a CSS selector: {error}") from error
    return value


def _url(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("must start with http:// or https:// and name a host")
    return value


def _slug(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9]+(?:-[a-z0-9]+)*", value):
        raise ValueError(
            f"is {value!r:.60}; it must be words of lower-case letters and digits with hyphens"
            " between them, such as tax-office"
        )
    return value


def _host(value: str) -> str:
    if not re.fullmatch(r"[a-z0-9-]+(\.[a-z0-9-]+)*(:\d+)?", value):
        raise ValueError("must be a host name in lower case, without scheme and path")
    return value


Pattern = Annotated[re.Pattern[str], BeforeValidator(_pattern)]
DatePattern = Annotated[Pattern, AfterValidator(_dated)]
ActPattern = Annotated[Pattern, AfterValidator(_act)]
Selector = Annotated[str, AfterValidator(_selector)]
Url = Annotated[str, AfterValidator(_url)]
Host = Annotated[str, AfterValidator(_host)]
Seconds = Annotated[float, Field(ge=0, le=3600)]
Count = Annotated[int, Field(ge=1, le=10_000_000)]


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, arbitrary_types_allowed=True)


class SitemapRules(_Table):
    """How sitemaps are read.

    `children`: which sitemaps of an index are read; groups part, year and issue, if the pattern has
    them, let a run with a date range leave out whole sitemaps."""

    url: Url | None = None  # None: the Sitemap lines of robots.txt
    children: Pattern | None = None
    max_depth: Annotated[int, Field(ge=0, le=5)] = 2
    max_entries: Count = 50_000
    newest_first: bool = True


class ArchiveRules(_Table):
    """How an archive is read: a page for each year, which lists acts or, with `issue_pattern`,
    pages of issues; or a page for each issue, counted up until `missing_issues` of them in a row do
    not exist."""

    first_year: Annotated[int, Field(ge=1850, le=2200)]
    last_year: Annotated[int, Field(ge=1850, le=2200)] | None = None
    year_url: Url | None = None
    issue_url: Url | None = None
    issue_links: Selector = "a[href]"
    issue_pattern: Pattern | None = None
    links: Selector = "a[href]"
    missing_issues: Annotated[int, Field(ge=1, le=100)] = 3
    empty_years: Annotated[int, Field(ge=1, le=100)] = 2
    max_issues: Annotated[int, Field(ge=1, le=10_000)] = 500

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if (self.year_url is None) == (self.issue_url is None):
            raise ValueError("needs either year_url or issue_url")
        _check_template(self.year_url, "year_url", {"year"})
        _check_template(self.issue_url, "issue_url", {"year", "issue"})
        if self.last_year is not None and self.last_year < self.first_year:
            raise ValueError("last_year is before first_year")
        return self


class PaginationRules(_Table):
    """How a listing is paged: by a parameter, by a template with {page}, or by the link to the next
    page.

    `stop` names how this source shows its end. Anything else that could be an end is an error."""

    url: Url
    parameter: str | None = None  # as the server spells it; `Page` is not `page`
    template: Url | None = None
    next_link: Selector | None = None
    first: Annotated[int, Field(ge=0)] = 1
    step: Annotated[int, Field(ge=1)] = 1
    links: Selector = "a[href]"
    date: Selector | None = None
    stop: tuple[Literal["no-next", "empty", "repeat", "not-found"], ...] = ()
    empty_pages: Annotated[int, Field(ge=1, le=100)] = 3
    max_pages: Count = 5_000

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.parameter is not None and self.template is not None:
            raise ValueError("takes parameter or template, not both")
        _check_template(self.template, "template", {"page"})
        return self

    @property
    def by_link(self) -> bool:
        return self.parameter is None and self.template is None

    @property
    def stops(self) -> frozenset[str]:
        return frozenset(self.stop or (("no-next",) if self.by_link else ("empty",)))


class DateRules(_Table):
    url: tuple[DatePattern, ...] = ()
    selector: Selector | None = None  # in the fetched page


class CanonicalTable(_Table):
    keep_trailing_slash: bool = False
    keep_fragment: bool = False
    fold_www: bool = False
    fold_scheme: bool = False
    drop_parameters: tuple[str, ...] = TRACKERS
    identity: tuple[ActPattern, ...] = ()


class GateTable(_Table):
    min_delay_seconds: Seconds = 5.0
    max_delay_seconds: Seconds = 10.0
    concurrency: Annotated[int, Field(ge=1, le=16)] = 1

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if self.max_delay_seconds < self.min_delay_seconds:
            raise ValueError(
                f"max_delay_seconds ({self.max_delay_seconds:g}) is less than min_delay_seconds"
                f" ({self.min_delay_seconds:g})"
            )
        return self


class CapsTable(_Table):
    max_urls: Count = 500
    max_bytes: Annotated[int, Field(ge=1024, le=1 << 30)] = 50 * 1024 * 1024


class MissingTable(_Table):
    """How the site answers 200 and means 404."""

    home: tuple[str, ...] = ("/",)  # paths of home pages
    text: tuple[Pattern, ...] = ()  # in title or text


class Source(_Table):
    slug: Annotated[str, Field(max_length=40), AfterValidator(_slug)]
    name: Annotated[str, Field(min_length=1, max_length=120)]
    hosts: Annotated[tuple[Host, ...], Field(min_length=1)]
    verified: date  # when a person last compared this entry with the site
    note: str = ""
    mode: Mode
    sitemap: SitemapRules | None = None
    archive: ArchiveRules | None = None
    pagination: PaginationRules | None = None
    include: tuple[Pattern, ...] = ()
    exclude: tuple[Pattern, ...] = ()
    dates: DateRules = DateRules()
    canonical: CanonicalTable = CanonicalTable()
    gate: GateTable = GateTable()
    caps: CapsTable = CapsTable()
    missing: MissingTable = MissingTable()

    @model_validator(mode="after")
    def _fits(self) -> Self:
        if getattr(self, self.mode) is None:
            raise ValueError(f"mode is {self.mode}, but there is no [source.{self.mode}]")
        for url in self.listing_urls():
            host = urlsplit(url).netloc.lower()
            if host not in self.hosts:
                raise ValueError(f"{url} is on {host}, which is not among hosts")
        return self

    @property
    def modes(self) -> tuple[Mode, ...]:
        return tuple(mode for mode in Mode if getattr(self, mode) is not None)

    def listing_urls(self) -> list[str]:
        urls = [
            self.sitemap and self.sitemap.url,
            self.archive and self.archive.year_url,
            self.archive and self.archive.issue_url,
            self.pagination and self.pagination.url,
            self.pagination and self.pagination.template,
        ]
        return [url for url in urls if url]

    def admission(self) -> Admission:
        return Admission(self.hosts, self.include, self.exclude)

    @property
    def canonical_rules(self) -> CanonicalRules:
        table = self.canonical
        return CanonicalRules(
            keep_trailing_slash=table.keep_trailing_slash,
            keep_fragment=table.keep_fragment,
            fold_www=table.fold_www,
            fold_scheme=table.fold_scheme,
            drop_parameters=table.drop_parameters,
            identity=table.identity,
        )


def _check_template(url: str | None, field: str, names: set[str]) -> None:
    """Checks that the template has exactly these names in braces."""
    if url is None:
        return
    try:
        given = {name for _, name, _, _ in Formatter().parse(url) if name is not None}
    except ValueError as error:
        raise ValueError(f"{field}: {error}") from error
    if given != names:
        wanted = " and ".join(f"{{{name}}}" for name in sorted(names, reverse=True))
        raise ValueError(f"{field} must hold {wanted} and no other name in braces")
