"""Reads an archive by year and issue, newest first: from a page, its URLs and the next page.

A year without issues is noted and skipped; several in a row, or a walk without a single URL, is an
error: the layout must have changed, not the history.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace

from holdfast.errors import DiscoveryError
from holdfast.model import Json
from holdfast_regulations.admission import Admission
from holdfast_regulations.listing import Fetched, Found, ListingPage, Walked
from holdfast_regulations.sources import ArchiveRules


@dataclass(frozen=True, slots=True)
class _Position:
    """The cursor.

    `issues` are the issue pages of this year that are still to be read; `number` is the issue, if
    issues are counted up instead."""

    year: int
    number: int = 0  # 0: the page of the year itself
    issues: tuple[str, ...] = ()
    missing: int = 0
    in_year: int = 0
    empty_years: int = 0
    matched: int = 0

    def as_json(self) -> Json:
        return {**asdict(self), "issues": list(self.issues)}


def _position(cursor: Json) -> _Position:
    return _Position(**{**cursor, "issues": tuple(cursor["issues"])})


class ArchiveWalk:
    """Reads an archive. `this_year` is the year in the source's zone when the walk begins."""

    def __init__(
        self,
        rules: ArchiveRules,
        admission: Admission,
        *,
        this_year: int,
        years: tuple[int | None, int | None] = (None, None),
    ) -> None:
        self._rules = rules
        self._admission = admission
        last = this_year if rules.last_year is None else min(rules.last_year, this_year)
        self._first = max(rules.first_year, years[0] or rules.first_year)
        self._last = min(last, years[1] or last)

    def start(self) -> Json | None:
        """Returns the first cursor; None if the range leaves no year of the archive."""
        if self._last < self._first:
            return None
        return self._year(_Position(self._last), self._last).as_json()

    def request(self, cursor: Json) -> str:
        at = _position(cursor)
        if at.issues:
            return at.issues[0]
        template = self._rules.issue_url if at.number else self._rules.year_url
        assert template is not None
        return template.format(year=at.year, issue=at.number)

    def read(self, cursor: Json, fetched: Fetched) -> Walked:
        at = _position(cursor)
        if at.number:
            return self._numbered_issue(at, fetched)
        if at.issues:
            return self._linked_issue(at, fetched)
        return self._year_page(at, fetched)

    def _year_page(self, at: _Position, fetched: Fetched) -> Walked:
        if fetched.is_missing:
            return self._year_over(at, [])
        fetched.check()
        page = ListingPage(fetched)
        if self._rules.issue_pattern is None:
            return self._year_over(at, page.found(self._rules.links, self._admission))
        issues = self._issue_pages(page)
        if not issues:
            return self._year_over(at, [])
        return Walked([], replace(at, issues=issues).as_json())

    def _issue_pages(self, page: ListingPage) -> tuple[str, ...]:
        pattern = self._rules.issue_pattern
        assert pattern is not None
        issues = dict.fromkeys(
            url
            for _, url in page.links(self._rules.issue_links)
            if self._admission.refusal_of_place(url) is None and pattern.search(url)
        )
        if len(issues) > self._rules.max_issues:
            raise DiscoveryError(
                f"{len(issues)} issues in a year, {self._rules.max_issues} allowed"
            )
        return tuple(issues)

    def _linked_issue(self, at: _Position, fetched: Fetched) -> Walked:
        """Reads an issue; a page that the year's own page links to has to exist."""
        fetched.check()
        found = ListingPage(fetched).found(self._rules.links, self._admission)
        onward = replace(
            at,
            issues=at.issues[1:],
            in_year=at.in_year + len(found),
            matched=at.matched + len(found),
        )
        if onward.issues:
            return Walked(found, onward.as_json(), notes=_empty_issue(fetched, found))
        walked = self._year_over(onward, [])
        return replace(walked, found=found)

    def _numbered_issue(self, at: _Position, fetched: Fetched) -> Walked:
        if fetched.is_missing:
            missing = at.missing + 1
            if missing >= self._rules.missing_issues:
                return self._year_over(at, [])
            return Walked([], replace(at, number=at.number + 1, missing=missing).as_json())
        fetched.check()
        if at.number >= self._rules.max_issues:
            raise DiscoveryError(
                f"{at.year} has more than {self._rules.max_issues} issues ({fetched.url})"
            )
        found = ListingPage(fetched).found(self._rules.links, self._admission)
        onward = replace(
            at,
            number=at.number + 1,
            missing=0,
            in_year=at.in_year + len(found),
            matched=at.matched + len(found),
        )
        return Walked(found, onward.as_json(), notes=_empty_issue(fetched, found))

    def _year_over(self, at: _Position, found: list[Found]) -> Walked:
        in_year = at.in_year + len(found)
        matched = at.matched + len(found)
        empty_years = 0 if in_year else at.empty_years + 1
        notes: Json = {} if in_year else {"empty_year": at.year}
        if empty_years >= self._rules.empty_years:
            raise DiscoveryError(
                f"{empty_years} years in a row without a wanted link, last {at.year}; "
                "has the archive's layout changed?"
            )
        if at.year > self._first:
            following = _Position(at.year - 1, empty_years=empty_years, matched=matched)
            return Walked(found, self._year(following, at.year - 1).as_json(), notes=notes)
        if not matched:
            raise DiscoveryError(f"no wanted link from {self._first} to {self._last}")
        return Walked(found, None, end=True, notes=notes)

    def _year(self, at: _Position, year: int) -> _Position:
        return replace(at, year=year, number=0 if self._rules.year_url else 1)


def _empty_issue(fetched: Fetched, found: list[Found]) -> Json:
    return {} if found else {"empty_issue": fetched.url}
