"""Wikidata's Action API: searches, and entities in batches.

Errors come with HTTP 200, and the edge answers in HTML. Every reply that says "not now" (lag,
limits, a 5xx, HTML instead of JSON) closes the gate of the host for all workers and uses up no
attempt; every reply that says "never" fails the item.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from typing import Any

from holdfast.errors import ItemError
from holdfast.model import Json
from holdfast.pipeline import Http
from holdfast_linker.asking import asked, is_page
from holdfast_linker.entities import (
    Entity,
    Kind,
    as_map,
    parse_entities,
)
from holdfast_linker.names import cut

URL = "https://www.wikidata.org/w/api.php"
MOST_IDS = 50  # ids in one wbgetentities, for clients without special rights
MOST_HITS = 50  # hits in one wbsearchentities
_QUERY_CHARACTERS = 300  # the longest query that CirrusSearch accepts
_LARGEST_NUMBER = 2**31 - 1  # a larger one makes the whole batch fail
_SHORTEST_LAG_SECONDS = 5.0
_ITEM_ID = re.compile(r"Q([1-9]\d{0,9})")
_ID = re.compile(r"[QP]([1-9]\d{0,9})")
# CirrusSearch reads these as operators.
_OPERATORS = re.compile(r'[~!"\\|()\[\]{}<>:*?+^/-]+')
_NOT_NOW = ("maxlag", "ratelimited", "readonly", "internal_api_error", "cirrussearch-too-busy")


@dataclass(frozen=True, slots=True)
class Api:
    """Where and how to send requests. A copy of Wikidata, or another Wikibase, has another URL."""

    url: str = URL
    language: str = "en"
    maxlag_seconds: int = 5
    user_agent: str | None = None  # None: the client's own
    languages: Sequence[str] = ()  # languages of labels; none given: all


@dataclass(frozen=True, slots=True)
class Hit:
    """One result of a search.

    Labels may be absent, and of the aliases only the matched one is included, so nothing is scored
    by a hit."""

    id: str
    label: str
    description: str
    matched: str


@dataclass(frozen=True, slots=True)
class Hits:
    hits: tuple[Hit, ...]
    following: int | None  # the offset of the next page


def user_agent(product: str, contact: str, library: str) -> str:
    """Returns what Wikimedia's policy requires: `name/version (contact) library/version`."""
    if not contact.strip():
        raise ValueError("Wikimedia asks for a contact: an address or a URL")
    return f"{product} ({contact.strip()}) {library}"


async def search_entities(
    http: Http, api: Api, text: str, *, language: str, limit: int = 10, offset: int = 0
) -> Hits:
    """Finds items with a label or an alias that begins with the text."""
    params = {
        "action": "wbsearchentities",
        "search": cut(text),
        "language": language,
        "uselang": api.language,
        "type": "item",
        "limit": min(limit, MOST_HITS),
        "continue": offset or None,
    }
    return parse_hits(await _ask(http, api, params))


async def search_text(http: Http, api: Api, query: str, *, limit: int = 10) -> list[str]:
    """Returns the ids of items that CirrusSearch finds, in its order."""
    params = {
        "action": "query",
        "list": "search",
        "srsearch": query,
        "srnamespace": 0,
        "srlimit": min(limit, MOST_HITS),
        "srprop": "",
        "srinfo": "",
    }
    return parse_titles(await _ask(http, api, params))


async def fetch_entities(
    http: Http, api: Api, ids: Iterable[str], *, properties: bool = False
) -> dict[str, Entity | None]:
    """Returns the entities by the requested ids, 50 to a call; None if there is no such thing.

    With `properties`, only a property's label and datatype are fetched."""
    wanted = list(dict.fromkeys(ids))
    known: dict[str, Entity | None] = dict.fromkeys(wanted)
    rest = iter(entity_id for entity_id in wanted if _can_exist(entity_id))
    while batch := list(islice(rest, MOST_IDS)):
        known.update(await _fetch_batch(http, api, batch, properties))
    return known


async def _fetch_batch(
    http: Http, api: Api, batch: Sequence[str], properties: bool
) -> dict[str, Entity | None]:
    params = {
        "action": "wbgetentities",
        "ids": "|".join(batch),
        "props": "labels|datatype" if properties else "labels|aliases|descriptions|claims|info",
        "languages": "|".join(api.languages) or None,
        "redirects": "yes",
    }
    try:
        reply = await _ask(http, api, params)
    except NoSuchEntity as error:
        if error.entity_id not in batch or len(batch) == 1:
            return dict.fromkeys(batch)
        others = [entity_id for entity_id in batch if entity_id != error.entity_id]
        return {error.entity_id: None, **await _fetch_batch(http, api, others, properties)}
    return parse_entities(reply, batch)


def statement_queries(pairs: Iterable[tuple[str, str]]) -> list[str]:
    """Returns searches for items with any of these exact statements, as few as fit the query's
    length."""
    queries: list[str] = []
    current = ""
    for property_id, value in pairs:
        clause = f"{property_id}={_quoted(value)}"
        joined = f"{current}|{clause}" if current else f"haswbstatement:{clause}"
        if current and len(joined) > _QUERY_CHARACTERS:
            queries.append(current)
            joined = f"haswbstatement:{clause}"
        if len(joined) <= _QUERY_CHARACTERS:  # no identifier is longer
            current = joined
    return [*queries, current] if current else queries


