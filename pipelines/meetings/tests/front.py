"""A proxy in front of a Datasette: passes requests on, records them, and fails on purpose."""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Self

import httpx2

from pipelines.meetings.tests.site import TABLES
from tests.world import Answer, Raw, Request, World

#: Answers in the server's place, or lets it through with None.
Rule = Callable[[Request, int], Answer | Raw | Awaitable[Answer | Raw | None] | None]


class Front:
    """`rule(request, number)` is called for each request; numbers count from 1 for each table."""

    def __init__(self, upstream: str) -> None:
        self._upstream = upstream
        self._world = World()
        self._client = httpx2.AsyncClient(timeout=60)
        self._rules: dict[str, Rule] = {}
        self.asked: list[tuple[str, dict[str, str]]] = []

    async def __aenter__(self) -> Self:
        await self._world.__aenter__()
        for table in TABLES:
            self._world.on(f"/meetings/{table}.json", self._answer)
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._client.aclose()
        await self._world.__aexit__(kind, error, trace)

    @property
    def url(self) -> str:
        return self._world.url("").rstrip("/")

    @property
    def world(self) -> World:
        return self._world

    def rule(self, table: str, rule: Rule) -> None:
        self._rules[table] = rule

    def requests(self, table: str) -> list[dict[str, str]]:
        return [query for name, query in self.asked if name == table]

    def walked(self, table: str) -> Counter[str]:
        """How often each page of the walk was requested, by its token."""
        return Counter(query.get("_next", "") for query in self.requests(table) if is_walk(query))

    async def _answer(self, request: Request) -> Answer | Raw:
        table = request.path.removeprefix("/meetings/").removesuffix(".json")
        self.asked.append((table, request.query))
        rule = self._rules.get(table)
        if rule is not None:
            answer = rule(request, len(self.requests(table)))
            if isinstance(answer, Awaitable):
                answer = await answer
            if answer is not None:
                return answer
        return await self.forward(request.target)

    async def forward(self, target: str) -> Answer:
        reply = await self._client.get(self._upstream + target)
        kind = reply.headers.get("content-type", "")
        return Answer(reply.status_code, reply.content, {"Content-Type": kind})


def is_walk(query: dict[str, str]) -> bool:
    return (
        query.get("_sort") == "id"
        and not {"date__gte", "_col", "id__in"} & query.keys()
        and (query.get("_size") != "0")
    )
