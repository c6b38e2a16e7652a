"""A Wikidata on loopback that speaks the Action API with its ugliness, over an entity world.

Errors come with HTTP 200; the edge answers in HTML; requests without a proper User-Agent are
refused; robots.txt forbids the API to crawlers. Searching folds letters as Elasticsearch does: it
drops marks and case, and knows nothing of transliteration.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Iterable
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

from rapidfuzz.distance import OSA

from pipelines.linker.tests.entity_world import EntityWorld, Json
from tests.world import Answer, Request, World, json_answer, text_answer

API = "/w/api.php"
_MOST_IDS = 50
_QUERY_CHARACTERS = 300
_STATEMENT = re.compile(r'haswbstatement:((?:P\d+=(?:"[^"]*"|[^\s|]+)\|?)+)')
_CLAUSE = re.compile(r'(P\d+)=(?:"([^"]*)"|([^\s|]+))')

#: Answers in the server's place, or lets the request through with None. Numbers count from 1.
Trouble = Callable[[dict[str, str], int], Answer | None]


def maxlag(lag: float = 7.2, retry_after: str = "5") -> Answer:
    error = {
        "code": "maxlag",
        "info": f"Waiting for 10.64.0.1: {lag} seconds lagged.",
        "host": "10.64.0.1",
        "lag": lag,
        "type": "db",
    }
    headers = {"Retry-After": retry_after, "X-Database-Lag": str(int(lag))}
    return api_error(error, headers)


def api_error(error: Json, headers: dict[str, str] | None = None) -> Answer:
    own = {"MediaWiki-API-Error": error["code"], **(headers or {})}
    return json_answer({"error": error, "servedby": "mw-api-ext"}, 200, own)


def html(status: int, headers: dict[str, str] | None = None) -> Answer:
    body = b"<!DOCTYPE html><html><title>Wikimedia Error</title><p>Too many requests.</p></html>"
    return Answer(status, body, {"Content-Type": "text/html; charset=utf-8", **(headers or {})})


def folded(text: str) -> str:
    bare = "".join(c for c in unicodedata.normalize("NFKD", text) if not unicodedata.combining(c))
    return " ".join(re.sub(r"[^\w\s]+", " ", bare.casefold()).split())


class WikidataServer:
    def __init__(self, world: EntityWorld) -> None:
        self._entities = world
        self._web = World()
        self.trouble: Trouble | None = None
        self.log: list[dict[str, str]] = []
        self._names: list[tuple[str, str, str]] = []  # folded, as written, id
        self._words: dict[str, set[str]] = defaultdict(set)
        self._statements: dict[tuple[str, str], set[str]] = defaultdict(set)
        for entity in world.entities.values():
            if entity["type"] == "item":
                self._index(entity)
        self._names.sort()

    async def __aenter__(self) -> Self:
        await self._web.__aenter__()
        self._web.on(API, self._answer)
        self._web.on("/robots.txt", text_answer("User-agent: *\nDisallow: /w/\n"))
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._web.__aexit__(kind, error, trace)

    @property
    def url(self) -> str:
        return self._web.url(API)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._web.port}"

    @property
    def requests(self) -> list[Request]:
        return self._web.requests

    def calls(self, action: str) -> list[dict[str, str]]:
        return [params for params in self.log if params.get("action") == action]

    def _index(self, entity: Json) -> None:
        names = _names(entity)
        self._names += [(folded(name), name, entity["id"]) for name in names]
        descriptions = [each["value"] for each in _values(entity["descriptions"])]
        for text in (*names, *descriptions):
            for word in folded(text).split():
                self._words[word].add(entity["id"])
        for property_id, claims in (entity["claims"] or {}).items():
            for claim in claims:
                value = _statement_text(claim["mainsnak"])
                if value is not None and claim["rank"] != "deprecated":
                    self._statements[property_id, value].add(entity["id"])

    def _answer(self, request: Request) -> Answer:
        posted = parse_qs(request.body.decode()) if request.method == "POST" else {}
        params = {**request.query, **{name: values[-1] for name, values in posted.items()}}
        self.log.append(params)
        if "(" not in request.headers.get("user-agent", ""):
            return html(403)
        if self.trouble is not None:
            answer = self.trouble(params, len(self.log))
            if answer is not None:
                return answer
        action = params.get("action")
        if action == "wbsearchentities":
            return self._search(params)
        if action == "wbgetentities":
            return self._get(params)
        if action == "query" and params.get("list") == "search":
            return self._query(params)
        info = f'Unrecognized value for parameter "action": {action}.'
        return api_error({"code": "badvalue", "info": info})

    def _search(self, params: dict[str, str]) -> Answer:
        for name in ("search", "language"):
            if not params.get(name):
                info = f'The "{name}" parameter must be set.'
                return api_error({"code": "missingparam", "info": info})
        wanted = folded(params["search"])
        limit, offset = int(params.get("limit", 7)), int(params.get("continue", 0))
        hits = self._prefixed(wanted)
        page = [self._hit(entity_id, text) for entity_id, text in hits[offset : offset + limit]]
        reply: Json = {"searchinfo": {"search": params["search"]}, "search": page, "success": 1}
        if len(hits) > offset + limit:
            reply["search-continue"] = offset + limit
        return json_answer(reply)

    def _prefixed(self, wanted: str) -> list[tuple[str, str]]:
        """Exact names first, then longer ones; each item once."""
        if not wanted:
            return []
        start = bisect_left(self._names, (wanted, "", ""))
        end = bisect_left(self._names, (wanted + "\U0010ffff", "", ""))
        found = self._names[start:end]
        found.sort(key=lambda name: (name[0] != wanted, len(name[0]), _number(name[2])))
        unique: dict[str, str] = {}
        for _, text, entity_id in found:
            unique.setdefault(entity_id, text)
        return list(unique.items())

    def _hit(self, entity_id: str, text: str) -> Json:
        entity = self._entities.entities[entity_id]
        labels = entity["labels"] or {}
        is_label = any(each["value"] == text for each in labels.values())
        hit: Json = {
            "id": entity_id,
            "title": entity_id,
            "pageid": _number(entity_id),
            "concepturi": f"http://www.wikidata.org/entity/{entity_id}",
            "repository": "wikidata",
            "url": f"//www.wikidata.org/wiki/{entity_id}",
            "display": {},
            "match": {"type": "label" if is_label else "alias", "language": "en", "text": text},
        }
        if "en" in labels:
            hit["label"] = labels["en"]["value"]
            hit["display"]["label"] = labels["en"]
        if not is_label:
            hit["aliases"] = [text]
        return hit

    def _query(self, params: dict[str, str]) -> Answer:
        query = params.get("srsearch", "")
        if len(query) > _QUERY_CHARACTERS:
            info = f"Search request is longer than {_QUERY_CHARACTERS} characters."
            return api_error({"code": "cirrussearch-query-too-long", "info": info})
        ids = self._found_by_text(query)
        limit = int(params.get("srlimit", 10))
        ordered = sorted(ids, key=_number)[:limit]
        hits = [{"ns": 0, "title": each, "pageid": _number(each)} for each in ordered]
        return json_answer({"batchcomplete": True, "query": {"search": hits}})

    def _found_by_text(self, query: str) -> set[str]:
        sets: list[set[str]] = []
        for match in _STATEMENT.finditer(query):
            clauses = _CLAUSE.findall(match[1])
            keys = [(pid, quoted or bare) for pid, quoted, bare in clauses]
            sets.append(set().union(*(self._statements.get(key, set()) for key in keys)))
        for word in _STATEMENT.sub(" ", query).split():
            fuzzy = word.endswith("~")
            for part in folded(word).split():
                sets.append(self._fuzzy(part) if fuzzy else self._words.get(part, set()))
        return set.intersection(*sets) if sets else set()

    def _fuzzy(self, word: str) -> set[str]:
        """As Lucene does: one change up to five letters, two beyond."""
        most = 1 if len(word) <= 5 else 2
        near = (
            ids
            for other, ids in self._words.items()
            if abs(len(other) - len(word)) <= most
            and OSA.distance(word, other, score_cutoff=most) <= most
        )
        return set().union(*near)

    def _get(self, params: dict[str, str]) -> Answer:
        ids = params.get("ids", "").split("|")
        if len(ids) > _MOST_IDS:
            info = f'Too many values supplied for parameter "ids". The limit is {_MOST_IDS}.'
            return api_error({"code": "toomanyvalues", "info": info, "limit": _MOST_IDS})
        for entity_id in ids:
            if not re.fullmatch(r"[QP]\d+", entity_id) or _number(entity_id) > 2**31 - 1:
                info = "Could not find an entity with the ID"
                return api_error({"code": "no-such-entity", "info": info, "id": entity_id})
        shown = {each: self._shown(each, params) for each in ids}
        return json_answer({"entities": shown, "success": 1})

    def _shown(self, entity_id: str, params: dict[str, str]) -> Json:
        entity = self._entities.get(entity_id)
        if entity is None:
            return {"id": entity_id, "missing": ""}
        props = params.get("props", "labels|aliases|descriptions|claims|datatype").split("|")
        shown = {"type": entity["type"], "id": entity["id"]}
        shown |= {prop: entity[prop] for prop in props if prop in entity}
        languages = params.get("languages")
        if languages and isinstance(shown.get("labels"), dict):
            kept = {c: v for c, v in shown["labels"].items() if c in languages.split("|")}
            shown["labels"] = kept or []
        if entity_id in self._entities.redirects:
            shown["redirects"] = {"from": entity_id, "to": entity["id"]}
        return shown


def _number(entity_id: str) -> int:
    return int(entity_id[1:])


def _values(texts: Any) -> Iterable[Json]:
    return texts.values() if isinstance(texts, dict) else ()


def _names(entity: Json) -> list[str]:
    labels = [each["value"] for each in _values(entity["labels"])]
    return labels + [alias["value"] for each in _values(entity["aliases"]) for alias in each]


def _statement_text(snak: Json) -> str | None:
    if snak["snaktype"] != "value":
        return None
    value = snak["datavalue"]["value"]
    if snak["datatype"] == "wikibase-item":
        return str(value["id"])
    return value if isinstance(value, str) else None
