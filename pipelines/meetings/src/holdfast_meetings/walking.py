"""Reads a collection step by step: each step is one API page and a new cursor.

A full pass reads all rows in order of id, then the months around today again, for rows that were
added behind its position. When everything is stored, `verifying` requests an inventory of the
site's ids, and the rows that are missing.

cursor["phase"]     what the step reads
walk                all rows, in id order
recent              the rows of one month, in id order, counted; if the site cannot find them within
                    its time limit, all rows, filtered here
inventory           ids only, in id order, to be compared with what is stored
gaps                rows by their ids
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from datetime import date, timedelta
from typing import Any

import orjson

from holdfast.errors import DiscoveryError, ItemError
from holdfast.model import Json, Page, Record
from holdfast_meetings.datasette import Rows, SiteTable, TimeLimit
from holdfast_meetings.options import MeetingsOptions, Mode
from holdfast_meetings.rows import ROW_BYTES

Cursor = dict[str, Any]

_GAPS_AT_ONCE = 100
_TRIES = 5  # attempts to read a month whose count differs from its rows
_SHOWN_CHARACTERS = 80


def first_cursor(mode: Mode, window: Sequence[str]) -> Cursor:
    marks = {"round": 1, "since": 1}
    return walk_cursor(marks) if mode is Mode.FULL else _recent(month_of(window[0]), marks)


def walk_cursor(marks: Cursor) -> Cursor:
    return {"phase": "walk", **marks}


def inventory_cursor(marks: Cursor, **more: Any) -> Cursor:
    return {"phase": "inventory", **marks, "rows": 0, **more}


def gaps_cursor(marks: Cursor, ids: Sequence[str]) -> Cursor:
    return {"phase": "gaps", **marks, "ids": list(ids), "at": 0}


def marks_of(cursor: Cursor) -> Cursor:
    """Returns what every cursor contains: the round, so that no cursor is repeated, and the round
    in which this attempt began."""
    return {"round": cursor["round"], "since": cursor["since"]}


class SiteWalk:
    """Reads one site. `window` is the first and the last day of the months around today."""

    def __init__(
        self, table: SiteTable, mode: Mode, window: Sequence[str], options: MeetingsOptions
    ) -> None:
        self._table = table
        self._mode = mode
        self._window = window
        self._options = options
        self._steps = {
            "walk": self._walk,
            "recent": self._read_recent,
            "inventory": self._take_inventory,
            "gaps": self._fill_gaps,
        }

    async def pages(self, cursor: Cursor | None) -> AsyncIterator[Page]:
        cursor = cursor or first_cursor(self._mode, self._window)
        while True:
            step = self._steps.get(cursor["phase"])
            if step is None:
                raise DiscoveryError(f"nothing is read after the phase {cursor['phase']!r}")
            page = await step(cursor)
            yield page
            if page.end:
                return
            cursor = page.next_cursor

    async def _walk(self, cursor: Cursor) -> Page:
        token, after = cursor.get("token"), cursor.get("after")
        page = await self._table.page(token, after, count=token is None)
        records = self._records(page)
        if page.token is None:
            await self._prove_end(page.last or after)
            following = _recent(month_of(self._window[0]), marks_of(cursor))
        else:
            following = {**cursor, "token": page.token, "after": page.last}
        return Page(records, following, expected_count=page.count)

    async def _prove_end(self, last: str | None) -> None:
        """Checks an end.

        A page without a successor is an end only if the site has no greater id. A token that the
        site misread also ends without an error, and so does a table that is being rebuilt."""
        greatest = await self._table.greatest()
        if last is not None and (greatest is None or greatest > last):
            raise ItemError(
                "CONTENT_UNAVAILABLE",
                f"the pages ended at {last!r}, but the site's last row is {greatest!r}",
                retry_after=self._options.rebuild_seconds if greatest is None else None,
            )

    async def _read_recent(self, cursor: Cursor) -> Page:
        page, cursor = await self._days(cursor)
        token = cursor.get("token")
        rows = cursor.get("rows", 0) + len(page.rows)
        expected = page.count if token is None else cursor.get("expected")
        following: Cursor | None
        if page.token is not None:
            place = {"token": page.token, "after": page.last}
            following = {**cursor, **place, "rows": rows, "expected": expected}
        else:
            if (
                "sift" in cursor
            ):  # all rows were requested, and no count shows whether any is missing
                await self._prove_end(page.last or cursor.get("after"))
            following = self._after_month(cursor, rows, expected)
        if following is None:
            counted = {"phase": "read", **marks_of(cursor)}
            site_count = await self._table.count()
            return Page(self._records(page), {**counted, "site_count": site_count}, end=True)
        return Page(self._records(page), following)

    async def _days(self, cursor: Cursor) -> tuple[Rows, Cursor]:
        """Returns a page of the month's rows.

        Without an index on dates, a large site scans every row and may hit its time limit. Then all
        rows are read and filtered here, for this month and those after it. The first page of a
        month may be quick and the last one too slow, because nothing follows it: then the month
        starts again."""
        try:
            return await self._page_of(cursor), cursor
        except TimeLimit:
            if "sift" in cursor:
                raise
            end = month_after(month_of(self._window[1]))
            month = _recent(cursor["month"], marks_of(cursor))
            sifted = {**month, "until": end, "sift": True}
            return await self._page_of(sifted), sifted

    async def _page_of(self, cursor: Cursor) -> Rows:
        token, after = cursor.get("token"), cursor.get("after")
        first, end = cursor["month"], cursor["until"]
        if "sift" not in cursor:
            filters = {"date__gte": first, "date__lt": end}
            return await self._table.page(token, after, filters, count=token is None)
        page = await self._table.page(token, after)
        return replace(page, rows=[row for row in page.rows if first <= str(row["date"]) < end])

    def _after_month(self, cursor: Cursor, rows: int, expected: int | None) -> Cursor | None:
        """Returns the cursor of the next month; of the same one again if its count shows that it
        changed in the meantime."""
        month, until, tries = cursor["month"], cursor["until"], cursor.get("tries", 1)
        if expected is not None and rows != expected:
            if tries == _TRIES:
                raise DiscoveryError(
                    f"{month[:7]} has {expected} rows, but its pages had {rows}, {tries} times"
                )
            return {**_recent(month, marks_of(cursor)), "tries": tries + 1}
        return None if until > self._window[1] else _recent(until, marks_of(cursor))

    async def _take_inventory(self, cursor: Cursor) -> Page:
        token, after = cursor.get("token"), cursor.get("after")
        page = await self._table.page(token, after, ids_only=True)
        rows = cursor["rows"] + len(page.ids)
        notes = {"first": token is None, "after": after, "upto": page.last, "ids": page.ids}
        if page.token is not None:
            following = {**cursor, "token": page.token, "after": page.last, "rows": rows}
            return Page([], following, notes=notes)
        await self._prove_end(page.last or after)
        counted = {**cursor, "phase": "inventoried", "rows": rows}
        counted["site_count"] = await self._table.count()
        return Page([], counted, end=True, notes={**notes, "upto": None})

    async def _fill_gaps(self, cursor: Cursor) -> Page:
        ids, at = cursor["ids"], cursor["at"]
        page = await self._table.by_ids(ids[at : at + _GAPS_AT_ONCE])
        if page.token is None or page.last is None:
            at += _GAPS_AT_ONCE
        else:  # both are in id order, so the rest begins after the last id returned
            at = max(at + 1, bisect_right(ids, page.last))
        if at < len(ids):
            return Page(self._records(page), {**cursor, "at": at})
        filled = {"phase": "filled", **marks_of(cursor)}
        return Page(self._records(page), filled, end=True)

    def _records(self, page: Rows) -> list[Record]:
        if page.size <= self._options.max_row_bytes:
            return [Record(row) for row in page.rows]
        return [Record(self._bounded(row)) for row in page.rows]

    def _bounded(self, row: Json) -> Json:
        """Returns the row; one that is too large is passed on without its long values, and rejected
        later."""
        size = len(orjson.dumps(row))
        if size <= self._options.max_row_bytes:
            return row
        place = {name: _short(row.get(name)) for name in ("meeting", "date", "page")}
        return {"id": row["id"], **place, ROW_BYTES: size}


def _short(value: Any) -> Any:
    return repr(value)[:_SHOWN_CHARACTERS] if isinstance(value, (str, dict, list)) else value


def _recent(month: str, marks: Cursor) -> Cursor:
    return {"phase": "recent", "month": month, "until": month_after(month), **marks}


def window_of(today: date, months: int) -> tuple[str, str]:
    """Returns that many calendar months back and ahead, and one more day on each side for other
    time zones."""
    first = _shifted(today, -months) - timedelta(days=1)
    last = _shifted(today, months) + timedelta(days=1)
    return first.isoformat(), last.isoformat()


def _shifted(day: date, months: int) -> date:
    year, month = divmod(day.year * 12 + day.month - 1 + months, 12)
    for shorter in range(4):
        try:
            return date(year, month + 1, day.day - shorter)
        except ValueError:
            continue
    raise AssertionError("every month has 28 days")


def month_of(day: str) -> str:
    return day[:7] + "-01"


def month_after(month: str) -> str:
    return (date.fromisoformat(month) + timedelta(days=31)).replace(day=1).isoformat()


def query_of(mode: Mode, url: str, table: str, window: Sequence[str]) -> Mapping[str, Any]:
    """Returns what a cursor depends on.

    It is not the page size: a token names a row, whatever the size."""
    return {"url": url, "table": table, "sort": "id", "mode": mode, "window": list(window)}
