"""Does the background work of pipelines."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from holdfast.kernel import Store
from holdfast.pipeline import Pipeline


class Tending:
    def __init__(self, store: Store, pipelines: Mapping[str, Pipeline]) -> None:
        self._store = store
        self._pipelines = pipelines
        self._one_at_a_time = asyncio.Lock()

    async def tend(self) -> None:
        """Does one step of each pipeline's background work."""
        for pipeline in self._pipelines.values():
            await self._tend(pipeline)

    async def tend_all(self) -> None:
        """Does all of that work, before what may be the last worker ends."""
        for pipeline in self._pipelines.values():
            while await self._tend(pipeline):
                pass

    async def _tend(self, pipeline: Pipeline) -> bool:
        """Does one at a time: what another task is working on looks as if it were done."""
        if not pipeline.tends:
            return False
        async with self._one_at_a_time:
            return await self._store.plans.tend(pipeline.tend)
