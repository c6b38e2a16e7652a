"""Rows that are not as they should be: set aside with their reason, and nothing else with them."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast_meetings.rows import content_of
from pipelines.meetings.tests.front import Front
from pipelines.meetings.tests.site import Row, Site, each_generation, generated
from pipelines.meetings.tests.town import Town

BAD = {
    "INVALID_DATE": [
        Row("CityCouncil", "January 5, 2020", 1, "a"),
        Row("CityCouncil", "2020-02-30", 1, "b"),
        Row("CityCouncil", "20200105", 1, "c"),
        Row("CityCouncil", None, 1, "d"),
        Row("CityCouncil", "２０２０-01-05", 1, "full width"),
    ],
    "INVALID_PAGE": [
        Row("CityCouncil", "2020-01-05", "iii", "e"),
        Row("CityCouncil", "2020-01-05", -1, "f"),
        Row("CityCouncil", "2020-01-05", 1.5, "g"),
        Row("CityCouncil", "2020-01-05", None, "h"),
        Row("CityCouncil", "2020-01-05", 2**40, "i"),
        Row("CityCouncil", "2020-01-05", "9" * 6000, "more digits than a number may have"),
    ],
    "INVALID_MEETING": [
        Row(None, "2020-01-05", 1, "j"),
        Row("  ", "2020-01-05", 1, "k"),
        Row("x" * 256, "2020-01-05", 1, "l"),
    ],
    "INVALID_TEXT": [Row("CityCouncil", "2020-01-05", 1, 12.5)],
}


@each_generation
async def test_bad_rows_are_rejected_with_their_reason_and_harm_no_other(
    town: Town, site: Site
) -> None:
    good = generated(250)
    bad = [row for rows in BAD.values() for row in rows]
    site.execute("drop table minutes")
    site.create("minutes", "id text primary key, meeting, date, page, text, page_image")
    site.add("minutes", [*good, *bad])
    await town.backfill(types=["minutes"])
    await town.assert_verified()
    assert {page[4] for page in await town.pages()} == {row.upstream_id for row in good}
    codes = await town.fetch(
        "select o.error_code, count(distinct r.upstream_id) from meetings_rejects r"
        " join outcomes o on o.job_id = r.job_id and o.seq = r.seq group by o.error_code"
    )
    assert dict(codes) == {code: len(rows) for code, rows in BAD.items()}
    stream = await town.stream()
    assert stream["expected"] == stream["actual"] == len(good) + len(bad)
    assert (await town.counts(stream["job_id"]))["rejected"] >= len(bad)


async def test_rejected_row_that_is_fixed_upstream_becomes_a_page(town: Town, site: Site) -> None:
    good = generated(120)
    bad = Row("CityCouncil", "someday", 1, "text")
    site.add("minutes", [*good, bad])
    await town.backfill(types=["minutes"])
    site.replace("minutes", bad, date="2020-01-05")
    await town.backfill(types=["minutes"], mode="full")
    assert await town.pages() == site.rows("minutes")
    assert not await town.fetch("select 1 from meetings_rejects")
    await town.assert_verified()


async def test_null_text_digits_as_text_and_whole_floats_are_taken(town: Town, site: Site) -> None:
    site.execute("drop table minutes")
    site.create("minutes", "id text primary key, meeting, date, page, text, page_image")
    rows = [
        Row("CityCouncil", "2020-01-05", "7", None),
        Row("CityCouncil", "2020-01-06", 8, ""),
        Row("CityCouncil", "2020-01-07", 9.0, ""),
    ]
    site.add("minutes", rows)
    await town.backfill(types=["minutes"])
    assert {page[:4] for page in await town.pages()} == {
        ("CityCouncil", "2020-01-05", 7, ""),
        ("CityCouncil", "2020-01-06", 8, ""),
        ("CityCouncil", "2020-01-07", 9, ""),
    }
    await town.assert_verified()


async def test_text_of_20_megabytes_is_set_aside_alone(town: Town, site: Site) -> None:
    huge = Row("CityCouncil", "2020-01-05", 1, "word " * 4_000_000)
    good = generated(150)
    site.add("minutes", [*good, huge])
    await town.backfill(types=["minutes"])
    assert {page[4] for page in await town.pages()} == {row.upstream_id for row in good}
    await town.assert_verified()
    (code,) = await town.fetch(
        "select distinct error_code from outcomes where error_code is not null"
    )
    assert code == ("TOO_LARGE",)


@pytest.mark.parametrize("huge", ["y" * 6_000, b"y" * 6_000], ids=["text", "bytes"])
async def test_row_that_is_too_large_without_its_text_is_set_aside_alone(
    store: Any, town: Town, site: Site, huge: Any
) -> None:
    site.drop("minutes")
    columns = "id text primary key, meeting, date, page, text, page_image, entities_json"
    site.create("minutes", columns)
    for name, page, entities in (("a", 1, None), ("b", 2, huge)):
        values = (name, "Parks", "2020-01-01", page, name, None, entities)
        site.execute("insert into minutes values (?, ?, ?, ?, ?, ?, ?)", *values)
    narrow = Town(store, town.url, town.subdomain, max_row_bytes=5_000)
    await narrow.backfill(types=["minutes"])
    assert [page[4] for page in await town.pages()] == ["a"]
    await town.assert_verified()
    codes = await town.fetch("select error_code from outcomes where error_code is not null")
    assert codes == [("TOO_LARGE",)]


async def test_rows_missing_here_that_are_too_large_for_one_reply_come_in_several(
    store: Any, town: Town, site: Site
) -> None:
    site.add("minutes", generated(20))
    await town.backfill(types=["minutes"])
    late = [Row("Parks", "2002-02-02", number, f"{number}" + "x" * 9_000) for number in range(40)]
    site.add("minutes", late)
    small = Town(store, town.url, town.subdomain, max_reply_bytes=150_000)
    await small.backfill(types=["minutes"])
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified(mode="incremental")


async def test_reply_larger_than_allowed_is_asked_for_in_smaller_pages(
    store: Any, town: Town, site: Site, front: Front
) -> None:
    large = [Row("Parks", "2020-01-05", number, "x" * 30_000 + str(number)) for number in range(20)]
    huge = Row("Parks", "2020-01-06", 1, "y" * 200_000)
    site.add("minutes", [*generated(100), *large, huge])
    small = Town(store, town.url, town.subdomain, max_reply_bytes=150_000)
    await small.backfill(types=["minutes"])
    pages = {page[4] for page in await small.pages()}
    assert {row.upstream_id for row in large} <= pages and huge.upstream_id not in pages
    assert len(pages) == 120
    await small.assert_verified()


async def test_site_that_lacks_a_table_is_reported_after_it_was_given_time(
    town: Town, site: Site
) -> None:
    site.drop("minutes")
    await town.backfill(types=["minutes"])
    stream = await town.stream()
    assert stream["job_state"] == "FAILED" and "no such site or table" in stream["error"]


@pytest.mark.parametrize("column", ["meeting", "date", "page", "text"])
async def test_site_that_lacks_a_column_is_reported(town: Town, site: Site, column: str) -> None:
    site.drop("minutes")
    columns = [name for name in ("meeting", "date", "page", "text") if name != column]
    site.create("minutes", f"id text primary key, {', '.join(columns)}")
    site.execute(f"insert into minutes (id, {', '.join(columns)}) values ('a', 'b', 'c', 'd')")
    await town.backfill(types=["minutes"])
    error = (await town.stream())["error"]
    assert (column in error and "lacks the column" in error) or "refused the request" in error


async def test_table_whose_ids_are_numbers_is_reported(town: Town, site: Site) -> None:
    site.drop("minutes")
    site.create("minutes", "id integer primary key, meeting, date, page, text, page_image")
    site.execute("insert into minutes values (1, 'a', '2020-01-01', 1, 'text', null)")
    await town.backfill(types=["minutes"])
    assert "is not text" in (await town.stream())["error"]


async def test_id_too_long_for_an_index_is_reported(town: Town, site: Site) -> None:
    site.add("minutes", [Row("Parks", "2020-01-01", 1, "text", id="x" * 501)])
    await town.backfill(types=["minutes"])
    assert "more than 500 characters" in (await town.stream())["error"]


def test_what_a_database_cannot_hold_is_left_out() -> None:
    content = content_of({"text": "a\0b", "page_image": "x\0/1.png", "votes_json": "{}"})
    assert content == ("ab", "/x/1.png", '{"votes_json":"{}"}')
