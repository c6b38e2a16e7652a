"""Reads one table of a Datasette site, 0.64 to the 1.0 alphas, in the order of its ids.

Only the order of ids is exact in both versions: sorted by date, 0.65 loses and repeats rows with
equal dates, always with status 200. Every page is checked to be in order and after the previous
one, so that a token which the site ignores is an error and never an end.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import orjson

from holdfast.errors import DiscoveryError, ItemError
from holdfast.model import Json
from holdfast.pipeline import Http
from holdfast_meetings.options import Collection, MeetingsOptions

COLUMNS = ("id", "meeting", "date", "page", "text")
DATABASE = "meetings"
_COUNT_LIMIT = 10_000  # where the 1.0 alphas stop counting
_SIZE_LIMIT = re.compile(r"_size must be <= (\d+)")
_TIME_LIMIT = re.compile(r"interrupted|time limit|too long", re.IGNORECASE)
#: Errors of SQLite when the file is replaced during a request.
_REBUILDING = re.compile(
    r"no such table|locked|malformed|not a database|unable to open|schema has changed|disk I/O",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]*>")
#: A site's error is parsed on the event loop, stored with the stream and logged.
_ERROR_BYTES = 100_000
_MARKUP_CHARACTERS = 2_000
_ERROR_CHARACTERS = 300
_SMALLEST = 10
_ID_CHARACTERS = 500  # fits in an index of PostgreSQL
_PLAIN = {"_shape": "objects", "_nofacet": "1", "_nosuggest": "1", "_sort": "id"}


@dataclass(frozen=True, slots=True)
class Rows:
    """A page of rows."""

    rows: list[Json]
    ids: list[str]
    token: str | None
    count: int | None  # of all rows that match, if the site gave an exact one
    size: int  # of the response, in bytes
    whole: bool = True  # False: the text was left out because of its size

    @property
    def last(self) -> str | None:
        return self.ids[-1] if self.ids else None


class SiteTable:
    """Reads one collection. Remembers the page size that the site can handle."""

    def __init__(self, http: Http, collection: Collection, options: MeetingsOptions) -> None:
        self._http = http
        self._collection = collection
        self._options = options
        self._url = f"{collection.url.rstrip('/')}/{DATABASE}/{collection.table}.json"
        self._size = options.page_size

    async def page(
        self,
        token: str | None,
        after: str | None,
        filters: Mapping[str, str] | None = None,
        *,
        count: bool = False,
        ids_only: bool = False,
    ) -> Rows:
        """Returns the rows after `token`, whose ids must be greater than `after`."""
        params: dict[str, Any] = {**(filters or {}), "_next": token}
        if ids_only:
            params["_col"] = "id"
        page = await self._fitting(params, count, patient=filters is None)
        self._check_order(page, after)
        if not ids_only:
            self._check_columns(page)
        return page

    async def greatest(self) -> str | None:
        """Returns the greatest id, requested without a token; None if the table is empty."""
        params = {"_sort": None, "_sort_desc": "id", "_size": "1", "_col": "id"}
        return (await self._request(params, False)).last

    async def count(self) -> int | None:
        """Returns the number of rows according to the site, if it is exact."""
        return (await self._request({"_size": "0"}, True)).count

    async def by_ids(self, ids: Sequence[str]) -> Rows:
        """Returns the first page of these rows: if they are large, not all of them."""
        page = await self._fitting({"id__in": orjson.dumps(list(ids)).decode()}, False)
        self._check_order(page, None)
        self._check_columns(page)
        return page

    async def _fitting(
        self, params: Mapping[str, Any], count: bool, *, patient: bool = True
    ) -> Rows:
        """Requests smaller pages until the site returns one. With `patient` False, a time limit is
        raised at once: with filters the site scans every row, whatever the page size."""
        while True:
            try:
                return await self._request({**params, "_size": str(self._size)}, count)
            except _TooLarge as limit:
                self._size = limit.size
            except TimeLimit:
                if not patient or self._size <= _SMALLEST:
                    raise
                self._size = max(_SMALLEST, self._size // 4)
            except ItemError as error:
                if error.code != "TOO_LARGE":
                    raise
                if self._size == 1:
                    page = await self._request({**params, "_size": "1", "_nocol": "text"}, count)
                    return replace(page, whole=False)
                self._size = max(1, self._size // 4)

    async def _request(self, params: Mapping[str, Any], count: bool) -> Rows:
        query = {**_PLAIN, **params}
        query |= {"_extra": "count"} if count else {"_nocount": "1"}
        reply = await self._http.get(
            self._url,
            params=query,
            headers=self._options.headers(self._url),
            timeout=self._options.timeout_seconds,
            max_bytes=self._options.max_reply_bytes,
            follow_off_host=False,
            raise_for_status=False,
        )
        if not reply.ok:
            await self._refuse(reply)
        return self._rows(reply.json(), len(reply.content))

    async def _refuse(self, reply: Any) -> None:
        message = _message(reply)
        if reply.status == 402 and "rate_limit" in message:
            await self._http.throttled(reply, f"402 of {self._collection.subdomain}: {message}")
        if reply.status == 402:
            raise ItemError("ACCESS_DENIED", f"{self._url}: 402 {message}")
        if reply.status == 404:
            raise self._unavailable(message)
        if reply.status == 400:
            self._refuse_request(message)
        reply.raise_for_status()

    def _unavailable(self, message: str) -> ItemError:
        return ItemError(
            "CONTENT_UNAVAILABLE",
            f"{self._url} is not there ({message}): no such site or table, or being rebuilt",
            retry_after=self._options.rebuild_seconds,
        )

    def _refuse_request(self, message: str) -> None:
        limit = _SIZE_LIMIT.search(message)
        if limit and int(limit[1]) < self._size:
            raise _TooLarge(int(limit[1]))
        if _TIME_LIMIT.search(message):
            raise TimeLimit("TIMEOUT", f"{self._url}: the site's time limit: {message}")
        if _REBUILDING.search(message):
            raise self._unavailable(message)
        raise DiscoveryError(f"{self._url} refused the request: {message}")

    def _rows(self, body: Any, size: int) -> Rows:
        if not isinstance(body, dict) or not isinstance(body.get("rows"), list):
            raise ItemError("INVALID_RESPONSE", f"{self._url}: no rows in the response")
        rows = [_as_object(row, body.get("columns")) for row in body["rows"]]
        token = body.get("next")
        if token is not None and not (isinstance(token, str) and token):
            raise DiscoveryError(f"{self._url}: the next token is {token!r}")
        ids: list[Any] = [row.get("id") for row in rows]
        if not all(isinstance(row_id, str) and row_id and "\0" not in row_id for row_id in ids):
            raise DiscoveryError(f"{self._url}: the id of a row is not text")
        if any(len(row_id) > _ID_CHARACTERS for row_id in ids):
            raise DiscoveryError(f"{self._url}: an id has more than {_ID_CHARACTERS} characters")
        return Rows(rows, ids, token, _exact_count(body), size)

    def _check_order(self, page: Rows, after: str | None) -> None:
        before = after
        for row_id in page.ids:
            if before is not None and row_id <= before:
                raise DiscoveryError(
                    f"{self._url} does not keep to the order of ids: {row_id!r} came after "
                    f"{before!r}; the site ignores the cursor or sorts differently"
                )
            before = row_id
        if page.token is not None and not page.ids:
            raise DiscoveryError(f"{self._url} returned no rows but says there are more")

    def _check_columns(self, page: Rows) -> None:
        if not page.rows:
            return
        wanted = COLUMNS if page.whole else COLUMNS[:-1]
        lacking = [name for name in wanted if name not in page.rows[0]]
        if lacking:
            raise DiscoveryError(
                f"{self._url} lacks the columns {', '.join(lacking)}: this is not a table of "
                "meetings"
            )


class TimeLimit(ItemError):
    """The site aborted a query that took too long."""


class _TooLarge(Exception):
    """The site returns at most `size` rows at once."""

    def __init__(self, size: int) -> None:
        self.size = size


def _as_object(row: Any, columns: Any) -> Json:
    if isinstance(row, dict):
        return row
    if isinstance(row, list) and isinstance(columns, list) and len(row) == len(columns):
        return dict(zip(columns, row, strict=True))
    raise ItemError("INVALID_RESPONSE", "a row of the response is neither an object nor a list")


def _exact_count(body: Json) -> int | None:
    if "filtered_table_rows_count" in body:
        count = body["filtered_table_rows_count"]
    else:
        count = body.get("count")
        if isinstance(count, int) and (body.get("count_truncated") or count > _COUNT_LIMIT):
            return None
    return count if isinstance(count, int) and not isinstance(count, bool) else None


def _message(reply: Any) -> str:
    """Returns the error message of a response, in one short line."""
    try:
        body = orjson.loads(reply.content[:_ERROR_BYTES])
    except orjson.JSONDecodeError:
        return "an HTML page" if reply.content_type == "text/html" else str(reply.sample)
    if isinstance(body, dict) and body.get("error"):
        text = _TAG.sub(" ", str(body["error"])[:_MARKUP_CHARACTERS])
        return " ".join(text.split())[:_ERROR_CHARACTERS]
    return str(reply.sample)
