"""Which sitemap is read next: order, resuming, loops, depth, ranges."""

from __future__ import annotations

import re
from datetime import date

from holdfast.model import Json
from holdfast_regulations.admission import Admission
from holdfast_regulations.dates import DateRange
from holdfast_regulations.sitemap.frontier import (
    Child,
    Frontier,
    LeftOut,
    cursor_of,
    is_unchanged,
)
from holdfast_regulations.sitemap.problems import Entry
from holdfast_regulations.sources import SitemapRules

ROOT = "https://a.hr/sitemap.xml"
CHILDREN = re.compile(r"/s_(?P<part>[12])_(?P<year>\d{4})_(?P<issue>\d+)\.xml$")


def url(year: int, issue: int, part: int = 1) -> str:
    return f"https://a.hr/s_{part}_{year}_{issue}.xml"


def frontier(wanted: DateRange | None = None, **rules: object) -> Frontier:
    table = {"url": ROOT, "children": CHILDREN, **rules}
    made = Frontier(SitemapRules.model_validate(table), Admission(["a.hr"]), wanted)
    assert made.start([ROOT]) == [Child(ROOT)]
    return made


def walk(front: Frontier, cursor: Json | None = None) -> list[str]:
    urls = []
    while (child := front.following(cursor)) is not None:
        urls.append(child.url)
        cursor = cursor_of(child)
    return urls


def test_newest_issue_comes_first_and_numbers_count_as_numbers() -> None:
    front = frontier()
    front.add(Child(ROOT), [Entry(url(2024, 9)), Entry(url(2023, 1)), Entry(url(2024, 100))])
    assert walk(front) == [ROOT, url(2024, 100), url(2024, 9), url(2023, 1)]
    oldest = frontier(newest_first=False)
    oldest.add(Child(ROOT), [Entry(url(2024, 9)), Entry(url(2023, 1)), Entry(url(2024, 100))])
    assert walk(oldest) == [ROOT, url(2023, 1), url(2024, 9), url(2024, 100)]


def test_walk_resumes_after_the_sitemap_that_the_cursor_names_though_the_index_changed() -> None:
    front = frontier()
    front.add(Child(ROOT), [Entry(url(2024, issue)) for issue in range(1, 6)])
    # Issue 4 was read; it is gone from the index since, and 6 has come.
    later = frontier()
    later.add(Child(ROOT), [Entry(url(2024, issue)) for issue in (6, 5, 3, 2, 1)])
    cursor = {"depth": 1, "url": url(2024, 4)}
    assert walk(later, cursor) == [url(2024, 3), url(2024, 2), url(2024, 1)]
    assert later.remaining(cursor) == 3
    assert front.remaining(None) == 6


def test_index_of_9551_children_is_walked_once_each() -> None:
    front = frontier()
    entries = [Entry(url(1990 + n % 35, n)) for n in range(9551)]
    assert len(front.add(Child(ROOT), entries)) == 9551
    urls = walk(front)
    assert len(urls) == len(set(urls)) == 9552


def test_loops_repeats_and_depth_are_counted_and_left_out() -> None:
    front = frontier(children=None, max_depth=2)
    [child] = front.add(Child(ROOT), [Entry("https://a.hr/i1.xml"), Entry(ROOT)])
    [grandchild] = front.add(child, [Entry("https://a.hr/i2.xml"), Entry("https://a.hr/i1.xml")])
    assert front.add(grandchild, [Entry("https://a.hr/i3.xml")]) == []
    assert front.left_out == {LeftOut.REPEATED: 2, LeftOut.TOO_DEEP: 1}
    assert len(front) == 3


def test_children_elsewhere_are_refused() -> None:
    front = frontier(children=None)
    places = ["https://b.hr/s.xml", "file:///etc/passwd", "http://127.0.0.1/s.xml", ""]
    assert front.add(Child(ROOT), [Entry(place) for place in places]) == []
    assert front.left_out == {LeftOut.REFUSED: 4}


def test_children_that_nobody_wants_are_left_out_unread() -> None:
    front = frontier(DateRange(date(2023, 5, 1), date(2023, 5, 31)))
    entries = [Entry(url(2022, 1)), Entry(url(2023, 1)), Entry(url(2023, 1, part=3))]
    entries.append(Entry("https://a.hr/s_0_0_0.xml"))
    assert [child.url for child in front.add(Child(ROOT), entries)] == [url(2023, 1)]
    assert front.left_out == {LeftOut.OUT_OF_RANGE: 1, LeftOut.NOT_WANTED: 2}


def test_lastmod_is_trusted_only_to_say_that_nothing_changed() -> None:
    assert is_unchanged(Child(ROOT, 1, "2024-01-01"), "2024-01-01")
    assert not is_unchanged(Child(ROOT, 1, "2024-01-02"), "2024-01-01")
    assert not is_unchanged(Child(ROOT, 1, None), None)
    assert not is_unchanged(Child(ROOT, 1, "2024-01-01"), None)
