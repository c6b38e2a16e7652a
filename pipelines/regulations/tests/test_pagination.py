"""Paginated listings: how they continue, how they end, and what is never taken for an end."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from holdfast.errors import DiscoveryError
from holdfast.model import Json
from holdfast_regulations.admission import Admission
from holdfast_regulations.dates import read_date
from holdfast_regulations.listing import Fetched
from holdfast_regulations.pagination import PaginationWalk
from holdfast_regulations.sources import PaginationRules

LIST = "https://a.hr/hr/vijesti/8"
Site = Callable[[str], Fetched]


def listing(numbers: range, extra: str = "") -> str:
    entries = "".join(f'<li><a href="/hr/vijest-{n}/{n}">Vijest {n}</a></li>' for n in numbers)
    return f'<a href="/kontakt">Kontakt</a><ul class="news">{entries}</ul>{extra}'


def walker(**rules: Any) -> PaginationWalk:
    table = {"url": LIST, **rules}
    return PaginationWalk(
        PaginationRules.model_validate(table), Admission(["a.hr"], [re.compile(r"/hr/.+/\d+$")])
    )


def by_page(pages: Callable[[int], str], status: int = 200) -> Site:
    def answer(url: str) -> Fetched:
        return Fetched(url, status, pages(int(parse_qs(urlsplit(url).query)["Page"][0])))

    return answer


def walk(walker: PaginationWalk, site: Site, most: int = 60) -> tuple[list[str], Json, list[str]]:
    """The URLs found, the notes of the end, and the pages requested."""
    cursor: Json | None = walker.start()
    found: list[str] = []
    requested: list[str] = []
    while cursor is not None:
        assert len(requested) < most
        cursor = json.loads(json.dumps(cursor))  # as the store keeps it
        requested.append(walker.request(cursor))
        walked = walker.read(cursor, site(requested[-1]))
        found += [entry.url for entry in walked.found]
        cursor = walked.cursor
    assert walked.end
    return found, walked.notes, requested


def test_parameter_keeps_its_capital_letter_and_an_empty_page_ends_the_listing() -> None:
    site = by_page(lambda n: listing(range(n * 10, n * 10 + 10) if n <= 4 else range(0)))
    found, notes, requested = walk(walker(parameter="Page"), site)
    assert len(found) == len(set(found)) == 40
    assert notes == {"stop": "empty", "page": 7}
    assert requested[:2] == [f"{LIST}?Page=1", f"{LIST}?Page=2"]
    assert len(requested) == 7  # three empty pages in a row are the proof


def test_one_empty_page_between_others_is_not_the_end() -> None:
    site = by_page(lambda n: listing(range(n * 10, n * 10 + 10) if n in (1, 3) else range(0)))
    found, _, _ = walk(walker(parameter="Page"), site)
    assert len(found) == 20


def test_selector_that_matches_nothing_is_an_error_after_some_pages() -> None:
    site = by_page(lambda n: listing(range(n * 10, n * 10 + 10)))
    with pytest.raises(DiscoveryError, match=r"matched no wanted link on 3 page\(s\)"):
        walk(walker(parameter="Page", links="div.gone a"), site)


@pytest.mark.parametrize("clamped_to", ["last", "first"])
def test_server_that_repeats_a_page_beyond_its_last_ends_where_the_source_says_so(
    clamped_to: str,
) -> None:
    def page(n: int) -> str:
        n = n if n <= 5 else (5 if clamped_to == "last" else 1)
        return listing(range(n * 10, n * 10 + 10))

    found, notes, _ = walk(walker(parameter="Page", stop=["empty", "repeat"]), by_page(page))
    assert len(found) == 50
    assert notes == {"stop": "repeat", "page": 6}
    with pytest.raises(DiscoveryError, match="endless"):
        walk(walker(parameter="Page", stop=["empty"]), by_page(page))


def test_pages_that_come_round_again_are_endless_even_where_repeats_end_a_listing() -> None:
    site = by_page(lambda n: listing(range(5) if n == 1 else range(n % 3 * 10 + 10, 40)))
    with pytest.raises(DiscoveryError, match="page 5 has the links of page 2"):
        walk(walker(parameter="Page", stop=["repeat"]), site)


def test_pagination_that_never_ends_is_stopped() -> None:
    site = by_page(lambda n: listing(range(n, n + 3)))
    with pytest.raises(DiscoveryError, match="no end after 50 pages"):
        walk(walker(parameter="Page", max_pages=50), site)


@pytest.mark.parametrize("status", [404, 429, 500, 503])
def test_error_reply_is_not_an_end(status: int) -> None:
    walk_ = walker(parameter="Page")
    cursor = walk_.read(walk_.start(), Fetched(LIST, 200, listing(range(9)))).cursor
    assert cursor is not None
    with pytest.raises(DiscoveryError, match=f"answered {status}"):
        walk_.read(cursor, Fetched(walk_.request(cursor), status, ""))


def test_missing_page_ends_the_listing_only_where_the_source_says_so() -> None:
    def site(url: str) -> Fetched:
        n = int(url.rpartition("=")[2])
        return Fetched(url, 200 if n < 3 else 404, listing(range(n * 10, n * 10 + 10)))

    found, notes, _ = walk(walker(parameter="Page", stop=["not-found"]), site)
    assert (len(found), notes["stop"]) == (20, "not-found")
    with pytest.raises(DiscoveryError, match="answered 404"):
        walk(walker(parameter="Page", first=3, stop=["not-found"]), site)


def test_redirect_to_the_home_page_is_not_a_page() -> None:
    walk_ = walker(parameter="Page")
    home = Fetched(f"{LIST}?Page=1", 200, listing(range(5)), final_url="https://a.hr/")
    with pytest.raises(DiscoveryError, match="redirects to the home page"):
        walk_.read(walk_.start(), home)


NEXT_FORMS = [
    '<link rel="next" href="{next}">',
    '<a rel="nofollow next" href="{next}">2</a>',
    '<a href="{next}"> Sljedeća </a>',
    '<a href="{next}" title="Dalje"><i></i></a>',
    '<a href="{next}">»</a>',
]


@pytest.mark.parametrize("form", NEXT_FORMS)
def test_next_link_is_followed_to_the_last_page(form: str) -> None:
    def site(url: str) -> Fetched:
        n = int(url.rpartition("=")[2]) if "=" in url else 1
        extra = form.replace("{next}", f"?s={n + 1}") if n < 4 else ""
        return Fetched(url, 200, listing(range(n * 10, n * 10 + 10), extra))

    found, notes, requested = walk(walker(), site)
    assert (len(found), notes) == (40, {"stop": "no-next", "page": 4})
    assert requested == [LIST, *(f"{LIST}?s={n}" for n in (2, 3, 4))]


def test_link_header_and_own_selector_name_the_next_page() -> None:
    def with_header(url: str) -> Fetched:
        header = "" if "?" in url else '<https://a.hr/hr/vijesti/8?p=2>; rel="next"'
        return Fetched(url, 200, listing(range(5) if "?" not in url else range(5, 9)), "", header)

    assert len(walk(walker(), with_header)[0]) == 9

    def with_selector(url: str) -> Fetched:
        extra = '<b class="more"><a href="?p=2">više</a></b>' if "?" not in url else ""
        return Fetched(url, 200, listing(range(5) if "?" not in url else range(5, 9), extra))

    assert len(walk(walker(next_link=".more a"), with_selector)[0]) == 9


@pytest.mark.parametrize(
    ("target", "message"),
    [("https://b.hr/2", "another host"), ("", "names itself"), ("file:///x", "no-next|no link")],
)
def test_next_link_that_leads_astray_is_refused(target: str, message: str) -> None:
    walk_ = walker(stop=["empty"])
    page = listing(range(5), f'<a rel="next" href="{target or LIST}">2</a>')
    with pytest.raises(DiscoveryError, match=message):
        walk_.read(walk_.start(), Fetched(LIST, 200, page))


def test_template_and_offset_pages() -> None:
    def site(url: str) -> Fetched:
        n = int(url.rstrip("/").rpartition("/")[2])
        return Fetched(url, 200, listing(range(n, n + 10) if n <= 20 else range(0)))

    walk_ = walker(template="https://a.hr/lista/{page}/", first=0, step=10)
    found, _, requested = walk(walk_, site)
    assert len(found) == 30
    assert requested[:2] == ["https://a.hr/lista/0/", "https://a.hr/lista/10/"]


def test_resumed_walk_steps_back_one_page_and_does_not_take_it_for_a_repeat() -> None:
    site = by_page(lambda n: listing(range(n * 10, n * 10 + 10) if n <= 4 else range(0)))
    walk_ = walker(parameter="Page", stop=["empty", "repeat"])
    cursor: Json | None = walk_.start()
    for _ in range(2):
        assert cursor is not None
        cursor = walk_.read(cursor, site(walk_.request(cursor))).cursor
    assert cursor is not None
    back = walk_.resumed(cursor)
    assert walk_.request(back).endswith("Page=2")
    walked = walk_.read(back, site(walk_.request(back)))
    assert not walked.end
    assert len(walked.found) == 10
    assert walk_.resumed(walk_.start()) == walk_.start()


def test_listing_that_shrank_while_nobody_looked_ends_where_it_ends_now() -> None:
    def site(last: int) -> Site:
        return by_page(lambda n: listing(range(min(n, last) * 10, min(n, last) * 10 + 10)))

    walk_ = walker(parameter="Page", stop=["repeat"])
    cursor: Json | None = walk_.start()
    for _ in range(5):
        assert cursor is not None
        cursor = walk_.read(cursor, site(9)(walk_.request(cursor))).cursor
    assert cursor is not None
    back = walk_.resumed(cursor)
    walked = walk_.read(back, site(4)(walk_.request(back)))
    assert (walked.end, walked.notes) == (True, {"stop": "repeat", "page": 5})


def test_dates_and_titles_beside_links_are_taken() -> None:
    page = """<base href="https://a.hr/hr/">
    <article><time datetime="2024-03-05">5.3.</time><h2><a href="prva/1#x"> Prva
      vijest </a></h2></article>
    <article><span class="d">6. ožujka 2024.</span><a href="druga/2">Druga</a></article>
    <article><a href="treca/3">Treća</a><a href="treca/3">više</a></article>"""
    walk_ = walker(date="time, .d", links="article a", parameter="Page")
    found = walk_.read(walk_.start(), Fetched(LIST, 200, page)).found
    assert [(entry.url, entry.title, entry.published) for entry in found] == [
        ("https://a.hr/hr/prva/1", "Prva vijest", read_date("2024-03-05")),
        ("https://a.hr/hr/druga/2", "Druga", read_date("2024-03-06")),
        ("https://a.hr/hr/treca/3", "Treća", None),
    ]
