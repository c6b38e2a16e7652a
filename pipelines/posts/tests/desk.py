"""Messages taken without a broker, from batches in memory: for what does not depend on them."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

import orjson
import structlog

from holdfast.cli.broker_composition import accepting
from holdfast.clock import SystemClock
from holdfast.configuration import load_settings
from holdfast.consumers import ConsumerTools, Incoming, QueueConsumer
from holdfast.errors import NotThere
from holdfast.extension import installed
from holdfast.flags import ServedFlag
from holdfast.kernel import Store
from holdfast.kernel.worker.flag_values import FlagValues
from holdfast_posts.consumers import consumers
from holdfast_posts.options import PostsOptions
from holdfast_posts.pipeline import Posts
from tests.engine.one_worker import work


@dataclass
class Desk:
    store: Store
    pipeline: Posts = field(default_factory=lambda: Posts(PostsOptions(buckets="b")))
    batches: dict[str, bytes] = field(default_factory=dict)

    def _consumer(self) -> QueueConsumer:
        flags = {flag.name: ServedFlag(flag) for flag in installed()["posts"].all_flags}
        values = FlagValues(self.store, flags, SystemClock())
        log = structlog.get_logger()
        tools = ConsumerTools(self.pipeline, values.get, self._fetch, SystemClock(), log, "ada")
        return consumers(tools)[0]

    async def _fetch(self, bucket: str, key: str) -> AsyncIterator[bytes]:
        if key not in self.batches:
            raise NotThere(f"there is no {key}")
        yield self.batches[key]

    def event(self, name: str, items: Any, **payload: Any) -> dict[str, Any]:
        """An event about a batch that is stored now."""
        self.batches[name] = items if isinstance(items, bytes) else orjson.dumps(items)
        named = {"project_id": "proj_x", "job_id": "proj_x-brand-0", "platform": "tiktok"}
        return {
            "event_id": f"evt_{name}",
            "timestamp": f"{datetime.now(UTC):%Y-%m-%dT%H:%M:%SZ}",
            "payload": {"minio_path": f"b/{name}", "batch_index": 1, **named, **payload},
        }

    async def take(self, envelope: Any) -> None:
        body = envelope if isinstance(envelope, bytes) else orjson.dumps(envelope)
        spec = self._consumer()
        assert spec.prepare is not None
        incoming = Incoming(spec.queue, body, {}, None)
        prepared = replace(incoming, prepared=await spec.prepare(incoming))
        log = structlog.get_logger()
        accept = accepting(load_settings({}), self.store, self.pipeline, spec, log)
        await accept(None, spec.queue, lambda tx: spec.take(tx, prepared))

    async def work(self) -> None:
        await work(self.store, self.pipeline)
        while await self.store.plans.tend(self.pipeline.tend):
            pass
