"""A crawler's side of posts: batches in a real bucket, messages in a real broker; and ours, in this
process: a consumer, a relay, a worker."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

import aio_pika
import orjson
import structlog
from aio_pika import Message
from aio_pika.abc import AbstractConnection
from aio_pika.exceptions import ChannelNotFoundEntity

from holdfast.cli.broker_composition import foreign_queues, opened_broker
from holdfast.cli.composition import metrics_of
from holdfast.cli.pipelines import load_pipeline
from holdfast.clock import SystemClock
from holdfast.configuration import Settings, load_settings
from holdfast.kernel import Store
from holdfast.kernel.worker.chores import Chore, begin
from holdfast.messaging.relay import Relay
from holdfast.tasks import end_tasks
from holdfast_posts.pipeline import Posts
from tests.engine.one_worker import work
from tests.file_stores import bucket_of
from tests.fixtures import INCOMING
from tests.store.checks import spelled

PATIENCE_SECONDS = 60.0
TEXTS = (
    "I love this car, the design is amazing",
    "Quá thất vọng, chất lượng kém",
    "Giá bao nhiêu vậy shop?",
    "It is a car",
)


def post(number: int | str, text: str | None = None, **meta: Any) -> dict[str, Any]:
    """One post of the second generation."""
    about = {
        "id": f"{number}", "platform": "TIKTOK", "fetch_status": "success",
        "published_at": "2026-01-01T10:00:00Z", "crawled_at": "2026-01-02T10:00:00Z", **meta,
    }  # fmt: skip
    return {
        "meta": about,
        "content": {"text": TEXTS[hash(str(number)) % 4] if text is None else text},
        "interaction": {"views": 1000, "likes": 10, "comments_count": 2, "shares": 1, "saves": 0},
        "author": {"id": "a", "name": "A", "followers": 500, "is_verified": False},
        "comments": [],
    }


def failed_post(number: int | str, code: str, **meta: Any) -> dict[str, Any]:
    about = {"id": f"{number}", "platform": "TIKTOK", "fetch_status": "error", "error_code": code}
    return {"meta": {**about, "error_message": "it failed", **meta}}


@dataclass
class Scene:
    store: Store
    environment: Mapping[str, str]
    connection: AbstractConnection
    prefix: str = field(default_factory=lambda: f"test-{uuid4().hex[:12]}")

    @property
    def names(self) -> dict[str, str]:
        """The settings that keep this scene apart from others."""
        return {
            "HOLDFAST_POSTS_BUCKETS": INCOMING,
            "HOLDFAST_POSTS_EXCHANGE": f"{self.prefix}.events",
            "HOLDFAST_POSTS_QUEUE": f"{self.prefix}-collected",
            "HOLDFAST_POSTS_LEGACY_QUEUE": f"{self.prefix}-legacy",
        }

    @property
    def settings(self) -> Settings:
        return load_settings({**self.environment, **self.names})

    def pipeline(self) -> Posts:
        made = load_pipeline("posts", self.settings)
        assert isinstance(made, Posts)
        return made

    # The crawler's side.

    async def put(self, name: str, content: Any) -> str:
        """A batch; its path as events name it."""
        body = content if isinstance(content, bytes) else orjson.dumps(content)
        bucket = bucket_of({**self.environment, "HOLDFAST_FILES_PREFIX": ""}, bucket=INCOMING)
        await bucket.put(f"{self.prefix}/{name}", body, max_bytes=10**9)
        return f"{INCOMING}/{self.prefix}/{name}"

    def event(self, path: str, event_id: str = "evt_1", **payload: Any) -> dict[str, Any]:
        named = {"project_id": "proj_x", "job_id": "proj_x-brand-0", "platform": "tiktok"}
        return {
            "event_id": event_id,
            "event_type": "data.collected",
            "timestamp": "2026-01-02T11:00:00Z",
            "payload": {"minio_path": path, "batch_index": 1, **named, **payload},
        }

    async def send(self, envelope: Any, queue: str = "collected") -> None:
        body = envelope if isinstance(envelope, bytes) else orjson.dumps(envelope)
        async with self.connection.channel() as channel:
            message = Message(body, delivery_mode=2)
            await channel.default_exchange.publish(message, f"{self.prefix}-{queue}")

    async def publish(self, envelope: Any) -> None:
        async with self.connection.channel() as channel:
            exchange = await channel.get_exchange(f"{self.prefix}.events", ensure=False)
            await exchange.publish(Message(orjson.dumps(envelope)), "data.collected")

    async def waiting(self, queue: str = "collected") -> int:
        async with self.connection.channel() as channel:
            declared = await channel.declare_queue(f"{self.prefix}-{queue}", passive=True)
            return declared.declaration_result.message_count or 0

    # Our side.

    @asynccontextmanager
    async def consuming(self, relays: bool = False) -> AsyncIterator[Posts]:
        """A consumer; with `relays`, a relay and upkeep too."""
        pipeline, log, settings = self.pipeline(), structlog.get_logger(), self.settings
        metrics = metrics_of([pipeline])
        tasks = []
        async with (
            opened_broker(settings, log) as broker,
            foreign_queues(settings, self.store, {"posts": pipeline}, broker, metrics, log),
        ):
            if relays:
                relay = Relay(self.store, broker, random.Random(1), metrics, log)

                async def tend() -> None:
                    await self.store.plans.tend(pipeline.tend)

                tasks = [
                    asyncio.create_task(relay.run()),
                    *begin([Chore("tend", 0.1, tend)], SystemClock(), log),
                ]
            await self.until(self._is_read)
            try:
                yield pipeline
            finally:
                await end_tasks(tasks)

    async def _is_read(self) -> bool:
        try:
            return min([await self._consumers(queue) for queue in ("collected", "legacy")]) > 0
        except ChannelNotFoundEntity:
            return False

    async def _consumers(self, queue: str) -> int:
        async with self.connection.channel() as channel:
            declared = await channel.declare_queue(f"{self.prefix}-{queue}", passive=True)
            return declared.declaration_result.consumer_count or 0

    async def work(self, pipeline: Posts | None = None) -> None:
        await work(self.store, pipeline or self.pipeline())

    async def until(self, holds: Callable[[], Awaitable[bool]]) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not await holds():
                await asyncio.sleep(0.02)

    async def until_events(self, count: int, *states: str) -> None:
        async def holds() -> bool:
            return sum(1 for row in await self.events() if row["state"] in states) >= count

        await self.until(holds)

    async def rows(self, sql: str, **params: Any) -> list[dict[str, Any]]:
        async with self.store.database.driver.reading() as tx:
            rows = await tx.fetch(spelled(self.store, sql), params)
        return [{name: row[name] for name in row.keys()} for row in rows]  # noqa: SIM118

    async def events(self) -> list[dict[str, Any]]:
        return await self.rows("select * from posts_events order by key")

    async def posts(self) -> list[dict[str, Any]]:
        return await self.rows("select * from posts_analytics order by scope, platform, content_id")

    async def batches(self) -> list[dict[str, Any]]:
        return await self.rows("select * from posts_batches order by id")

    async def errors(self) -> list[dict[str, Any]]:
        return await self.rows("select * from posts_crawl_errors order by content_id, error_code")


@asynccontextmanager
async def opened_scene(
    store: Store, broker_url: str, queue_prefix: str, s3: Mapping[str, str], **more: str
) -> AsyncIterator[Scene]:
    environment = {
        **s3,
        "HOLDFAST_BROKER_URL": broker_url,
        "HOLDFAST_QUEUE_PREFIX": queue_prefix,
        **more,
    }
    async with await aio_pika.connect(broker_url) as connection:
        scene = Scene(store, environment, connection)
        yield scene
        connection = scene.connection  # a test may have made another
        async with connection, connection.channel() as channel:
            for queue in ("collected", "legacy"):
                await channel.queue_delete(f"{scene.prefix}-{queue}")
            await channel.exchange_delete(f"{scene.prefix}.events")
