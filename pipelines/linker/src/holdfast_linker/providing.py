"""Wikidata and Reconciliation services for the entries of a job: they use the loaders, so that
look-ups are batched across entries, made once and cached."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import partial
from itertools import zip_longest
from typing import Any

import orjson

from holdfast.errors import ItemError
from holdfast.loader import Loader
from holdfast.pipeline import Context
from holdfast_linker import reconciliation, wikidata
from holdfast_linker.entities import Entity
from holdfast_linker.entries import Entry
from holdfast_linker.lookups import Closure, WikidataLookups
from holdfast_linker.matching import Match, match
from holdfast_linker.options import WIKIDATA, LinkerOptions, Rules
from holdfast_linker.reconciliation import Service, ServiceCandidate, Through
from holdfast_linker.scoring import rank
from holdfast_linker.stored_forms import entity_form, entity_from, value_form, values_from

_SERVICE_SECONDS = 3600.0


class CountedHttp:
    """A job's client, which counts its calls."""

    def __init__(self, ctx: Context, calls: dict[int, int]) -> None:
        self._http = ctx.http
        self._calls = calls
        self._job_id = ctx.job.id

    async def get(self, url: str, **options: Any) -> Any:
        return await self.request("GET", url, **options)

    async def post(self, url: str, **options: Any) -> Any:
        return await self.request("POST", url, **options)

    async def request(self, method: str, url: str, **options: Any) -> Any:
        reply = await self._http.request(method, url, **options)
        self._calls[self._job_id] = self._calls.get(self._job_id, 0) + 1
        return reply

    async def throttled(self, reply: Any, reason: str, at_least: float = 0.0) -> Any:
        return await self._http.throttled(reply, reason, at_least)

    def unavailable(self, reply: Any, reason: str) -> Any:
        return self._http.unavailable(reply, reason)


