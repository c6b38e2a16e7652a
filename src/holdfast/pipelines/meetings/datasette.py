"""One table of a Datasette site, 0.64 to the 1.0 alphas, read in the order of its ids.

Id order is the only one that both versions walk exactly: sorted by date, 0.65 loses and repeats
rows where dates are equal, with status 200 all the way. Every page is checked to be in that order
and past the one before it, so that a token which the site ignores is an error, never an end.
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
from holdfast.pipelines.meetings.options import Collection, MeetingsOptions

COLUMNS = ("id", "meeting", "date", "page", "text")
DATABASE = "meetings"
_COUNT_LIMIT = 10_000  # where the 1.0 alphas stop counting
_SIZE_LIMIT = re.compile(r"_size must be <= (\d+)")
_TIME_LIMIT = re.compile(r"interrupted|time limit|too long", re.IGNORECASE)
#: What SQLite says of a file that is swapped while a request looks at it.
_REBUILDING = re.compile(
    r"no such table|locked|malformed|not a database|unable to open|schema has changed|disk I/O",
    re.IGNORECASE,
)
_TAG = re.compile(r"<[^<>]*>")
#: A site's error is read on the event loop, kept in the stream and logged.
_ERROR_BYTES = 100_000
_MARKUP_CHARACTERS = 2_000
_ERROR_CHARACTERS = 300
_SMALLEST = 10
_ID_CHARACTERS = 500  # as many as an index of PostgreSQL surely takes
_PLAIN = {"_shape": "objects", "_nofacet": "1", "_nosuggest": "1", "_sort": "id"}


@dataclass(frozen=True, slots=True)
class Rows:
    """What came: the size is that of `rows`, whatever was asked for."""

    rows: list[Json]
    ids: list[str]
    token: str | None
    count: int | None  # of all rows that match, where the site gave an exact one
    size: int  # of the reply, in bytes
    whole: bool = True  # without it, the text was left out for its size

    @property
    def last(self) -> str | None:
        return self.ids[-1] if self.ids else None


class SiteTable:
    """Reads one collection. Keeps the page size that the site was found to bear."""

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
        """The rows that follow `token`, which have to be past the id `after`."""
        params: dict[str, Any] = {**(filters or {}), "_next": token}
        if ids_only:
            params["_col"] = "id"
        found = await self._fitting(params, count, patient=filters is None)
        self._check_order(found, after)
        if not ids_only:
            self._check_columns(found)
        return found

    async def greatest(self) -> str | None:
        """The last id in order, asked without a token; None where the table is empty."""
        params = {"_sort": None, "_sort_desc": "id", "_size": "1", "_col": "id"}
        found = await self._ask(params, False)
        return found.last

    async def count(self) -> int | None:
        """How many rows the site says it has, where it says so exactly."""
        return (await self._ask({"_size": "0"}, True)).count

    async def by_ids(self, ids: Sequence[str]) -> Rows:
        """The first page of those rows: large ones do not all come at once."""
        found = await self._fitting({"id__in": orjson.dumps(list(ids)).decode()}, False)
        self._check_order(found, None)
        self._check_columns(found)
        return found

    async def _fitting(
        self, params: Mapping[str, Any], count: bool, *, patient: bool = True
    ) -> Rows:
        """Asks for smaller pages until the site gives one. Where it looks at every row to find
        the page's, a smaller one takes it as long: then one is not `patient`."""
        while True:
            try:
                return await self._ask({**params, "_size": str(self._size)}, count)
            except _TooLarge as refused:
                self._size = refused.size
            except TimeLimit:
                if not patient or self._size <= _SMALLEST:
                    raise
                self._size = max(_SMALLEST, self._size // 4)
            except ItemError as error:
                if error.code != "TOO_LARGE":
                    raise
                if self._size == 1:
                    found = await self._ask({**params, "_size": "1", "_nocol": "text"}, count)
                    return replace(found, whole=False)
                self._size = max(1, self._size // 4)

    async def _ask(self, params: Mapping[str, Any], count: bool) -> Rows:
        asked = {**_PLAIN, **params}
        asked |= {"_extra": "count"} if count else {"_nocount": "1"}
        reply = await self._http.get(
            self._url,
            params=asked,
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
        told = _told(reply)
        if reply.status == 402 and "rate_limit" in told:
            await self._http.throttled(reply, f"402 of {self._collection.subdomain}: {told}")
        if reply.status == 402:
            raise ItemError("ACCESS_DENIED", f"{self._url}: 402 {told}")
        if reply.status == 404:
            raise self._unavailable(told)
        if reply.status == 400:
            self._refuse_request(told)
        reply.raise_for_status()

    def _unavailable(self, told: str) -> ItemError:
        return ItemError(
            "CONTENT_UNAVAILABLE",
            f"{self._url} is not there ({told}): no such site or table, or being rebuilt",
            retry_after=self._options.rebuild_seconds,
        )

    def _refuse_request(self, told: str) -> None:
        limit = _SIZE_LIMIT.search(told)
        if limit and int(limit[1]) < self._size:
            raise _TooLarge(int(limit[1]))
        if _TIME_LIMIT.search(told):
            raise TimeLimit("TIMEOUT", f"{self._url}: the site's time limit: {told}")
        if _REBUILDING.search(told):
            raise self._unavailable(told)
        raise DiscoveryError(f"{self._url} cannot be asked so: {told}")

    def _rows(self, body: Any, size: int) -> Rows:
        if not isinstance(body, dict) or not isinstance(body.get("rows"), list):
            raise ItemError("INVALID_RESPONSE", f"{self._url}: no rows in the reply")
        rows = [_as_object(row, body.get("columns")) for row in body["rows"]]
        token = body.get("next")
        if token is not None and not (isinstance(token, str) and token):
            raise DiscoveryError(f"{self._url}: the next token is {token!r}")
        ids: list[Any] = [row.get("id") for row in rows]
        if not all(isinstance(one, str) and one and "\0" not in one for one in ids):
            raise DiscoveryError(f"{self._url}: a row has no text as its id")
        if any(len(one) > _ID_CHARACTERS for one in ids):
            raise DiscoveryError(f"{self._url}: an id has more than {_ID_CHARACTERS} characters")
        return Rows(rows, ids, token, _exact_count(body), size)

    def _check_order(self, found: Rows, after: str | None) -> None:
        before = after
        for one in found.ids:
            if before is not None and one <= before:
                raise DiscoveryError(
                    f"{self._url} does not keep to the order of ids: {one!r} came after "
                    f"{before!r}; the site ignores the cursor or sorts otherwise"
                )
            before = one
        if found.token is not None and not found.ids:
            raise DiscoveryError(f"{self._url} gives no rows but says there are more")

    def _check_columns(self, found: Rows) -> None:
        if not found.rows:
            return
        wanted = COLUMNS if found.whole else COLUMNS[:-1]
        lacking = [name for name in wanted if name not in found.rows[0]]
        if lacking:
            raise DiscoveryError(
                f"{self._url} lacks the columns {', '.join(lacking)}: this is no table of meetings"
            )


class TimeLimit(ItemError):
    """The site ends a query that takes it too long."""


class _TooLarge(Exception):
    """The site gives no more than `size` rows at once."""

    def __init__(self, size: int) -> None:
        self.size = size


def _as_object(row: Any, columns: Any) -> Json:
    if isinstance(row, dict):
        return row
    if isinstance(row, list) and isinstance(columns, list) and len(row) == len(columns):
        return dict(zip(columns, row, strict=True))
    raise ItemError("INVALID_RESPONSE", "a row of the reply is neither object nor list")


def _exact_count(body: Json) -> int | None:
    if "filtered_table_rows_count" in body:
        found = body["filtered_table_rows_count"]
    else:
        found = body.get("count")
        if isinstance(found, int) and (body.get("count_truncated") or found > _COUNT_LIMIT):
            return None
    return found if isinstance(found, int) and not isinstance(found, bool) else None


def _told(reply: Any) -> str:
    """What a reply that is no success says, in one short line."""
    try:
        body = orjson.loads(reply.content[:_ERROR_BYTES])
    except orjson.JSONDecodeError:
        return "an HTML page" if reply.content_type == "text/html" else str(reply.sample)
    if isinstance(body, dict) and body.get("error"):
        text = _TAG.sub(" ", str(body["error"])[:_MARKUP_CHARACTERS])
        return " ".join(text.split())[:_ERROR_CHARACTERS]
    return str(reply.sample)
