"""Queries a Reconciliation service, version 0.2, as OpenRefine does.

A reply without an answer for a query is an error, never "nothing found".
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import orjson

from holdfast.errors import ItemError
from holdfast.pipeline import Http
from holdfast_linker.asking import asked, is_page
from holdfast_linker.dates import BadDate, parse_date
from holdfast_linker.entities import Candidate, Kind, Value, as_map
from holdfast_linker.entries import Entry, item_of

#: Passed by each request: the gate of the service.
Through = Callable[[], AbstractAsyncContextManager[Any]]
BATCH_SIZE = 10  # OpenRefine's size; services that give none can handle it
_VERSIONS = ("0.2", "0.1")  # the same queries; a service of 0.1 names no versions
_IDS_OF_ONE_EXTENSION = 50
_MOST_CANDIDATES = 100  # how many are read from one answer, more than any query asks for
_LONGEST_ID, _LONGEST_TEXT = 200, 2_000
# Anyone can run a service: how much of an answer is read, and of how large an answer.
_MOST_TYPES, _MOST_FEATURES, _MOST_PROPERTIES, _MOST_CELLS = 50, 20, 100, 100
_LONGEST_CELL = 1_000
_LONGEST_NUMBER = 100
_MOST_BYTES = 2 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Service:
    """The parts of a service's manifest that we use."""

    url: str
    name: str
    identifier_space: str
    schema_space: str
    view_url: str | None = None
    extends: bool = False
    batch_size: int = BATCH_SIZE

    def page_of(self, entity_id: str) -> str | None:
        """Returns the address where people can look at an entity."""
        return self.view_url.replace("{{id}}", entity_id) if self.view_url else None


@dataclass(frozen=True, slots=True)
class Query:
    text: str
    type: str | None = None
    limit: int = 10
    properties: tuple[tuple[str, tuple[str, ...]], ...] = ()

    def to_json(self) -> dict[str, Any]:
        query: dict[str, Any] = {"limit": self.limit}
        if self.text:
            query["query"] = self.text
        if self.type:
            query["type"] = self.type
            query["type_strict"] = "should"
        if self.properties:
            query["properties"] = [
                {"pid": property_id, "v": [_property_value(text) for text in texts]}
                for property_id, texts in self.properties
            ]
        return query


@dataclass(frozen=True, slots=True)
class ServiceCandidate:
    id: str
    name: str
    score: float
    match: bool = False
    description: str = ""
    types: tuple[str, ...] = ()
    features: Mapping[str, float | bool] = field(default_factory=dict)


def query_of(entry: Entry, limit: int = 10) -> Query:
    """Returns the query for an entry; everything that it gives besides the name becomes a
    property."""
    texts: dict[str, list[str]] = {}
    for given in (*entry.identifiers, *entry.dates, *entry.properties):
        text = str(given.date) if given.date is not None else given.text
        texts.setdefault(given.property_id, []).append(text)
    properties = tuple((property_id, tuple(values)) for property_id, values in texts.items())
    return Query(entry.names[0] if entry.names else "", entry.type, limit, properties)


def _property_value(text: str) -> str | dict[str, str]:
    item = item_of(text)
    return {"id": item} if item else text


async def fetch_service(http: Http, url: str, through: Through = nullcontext) -> Service:
    return parse_manifest(await _ask(http, "GET", url, through), url)


def parse_manifest(manifest: Any, url: str) -> Service:
    if not isinstance(manifest, Mapping):
        raise ItemError("INVALID_RESPONSE", f"{url} has no manifest")
    missing = [key for key in ("name", "identifierSpace", "schemaSpace") if not manifest.get(key)]
    if missing:
        raise ItemError("INVALID_RESPONSE", f"the manifest of {url} lacks {', '.join(missing)}")
    versions = manifest.get("versions", ["0.1"])
    if not set(versions) & set(_VERSIONS):
        spoken = ", ".join(map(str, versions))
        raise ItemError("INVALID_RESPONSE", f"{url} speaks version {spoken}, not 0.2")
    size = manifest.get("batchSize")
    return Service(
        url=url,
        name=str(manifest["name"]),
        identifier_space=str(manifest["identifierSpace"]),
        schema_space=str(manifest["schemaSpace"]),
        view_url=as_map(manifest.get("view")).get("url"),
        extends="extend" in manifest,
        batch_size=size if isinstance(size, int) and 0 < size < 1000 else BATCH_SIZE,
    )


async def reconcile(
    http: Http,
    service: Service,
    queries: Iterable[Mapping[str, Any]],
    through: Through = nullcontext,
) -> list[list[ServiceCandidate] | ItemError]:
    """Returns the candidates of each query (`Query.to_json`), in the queries' order.

    A query that the service left out has an error in its place, so that it harms no other."""
    answers: list[list[ServiceCandidate] | ItemError] = []
    for batch in _batches(queries, service.batch_size):
        sent = {f"q{number}": query for number, query in enumerate(batch)}
        form = {"queries": orjson.dumps(sent).decode()}
        body = await _ask(http, "POST", service.url, through, data=form)
        answers += parse_results(body, list(sent))
    return answers


def _batches(
    queries: Iterable[Mapping[str, Any]], size: int
) -> Iterable[Sequence[Mapping[str, Any]]]:
    batch: list[Mapping[str, Any]] = []
    for query in queries:
        batch.append(query)
        if len(batch) == size:
            yield batch
            batch = []
    if batch:
        yield batch


