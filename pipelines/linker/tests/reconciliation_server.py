"""A Reconciliation service on loopback, version 0.2, over an entity world.

It refuses what the schemas refuse, answers what it is asked and nothing else, and can leave
queries out, refuse with HTTP 200, or answer in HTML, as real services do.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from types import TracebackType
from typing import Any, Self
from urllib.parse import parse_qs

from rapidfuzz import fuzz

from pipelines.linker.tests.entity_world import EntityWorld, Json
from pipelines.linker.tests.schemas import (
    EXTENSION_QUERY,
    EXTENSION_RESULT,
    MANIFEST,
    QUERIES,
    RESULTS,
    check,
    fits,
)
from pipelines.linker.tests.wikidata_server import folded
from tests.world import Answer, Request, World, json_answer, text_answer

PATH = "/reconcile"
_LIMIT = 10

Trouble = Callable[[dict[str, Any], int], Answer | None]


class ReconciliationServer:
    def __init__(self, world: EntityWorld, **manifest: Any) -> None:
        self._entities = [e for e in world.entities.values() if e["type"] == "item"]
        self._by_id = world.entities
        self._web = World()
        self._manifest = manifest
        self.trouble: Trouble | None = None
        self.batches: list[dict[str, Any]] = []
        self.extensions: list[dict[str, Any]] = []

    async def __aenter__(self) -> Self:
        await self._web.__aenter__()
        self._web.on(PATH, self._answer)
        self._web.on("/robots.txt", text_answer("User-agent: *\nDisallow: /\n"))
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
        return self._web.url(PATH)

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self._web.port}"

    def _answer(self, request: Request) -> Answer:
        form = {name: values[-1] for name, values in parse_qs(request.body.decode()).items()}
        form |= request.query
        if "extend" in form:
            return self._extend(json.loads(form["extend"]))
        if "queries" not in form:
            check(MANIFEST, self._about())
            return json_answer(self._about())
        batch = json.loads(form["queries"])
        self.batches.append(batch)
        if self.trouble is not None:
            answer = self.trouble(batch, len(self.batches))
            if answer is not None:
                return answer
        if not fits(QUERIES, batch):
            return text_answer("bad queries", 400)
        results = {key: {"result": self._candidates(query)} for key, query in batch.items()}
        check(RESULTS, results)
        return json_answer(results)

    def _about(self) -> Json:
        about: Json = {
            "versions": ["0.1", "0.2"],
            "name": "A local service",
            "identifierSpace": "http://www.wikidata.org/entity/",
            "schemaSpace": "http://www.wikidata.org/prop/direct/",
            "view": {"url": "https://www.wikidata.org/wiki/{{id}}"},
            "extend": {"property_settings": []},
        }
        return {**about, **self._manifest}

    def _candidates(self, query: Json) -> list[Json]:
        wanted = folded(query.get("query", ""))
        scored = []
        for entity in self._entities:
            labels = entity["labels"].values() if entity["labels"] else ()
            best = max((fuzz.ratio(wanted, folded(each["value"])) for each in labels), default=0)
            if best >= 70:
                scored.append((best, entity))
        scored.sort(key=lambda pair: (-pair[0], int(pair[1]["id"][1:])))
        return [_candidate(entity, score) for score, entity in scored[: query.get("limit", _LIMIT)]]

    def _extend(self, asked: Json) -> Answer:
        check(EXTENSION_QUERY, asked)
        self.extensions.append(asked)
        properties = [each["id"] for each in asked["properties"]]
        rows = {
            entity_id: {pid: _cells(self._by_id.get(entity_id), pid) for pid in properties}
            for entity_id in asked["ids"]
        }
        meta = [{"id": pid, "name": pid} for pid in properties]
        check(EXTENSION_RESULT, {"meta": meta, "rows": rows})
        return json_answer({"meta": meta, "rows": rows})


def _candidate(entity: Json, score: float) -> Json:
    name = next(iter(entity["labels"].values()))["value"]
    types = [c["mainsnak"]["datavalue"]["value"]["id"] for c in _claims(entity, "P31")]
    return {
        "id": entity["id"],
        "name": name,
        "score": score,
        "match": False,
        "type": [{"id": each, "name": each} for each in types],
        "features": [{"id": "all_labels", "value": score}],
    }


def _claims(entity: Json | None, property_id: str) -> list[Json]:
    claims = entity["claims"] if entity else {}
    values = claims.get(property_id, []) if isinstance(claims, dict) else []
    return [claim for claim in values if claim["mainsnak"]["snaktype"] == "value"]


def _cells(entity: Json | None, property_id: str) -> list[Json]:
    return [_cell(claim["mainsnak"]["datavalue"]) for claim in _claims(entity, property_id)]


def _cell(datavalue: Json) -> Json:
    value = datavalue["value"]
    if datavalue["type"] == "time":
        time = value["time"][1:]
        return {"str": time[:4]} if "-00" in time else {"date": time}
    if datavalue["type"] == "wikibase-entityid":
        return {"id": value["id"], "name": value["id"]}
    return {"str": str(value)}
