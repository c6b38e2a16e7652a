"""Two towns of the demo and the sites where they publish their meetings: as much of Datasette's
JSON as a backfill needs, over rows that depend only on the day."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from functools import cache
from html import escape
from typing import Any

from holdfast.demo.goods import fate
from holdfast.demo.part import NOT_FOUND, Ask, DemoPart, Reply, Sample
from holdfast_meetings.reads import MeetingsReads

TOWNS = {
    "oakmere.wa": {"name": "Oakmere", "state": "WA", "kind": "city", "zone": "America/Los_Angeles"},
    "hollis.me": {"name": "Port Hollis", "state": "ME", "kind": "town", "zone": "America/New_York"},
}
BODIES = ("CityCouncil", "PlanningCommission", "ParksAndRecreationBoard", "HarborCommittee")
TABLES = ("agendas", "minutes")
_WEEKS = 104
_LARGEST_PAGE = 1000
_SCANNED_AGAIN_SECONDS = 120  # then the sites have scanned their latest pages again
_PEOPLE = ("Alvarez", "Brandt", "Chen", "Dubois", "Eze", "Fjeld", "Grant", "Hassan", "Ito")
_MATTERS = (
    "the bike lane on Harbor Street", "the library's opening hours", "a permit for the boat yard",
    "the sewer works at Mill Creek", "the budget of the fire department", "a lease of the old mill",
    "zoning on the east side", "repairs to the footbridge", "playground equipment", "street trees",
    "the dredging of the inner harbor", "short-term rentals", "the audit of last year's accounts",
)  # fmt: skip
_ENDS = (
    "The motion carried unanimously.", "The motion carried, five to two.", "The item was tabled.",
    "Staff will report back next month.", "Two residents spoke in favor, one against.",
    "The public hearing was continued.", "No action was taken.",
)  # fmt: skip

Row = dict[str, Any]


@cache
def rows_of(town: str, table: str, today: date, scanned_again: bool) -> Sequence[Row]:
    """Returns all rows of one table, in order of their ids.

    With `scanned_again`, the latest pages are without the mistakes of the first scan."""
    rows: list[Row] = []
    for week in range(-2, _WEEKS):
        day = today - timedelta(days=today.weekday() + 7 * week - 1)
        body = BODIES[fate(f"{town} {week} {day.isocalendar().week}", len(BODIES))]
        if table == "minutes" and day > today:
            continue  # the meeting is still to come
        pages = 2 + fate(f"{town} {table} {day}", 4)
        mistakes = not scanned_again and week < 3
        rows += [_row(town, table, body, day, page, mistakes) for page in range(1, pages + 1)]
    return sorted(rows, key=lambda row: row["id"])


def _row(town: str, table: str, body: str, day: date, page: int, mistakes: bool) -> Row:
    text = _text(town, table, body, day, page)
    if mistakes:
        text = text.replace("harbor", "harb0r").replace("carried", "carrled")
    content = [table, body, day.isoformat(), page, text]
    image = f"/{body}/{day}/{page}.svg"
    return {
        "id": hashlib.sha256(json.dumps(content).encode()).hexdigest()[:12],
        "meeting": body,
        "date": day.isoformat(),
        "page": page,
        "text": text,
        "page_image": image if table == "minutes" else f"/_agendas{image}",
    }


def _text(town: str, table: str, body: str, day: date, page: int) -> str:
    def chosen(words: Sequence[str], what: object) -> str:
        return words[fate(f"{town} {table} {body} {day} {page} {what}", len(words))]

    kind = "AGENDA" if table == "agendas" else "MINUTES"
    lines = [f"{TOWNS[town]['name'].upper()}  {kind}", f"{day:%A, %B} {day.day}, {day.year}", ""]
    if page == 1 and table == "minutes":
        lines += [f"Called to order at 7:00 p.m. by Chair {chosen(_PEOPLE, 'chair')}.", ""]
    for number in range(1, 6):
        matter = f"{page}.{number}  Concerning {chosen(_MATTERS, number)}"
        if table == "agendas":
            lines += [f"{matter} (action item)", ""]
            continue
        mover = chosen(_PEOPLE, f"mover {number}")
        result = chosen(_ENDS, f"end {number}")
        lines += [matter, f"      Moved by Member {mover}. {result}", ""]
    return "\n".join(lines)


def table_reply(rows: Sequence[Row], query: Mapping[str, str]) -> Row:
    """Returns the response of Datasette 0.65 to a request for a table."""
    wanted = [row for row in rows if _matches(row, query)]
    if query.get("_sort_desc") == "id":
        wanted = wanted[::-1]
    size = min(int(query.get("_size", "100")), _LARGEST_PAGE)
    after = query.get("_next", "")
    page = [row for row in wanted if row["id"] > after][: size + 1]
    more = size > 0 and len(page) > size
    shown = [{"id": row["id"]} if query.get("_col") == "id" else row for row in page[:size]]
    count = None if "_nocount" in query else len(wanted)
    return {
        "rows": shown,
        "next": page[size - 1]["id"] if more else None,
        "filtered_table_rows_count": count,
    }


def _matches(row: Row, query: Mapping[str, str]) -> bool:
    if "id__in" in query and row["id"] not in json.loads(query["id__in"]):
        return False
    day: str = row["date"]
    return query.get("date__gte", "") <= day <= query.get("date__lte", "9999")


def _image(text: str) -> str:
    """Draws the scanned page."""
    lines = "".join(
        f'<text x="40" y="{60 + 22 * at}">{escape(line)}</text>'
        for at, line in enumerate(text.splitlines())
    )
    return (
        '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 700 900" font-family="monospace"'
        f' font-size="14"><rect width="700" height="900" fill="#faf7ef"/>{lines}</svg>'
    )


def environment(url: str) -> dict[str, str]:
    # Another name of the same host, so that the towns have their own gate.
    url = url.replace("127.0.0.1", "localhost")
    return {
        "HOLDFAST_MEETINGS_URL": f"{url}/sites/{{subdomain}}",
        "HOLDFAST_MEETINGS_IMAGE_URL": f"{url}/images/{{subdomain}}{{path}}",
    }


def answer(ask: Ask) -> Reply:
    """Answers sites/TOWN/meetings/TABLE.json, as Datasette serves it, and images/TOWN/..."""
    kind, _, rest = ask.path.partition("/")
    town, _, path = rest.partition("/")
    if town not in TOWNS:
        return NOT_FOUND
    scanned_again = ask.uptime_seconds > _SCANNED_AGAIN_SECONDS
    tables = {table: rows_of(town, table, ask.now.date(), scanned_again) for table in TABLES}
    if kind == "images":
        return _scan([row for rows in tables.values() for row in rows], f"/{path}")
    table = path.rpartition("/")[2].removesuffix(".json")
    if kind != "sites" or table not in tables:
        return NOT_FOUND
    return Reply(table_reply(tables[table], ask.query), delay_seconds=0.1)


def _scan(rows: Sequence[Row], path: str) -> Reply:
    texts = [row["text"] for row in rows if row["page_image"] == path]
    return Reply(_image(texts[0]), content_type="image/svg+xml") if texts else NOT_FOUND


async def fill(sample: Sample) -> None:
    """Adds two towns, backfilled once. Their sites move when the port of the demo changes."""
    for subdomain, about in TOWNS.items():
        known = await MeetingsReads(sample.fetch).municipality(subdomain)
        fields = {"subdomain": subdomain, **about, "url": None}
        await sample.control.request(sample.pipeline, {"change" if known else "add": fields})
        if known is None:
            await sample.control.request(sample.pipeline, {"backfill": subdomain})


DEMO = DemoPart(answer, environment, fill)