class Providers:
    """The loaders of the pipeline, and the matching that uses them."""

    def __init__(self, options: LinkerOptions) -> None:
        self._options = options
        self._calls: dict[int, int] = {}
        self._closures: dict[str, Closure] = defaultdict(dict)
        self._services: dict[str, Service] = {}

    def loaders(self) -> dict[str, Loader]:
        kept = self._options.cache_seconds
        wait = self._options.batch_seconds
        return {
            "search": Loader(
                self._search,
                max_batch=1,
                concurrency=self._options.searches_at_once,
                cache_seconds=kept,
                missing_seconds=kept,
            ),
            "entity": Loader(
                self._entities,
                max_batch=wikidata.MOST_IDS,
                concurrency=1,  # while one request is on its way, the next batch fills
                wait_seconds=wait,
                cache_seconds=kept,
                missing_seconds=min(kept, 3600.0),
            ),
            "query": Loader(
                self._reconcile,
                max_batch=reconciliation.BATCH_SIZE,
                wait_seconds=wait,
                cache_seconds=kept,
            ),
            "extension": Loader(self._extend, wait_seconds=wait, cache_seconds=kept),
        }

    def calls_since(self, job_id: int) -> int:
        """Returns the HTTP calls of the job that no entry has been charged with yet."""
        return self._calls.pop(job_id, 0)

    async def match(self, entry: Entry, rules: Rules, ctx: Context) -> Match:
        if rules.provider != WIKIDATA:
            return await self._match_service(entry, rules, ctx)
        api = self._options.api(rules.language)
        lookups = WikidataLookups(
            LoadedCalls(ctx, api), rules.language, self._closures[f"{api.url} {rules.language}"]
        )
        return await match(entry, lookups, rules.thresholds)

    async def _match_service(self, entry: Entry, rules: Rules, ctx: Context) -> Match:
        query = reconciliation.query_of(entry, rules.candidates).to_json()
        results = await ctx.load("query", _key(rules.provider, query))
        hits = [ServiceCandidate(**result) for result in results or ()]
        properties = sorted({pid for pid, _ in reconciliation.query_of(entry).properties})
        keys = [_key(rules.provider, hit.id, properties) for hit in hits if properties]
        values = await asyncio.gather(*(ctx.load("extension", key) for key in keys))
        candidates = [
            reconciliation.candidate_of_service(hit, entry.type, values_from(given or {}))
            for hit, given in zip_longest(hits, values)
        ]
        return Match(rank(entry, candidates, rules.thresholds), 1)

    # Fetch functions of the loaders.

    async def _search(self, keys: Sequence[str], ctx: Context) -> Mapping[str, Any]:
        http = CountedHttp(ctx, self._calls)
        results = {}
        for key in keys:
            _, uselang, kind, text, *more = orjson.loads(key)
            api = self._options.api(uselang)
            if kind == "text":
                results[key] = await wikidata.search_text(http, api, text, limit=more[0])
            else:
                language, limit, offset = more
                page = await wikidata.search_entities(
                    http, api, text, language=language, limit=limit, offset=offset
                )
                results[key] = [hit.id for hit in page.hits]
        return results

    async def _entities(self, keys: Sequence[str], ctx: Context) -> Mapping[str, Any]:
        http = CountedHttp(ctx, self._calls)
        by_language: dict[str, dict[str, str]] = defaultdict(dict)
        for key in keys:
            _, language, entity_id = orjson.loads(key)
            by_language[language][entity_id] = key
        forms = {}
        for language, ids in by_language.items():
            api = self._options.api(language)
            for entity_id, entity in (await wikidata.fetch_entities(http, api, ids)).items():
                if entity is not None:
                    forms[ids[entity_id]] = entity_form(entity, language)
        return forms

    async def _reconcile(self, keys: Sequence[str], ctx: Context) -> Mapping[str, Any]:
        http = CountedHttp(ctx, self._calls)
        results: dict[str, Any] = {}
        for url, group in _by_url(keys).items():
            service = await self._service(url, http, ctx)
            queries = [orjson.loads(key)[1] for key in group]
            through = self._through(url, ctx)
            answers = await reconciliation.reconcile(http, service, queries, through)
            for key, answer in zip(group, answers, strict=True):
                results[key] = (
                    answer if isinstance(answer, ItemError) else [asdict(hit) for hit in answer]
                )
        return results

    async def _extend(self, keys: Sequence[str], ctx: Context) -> Mapping[str, Any]:
        http = CountedHttp(ctx, self._calls)
        results: dict[str, Any] = {}
        for url, group in _by_url(keys).items():
            service = await self._service(url, http, ctx)
            by_properties: dict[tuple[str, ...], dict[str, str]] = defaultdict(dict)
            for key in group:
                _, entity_id, properties = orjson.loads(key)
                by_properties[tuple(properties)][entity_id] = key
            for wanted, ids in by_properties.items():
                through = self._through(url, ctx)
                values = await reconciliation.extend(http, service, list(ids), wanted, through)
                for entity_id, key in ids.items():
                    results[key] = {
                        property_id: [value_form(value) for value in given]
                        for property_id, given in values.get(entity_id, {}).items()
                    }
        return results

    def _through(self, url: str, ctx: Context) -> Through:
        """Passes both gates: a refusal closes the gate of the host, and lowers the rate of this
        one."""
        return partial(ctx.gate, self._options.service_gate(url))

    async def _service(self, url: str, http: CountedHttp, ctx: Context) -> Service:
        if url not in self._services:
            form = await ctx.cache.get(f"service {url}")
            if form is None:
                through = self._through(url, ctx)
                form = asdict(await reconciliation.fetch_service(http, url, through))
                await ctx.cache.put(f"service {url}", form, seconds=_SERVICE_SECONDS)
            self._services[url] = Service(**form)
        return self._services[url]


class LoadedCalls:
    """Makes calls to Wikidata through the loaders."""

    def __init__(self, ctx: Context, api: wikidata.Api) -> None:
        self._ctx = ctx
        self._api = api

    async def search_name(self, text: str, language: str, limit: int, offset: int) -> Sequence[str]:
        key = _key(self._api.url, self._api.language, "name", text, language, limit, offset)
        return await self._ctx.load("search", key) or ()

    async def search_text(self, query: str, limit: int) -> Sequence[str]:
        key = _key(self._api.url, self._api.language, "text", query, limit)
        return await self._ctx.load("search", key) or ()

    async def entities(self, ids: Iterable[str]) -> Mapping[str, Entity | None]:
        wanted = list(dict.fromkeys(ids))
        url, language = self._api.url, self._api.language
        forms = await asyncio.gather(
            *(self._ctx.load("entity", _key(url, language, entity_id)) for entity_id in wanted)
        )
        return {
            entity_id: None if form is None else entity_from(form, language)
            for entity_id, form in zip(wanted, forms, strict=True)
        }


def _key(*parts: Any) -> str:
    return orjson.dumps(parts, option=orjson.OPT_SORT_KEYS).decode()


def _by_url(keys: Sequence[str]) -> dict[str, list[str]]:
    groups: dict[str, list[str]] = defaultdict(list)
    for key in keys:
        groups[orjson.loads(key)[0]].append(key)
    return groups