def _quoted(value: str) -> str:
    bare = value.replace('"', "").replace("|", "")
    return f'"{bare}"' if " " in bare else bare


def word_query(name: str, *, fuzzy: bool = False) -> str:
    """Returns a search for items with all these words, in any order, or with similar words."""
    query = ""
    for word in _OPERATORS.sub(" ", name).split():
        marked = f"{word}~" if fuzzy and len(word) > 2 else word
        if len(query) + 1 + len(marked) > _QUERY_CHARACTERS:
            break
        query = f"{query} {marked}".strip()
    return query


class NoSuchEntity(ItemError):
    """Raised if one id of a batch cannot be an entity's, which fails the whole batch."""

    def __init__(self, entity_id: str) -> None:
        super().__init__("CONTENT_NOT_FOUND", f"there is no entity {entity_id}")
        self.entity_id = entity_id


async def _ask(http: Http, api: Api, params: Mapping[str, Any]) -> Json:
    return await asked(http, api.url, partial(_ask_once, http, api, params))


async def _ask_once(http: Http, api: Api, params: Mapping[str, Any]) -> Json:
    """Makes one call. A documented API is called whatever robots.txt says to crawlers."""
    sent = {**params, "format": "json", "formatversion": 2, "maxlag": api.maxlag_seconds}
    headers = {"User-Agent": api.user_agent} if api.user_agent else {}
    reply = await http.get(
        api.url, params=sent, headers=headers, robots=False, raise_for_status=False
    )
    if reply.status >= 500 and not reply.throttled:
        await http.throttled(reply, f"HTTP {reply.status}")
    reply.raise_for_status()
    if is_page(reply):
        await http.throttled(reply, "HTML instead of JSON")
    body = reply.json()
    if not isinstance(body, dict):
        raise ItemError("INVALID_RESPONSE", f"{api.url} answered {reply.sample}")
    error = error_of(body)
    if error is None:
        return body
    if error.code.startswith(_NOT_NOW):
        seconds = max(reply.retry_after or 0.0, _SHORTEST_LAG_SECONDS)
        await http.throttled(replace(reply, retry_after=seconds), error.message)
    if error.code == "no-such-entity":
        raise NoSuchEntity(error.entity_id)
    raise ItemError("INVALID_RESPONSE", f"{api.url}: {error.message}")


@dataclass(frozen=True, slots=True)
class ApiError:
    code: str
    info: str
    lag: float | None = None
    entity_id: str = ""

    @property
    def message(self) -> str:
        lag = f" (lag {self.lag:g} s)" if self.lag is not None else ""
        return f"{self.code}: {self.info[:200]}{lag}"


def error_of(body: Mapping[str, Any]) -> ApiError | None:
    """Returns the error in a reply that came with HTTP 200; old and new formats."""
    raw = body.get("error")
    if raw is None and body.get("errors"):
        raw = body["errors"][0]
    if raw is None:
        return None
    error = as_map(raw)
    info = str(error.get("info") or error.get("text") or raw)
    lag = error.get("lag")
    return ApiError(
        str(error.get("code", "unknown")),
        info,
        float(lag) if isinstance(lag, int | float) else None,
        str(error.get("id", "")),
    )


def parse_hits(body: Mapping[str, Any]) -> Hits:
    if "search" not in body:
        raise ItemError("INVALID_RESPONSE", "the reply to wbsearchentities has no `search`")
    hits = tuple(_hit(as_map(raw)) for raw in body["search"])
    following = body.get("search-continue")
    return Hits(hits, int(following) if following is not None else None)


def _hit(raw: Mapping[str, Any]) -> Hit:
    display = as_map(raw.get("display"))
    label = raw.get("label") or as_map(display.get("label")).get("value") or ""
    description = raw.get("description") or as_map(display.get("description")).get("value") or ""
    matched = as_map(raw.get("match")).get("text") or ""
    return Hit(str(raw["id"]), str(label), str(description), str(matched))


def parse_titles(body: Mapping[str, Any]) -> list[str]:
    query = as_map(body.get("query"))
    if "search" not in query:
        raise ItemError("INVALID_RESPONSE", "the reply to list=search has no `query.search`")
    titles = [str(as_map(raw).get("title", "")) for raw in query["search"]]
    return [title for title in titles if _ITEM_ID.fullmatch(title)]


def _can_exist(entity_id: str) -> bool:
    match = _ID.fullmatch(entity_id)
    return match is not None and int(match[1]) <= _LARGEST_NUMBER


def value_items(entities: Iterable[Entity], property_ids: Iterable[str]) -> list[str]:
    """Returns the items that these entities have as values: their names are needed if a row gives a
    text."""
    wanted = list(property_ids)
    return sorted(
        {
            value.text
            for entity in entities
            for property_id in wanted
            for value in entity.best(property_id)
            if value.kind is Kind.ITEM
        }
    )
