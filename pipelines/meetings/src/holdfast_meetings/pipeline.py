"""The pipeline class, which puts the parts together."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

import orjson

from holdfast.errors import Category, ErrorCode, RetryClass
from holdfast.model import Job, Json, Lane, Page, StreamStatus
from holdfast.options import Option
from holdfast.orders import Conclusion, Planned
from holdfast.pipeline import Context, Done, Pipeline, Settled, StreamStatuses, Tx
from holdfast_meetings import saving, searching
from holdfast_meetings.datasette import SiteTable
from holdfast_meetings.documents import KnownDocuments
from holdfast_meetings.options import Collection, MeetingsOptions, Mode
from holdfast_meetings.planning import Planner
from holdfast_meetings.rows import REJECTS, draft_of
from holdfast_meetings.verifying import Verifier, note_inventory
from holdfast_meetings.walking import SiteWalk, query_of

#: A truncated reply, or one that is not JSON, is most likely a temporary problem of the site.
_TEMPORARY = {
    code: ErrorCode(code, Category.PARSING, RetryClass.SOON)
    for code in ("PARSE_ERROR", "INVALID_RESPONSE")
}


class Meetings(Pipeline):
    """Every page of the agendas and minutes of municipalities, from Datasette sites."""

    name = "meetings"
    columns = ("meeting", "date", "number")
    lane = Lane.BACKFILL
    options = (Option("subdomain", help="Only this municipality."),)
    error_codes: Mapping[str, ErrorCode] = {**REJECTS, **_TEMPORARY}

    def __init__(self, options: MeetingsOptions | None = None) -> None:
        self._options = options or MeetingsOptions()
        self._documents = KnownDocuments()
        self.slice_pages = self._options.batch_pages
        super().__init__()

    @property
    def webhook_secret(self) -> str:
        return self._options.webhook_secret

    @property
    def webhook_signed(self) -> bool:
        return self._options.webhook_signed

    def image_url(self, subdomain: str, path: str | None) -> str | None:
        """Returns the address of a page's image, for links."""
        template = self._options.image_url
        if not path or not template.startswith(("https://", "http://")):
            return None
        return template.format(subdomain=subdomain, path=quote(path))

    def sources(self, options: Mapping[str, Any]) -> Sequence[str]:
        return (Collection.of(options).source,)

    def fingerprint(self, source: str, options: Mapping[str, Any]) -> str:
        collection = Collection.of(options)
        query = query_of(Mode(options["mode"]), collection.url, collection.table, options["window"])
        text = orjson.dumps(query, option=orjson.OPT_SORT_KEYS)
        return hashlib.sha256(text).hexdigest()

    def discover(self, source: str, cursor: Any, ctx: Context) -> AsyncIterator[Page]:
        options = ctx.options
        table = SiteTable(ctx.http, Collection.of(options), self._options)
        walk = SiteWalk(table, Mode(options["mode"]), options["window"], self._options)
        return walk.pages(cursor)

    async def process(self, row: Json, ctx: Context) -> Done:
        draft = draft_of(row)
        return Done(draft.position._asdict(), effects=draft)

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        await saving.save(tx, settled, self._documents)

    async def note(self, tx: Tx, job: Job, notes: Any, taken: int) -> None:
        await note_inventory(tx, job, notes)

    async def plan(self, tx: Tx, request: Json, streams: StreamStatuses, now: datetime) -> Planned:
        return await Planner(tx, streams, now, self._options).plan(request)

    async def conclude(self, tx: Tx, job: Job, stream: StreamStatus) -> Conclusion:
        return await Verifier(tx, job, stream, self._options).conclude()

    async def tend(self, tx: Tx) -> bool:
        return await searching.PAGES.index_some(tx)
