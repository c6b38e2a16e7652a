"""Archives by year and issue."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest

from holdfast.errors import DiscoveryError
from holdfast.model import Json
from holdfast_regulations.admission import Admission
from holdfast_regulations.archive import ArchiveWalk
from holdfast_regulations.listing import Fetched
from holdfast_regulations.sources import ArchiveRules

Site = Callable[[str], Fetched]


def walker(years: tuple[int | None, int | None] = (None, None), **rules: Any) -> ArchiveWalk:
    table = {"first_year": 2020, **rules}
    admission = Admission(["a.hr"], [re.compile(r"/akt/\d+_\d+_\d+$")])
    return ArchiveWalk(ArchiveRules.model_validate(table), admission, this_year=2024, years=years)


def acts(year: int, issue: int, count: int = 3) -> str:
    return "".join(f'<a href="/akt/{year}_{issue}_{act}">akt</a>' for act in range(count))


def walk(walker: ArchiveWalk, site: Site) -> tuple[list[str], list[Json], list[str]]:
    cursor = walker.start()
    found: list[str] = []
    requested: list[str] = []
    notes: list[Json] = []
    while cursor is not None:
        assert len(requested) < 200
        cursor = json.loads(json.dumps(cursor))
        requested.append(walker.request(cursor))
        walked = walker.read(cursor, site(requested[-1]))
        found += [entry.url for entry in walked.found]
        notes += [walked.notes] if walked.notes else []
        cursor = walked.cursor
    assert walked.end
    return found, notes, requested


def numbered(issues: dict[int, int]) -> Site:
    """Years with so many issues each; others are not there."""

    def answer(url: str) -> Fetched:
        year, issue = map(int, url.split("/")[-2:])
        there = issue <= issues.get(year, 0)
        return Fetched(url, 200 if there else 404, acts(year, issue))

    return answer


NUMBERED = {"issue_url": "https://a.hr/{year}/{issue}"}


def test_issues_are_counted_up_year_by_year_newest_first() -> None:
    found, notes, requested = walk(
        walker(**NUMBERED), numbered({2024: 2, 2023: 4, 2022: 1, 2021: 1, 2020: 1})
    )
    assert len(found) == 3 * 9
    assert notes == []
    assert requested[:6] == [f"https://a.hr/2024/{n}" for n in (1, 2, 3, 4, 5)] + [
        "https://a.hr/2023/1"
    ]


def test_gap_between_issues_does_not_end_the_year() -> None:
    def site(url: str) -> Fetched:
        year, issue = map(int, url.split("/")[-2:])
        return Fetched(url, 200 if issue in (1, 2, 5) else 404, acts(year, issue))

    found, _, _ = walk(walker(**NUMBERED), site)
    assert len(found) == 3 * 3 * 5


def test_year_without_issues_is_noted_and_passed_over() -> None:
    found, notes, _ = walk(walker(**NUMBERED), numbered({2024: 1, 2022: 1, 2021: 1, 2020: 1}))
    assert len(found) == 12
    assert notes == [{"empty_year": 2023}]


def test_years_without_issues_in_a_row_are_an_error() -> None:
    with pytest.raises(DiscoveryError, match="2 years in a row"):
        walk(walker(**NUMBERED), numbered({2024: 1, 2021: 1, 2020: 1}))


def test_archive_without_a_single_link_is_an_error() -> None:
    with pytest.raises(DiscoveryError, match="no wanted link from 2024 to 2024"):
        walk(walker((2024, 2024), **NUMBERED), numbered({}))


def test_range_of_years_limits_what_is_requested() -> None:
    _, _, requested = walk(walker((2022, 2023), **NUMBERED), numbered({2022: 1, 2023: 1}))
    assert {url.split("/")[3] for url in requested} == {"2022", "2023"}
    assert walker((2025, 2026), **NUMBERED).start() is None


def test_server_that_has_every_issue_is_stopped() -> None:
    with pytest.raises(DiscoveryError, match="more than 20 issues"):
        walk(walker(max_issues=20, **NUMBERED), numbered({2024: 10**6}))


@pytest.mark.parametrize("status", [429, 500, 503])
def test_error_reply_ends_nothing(status: int) -> None:
    with pytest.raises(DiscoveryError, match=f"answered {status}"):
        walk(walker(**NUMBERED), lambda url: Fetched(url, status, ""))


def by_year(url: str) -> Fetched:
    *_, kind, name = url.split("/")
    if kind == "godina":
        if name == "2022":
            return Fetched(url, 200, "<p>Nema izdanja</p>")
        links = "".join(f'<a href="/broj/{name}-{n}">Broj {n}</a>' for n in (2, 1))
        return Fetched(url, 200, f'<a href="/akt/9_9_9">istaknuto</a>{links}')
    year, issue = map(int, name.split("-"))
    return Fetched(url, 200, acts(year, issue))


def test_year_pages_lead_to_issue_pages() -> None:
    rules = {"year_url": "https://a.hr/godina/{year}", "issue_pattern": r"/broj/\d+-\d+$"}
    found, notes, requested = walk(walker(**rules), by_year)
    assert len(found) == 4 * 2 * 3
    assert notes == [{"empty_year": 2022}]
    assert requested[:4] == [
        "https://a.hr/godina/2024",
        "https://a.hr/broj/2024-2",
        "https://a.hr/broj/2024-1",
        "https://a.hr/godina/2023",
    ]


def test_issue_page_that_the_year_promises_must_be_there() -> None:
    def site(url: str) -> Fetched:
        return Fetched(url, 404, "") if url.endswith("2023-1") else by_year(url)

    rules = {"year_url": "https://a.hr/godina/{year}", "issue_pattern": r"/broj/\d+-\d+$"}
    with pytest.raises(DiscoveryError, match="2023-1 answered 404"):
        walk(walker(**rules), site)


def test_year_pages_may_list_acts_themselves() -> None:
    def site(url: str) -> Fetched:
        return Fetched(url, 200, acts(int(url.rpartition("/")[2]), 1, 7))

    found, _, requested = walk(walker(year_url="https://a.hr/godina/{year}"), site)
    assert (len(found), len(requested)) == (35, 5)