def parse_results(body: Any, keys: Sequence[str]) -> list[list[ServiceCandidate] | ItemError]:
    if not isinstance(body, Mapping):
        raise ItemError("INVALID_RESPONSE", "the service's reply is not an object")
    if body.get("status") == "error":
        message = str(body.get("message") or body.get("error") or "no reason given")
        raise ItemError("INVALID_RESPONSE", f"the service refused the queries: {message[:200]}")
    return [_parse_result(body.get(key), key) for key in keys]


def _parse_result(raw: Any, key: str) -> list[ServiceCandidate] | ItemError:
    result = as_map(raw).get("result")
    if not isinstance(result, list):
        return ItemError("INVALID_RESPONSE", f"the service gave no result for {key}")
    try:
        return [_service_candidate(as_map(raw)) for raw in result[:_MOST_CANDIDATES]]
    except (KeyError, TypeError, ValueError) as error:
        return ItemError("INVALID_RESPONSE", f"a candidate of {key} is incomplete: {error!r}")


def _service_candidate(raw: Mapping[str, Any]) -> ServiceCandidate:
    types = raw.get("type") or ()
    features = raw.get("features") or ()
    return ServiceCandidate(
        id=_id(raw["id"]),
        name=_text(raw["name"], _LONGEST_TEXT),
        score=float(raw["score"]),
        match=raw.get("match") is True,
        description=_text(raw.get("description") or "", _LONGEST_TEXT),
        types=tuple(_text(as_map(t).get("id", t), _LONGEST_ID) for t in islice(types, _MOST_TYPES)),
        features={
            _text(f["id"], _LONGEST_ID): _feature(f["value"])
            for f in map(as_map, islice(features, _MOST_FEATURES))
            if "value" in f
        },
    )


def _id(value: Any) -> str:
    """Returns the id unchanged: a part of an id would be another one."""
    text = str(value)
    if not text or len(text) > _LONGEST_ID or not text.isprintable():
        raise ValueError(f"{text[:50]!r} is not an id")
    return text


def _feature(value: Any) -> float | bool:
    return value if isinstance(value, int | float) else False


def _text(value: Any, longest: int) -> str:
    """Shortens a text.

    Anyone can run a service: what it says must fit into a database and a page."""
    return str(value)[:longest].replace("\0", "")


async def extend(
    http: Http,
    service: Service,
    ids: Sequence[str],
    property_ids: Sequence[str],
    through: Through = nullcontext,
) -> dict[str, dict[str, list[Value]]]:
    """Returns the values of these properties, if the service offers them; else nothing."""
    values: dict[str, dict[str, list[Value]]] = {}
    if not service.extends or not property_ids:
        return values
    for start in range(0, len(ids), _IDS_OF_ONE_EXTENSION):
        wanted = list(ids[start : start + _IDS_OF_ONE_EXTENSION])
        request = {
            "ids": wanted,
            "properties": [{"id": property_id} for property_id in property_ids],
        }
        form = {"extend": orjson.dumps(request).decode()}
        body = await _ask(http, "POST", service.url, through, data=form)
        values.update(parse_extension(body))
    return values


def parse_extension(body: Any) -> dict[str, dict[str, list[Value]]]:
    rows = as_map(as_map(body).get("rows"))
    return {
        _text(entity_id, _LONGEST_ID): {
            _text(property_id, _LONGEST_ID): [
                _extended_value(as_map(cell)) for cell in islice(cells, _MOST_CELLS)
            ]
            for property_id, cells in islice(as_map(row).items(), _MOST_PROPERTIES)
        }
        for entity_id, row in islice(rows.items(), _IDS_OF_ONE_EXTENSION)
    }


def _extended_value(cell: Mapping[str, Any]) -> Value:
    if "id" in cell:
        name = _text(cell.get("name") or "", _LONGEST_CELL)
        return Value(Kind.ITEM, _text(cell["id"], _LONGEST_ID), names=(name,) if name else ())
    if "date" in cell:
        return _date_value(_text(cell["date"], _LONGEST_CELL))
    for kind in ("float", "int"):
        if kind in cell:
            return Value(Kind.QUANTITY, _text(cell[kind], _LONGEST_NUMBER))
    if "str" in cell:
        return Value(Kind.TEXT, _text(cell["str"], _LONGEST_CELL))
    return Value(Kind.UNKNOWN)


def _date_value(text: str) -> Value:
    try:
        date = parse_date(text)
    except BadDate:
        return Value(Kind.TEXT, text)
    return Value(Kind.DATE, str(date), date=date)


def candidate_of_service(
    candidate: ServiceCandidate, entry_type: str | None, values: Mapping[str, Sequence[Value]]
) -> Candidate:
    """Converts a service's candidate for our scoring.

    The service was asked for the type, and it alone knows which of its types are above which."""
    types = {entry_type} if entry_type else set()
    return Candidate(
        id=candidate.id,
        label=candidate.name,
        names=(candidate.name,),
        description=candidate.description,
        types=frozenset({*candidate.types, *types}),
        values=values,
    )


async def _ask(http: Http, method: str, url: str, through: Through, **sent: Any) -> Any:
    async def send() -> Any:
        async with through():
            return await _ask_once(http, method, url, **sent)

    return await asked(http, url, send)


async def _ask_once(http: Http, method: str, url: str, **sent: Any) -> Any:
    """Makes one call of a documented API, for which robots.txt is not meant."""
    reply = await http.request(
        method, url, robots=False, raise_for_status=False, max_bytes=_MOST_BYTES, **sent
    )
    # Neither closes a gate: people choose the address, and it may be anybody's page.
    if reply.status >= 500 and not reply.throttled:
        raise ItemError("UNKNOWN_ERROR", f"{url} answers {reply.status}")
    reply.raise_for_status()
    if is_page(reply):
        raise ItemError("INVALID_RESPONSE", f"{url} answers with a page; is it a service?")
    return reply.json()
