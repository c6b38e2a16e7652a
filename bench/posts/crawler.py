"""Acts as a crawler: batches of 50 posts in a bucket, and events about them, as fast as
requested."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any

import aio_pika
import obstore
import orjson
from aio_pika import DeliveryMode, Message
from obstore.store import S3Store

BUCKET = "crawl-results"
ITEMS = 50
_PROJECTS = 4
_TEXTS = (
    "I really love this car, the design is amazing but the price is way too high! 😍",
    "Xe này thiết kế đẹp nhưng giá đắt quá, nhân viên phục vụ không nhiệt tình, thất vọng.",
    "Giá bao nhiêu vậy shop? Có ship không ạ",
    "Terrible service, I waited three hours and nobody came. Never again, I want a refund.",
    "Just saw one of these on the highway this morning, did not know they were sold here.",
    "Mình dùng được 3 tháng rồi, pin tốt, chạy êm, rất hài lòng với chất lượng",
    "How do I reset the infotainment system? The screen is black after the update.",
    "xe dep qua, khi nao co o ha noi vay shop oi",
)


def batch(rng: random.Random) -> bytes:
    return orjson.dumps([_post(rng, number) for number in range(ITEMS)])


def _post(rng: random.Random, number: int) -> dict[str, Any]:
    text = rng.choice(_TEXTS)
    return {
        "meta": {
            "id": str(rng.randrange(10**18, 10**19)), "platform": "TIKTOK",
            "fetch_status": "success", "published_at": "2026-01-01T10:00:00Z",
            "crawled_at": "2026-01-02T10:00:00Z", "permalink": "https://tiktok.example/v/1",
            "pipeline_version": "crawler_tiktok_v3", "keyword_source": "VinFast",
        },
        "content": {"text": text, "duration": 30, "hashtags": ["vinfast", "xe", "review"]},
        "interaction": {"views": rng.randrange(10**6), "likes": rng.randrange(10**4),
                        "comments_count": rng.randrange(500), "shares": rng.randrange(200),
                        "saves": rng.randrange(200)},
        "author": {"id": "a1", "name": "An Author", "username": "author", "is_verified": False,
                   "followers": rng.randrange(10**6)},
        "comments": [{"id": str(n), "text": "nice one", "author_name": "b", "likes": n}
                     for n in range(3)],
    }  # fmt: skip


async def put_batches(store: S3Store, prefix: str, numbers: Sequence[int]) -> None:
    rng, gate = random.Random(1), asyncio.Semaphore(16)

    async def put(number: int, body: bytes) -> None:
        async with gate:
            await obstore.put_async(store, f"{prefix}/{number}.json", body)

    for at in range(0, len(numbers), 500):
        await asyncio.gather(*(put(number, batch(rng)) for number in numbers[at : at + 500]))


async def publish(
    url: str, exchange: str, prefix: str, numbers: Sequence[int], pace: float
) -> None:
    """Publishes events; `pace`: events per second; 0: as fast as possible."""
    async with await aio_pika.connect(url) as connection:
        channel = await connection.channel()
        out = await channel.get_exchange(exchange, ensure=False)
        begun = time.perf_counter()
        for at, number in enumerate(numbers):
            if pace:
                await asyncio.sleep(max(0.0, begun + at / pace - time.perf_counter()))
            body = orjson.dumps(_event(prefix, number))
            message = Message(body, delivery_mode=DeliveryMode.PERSISTENT)
            await out.publish(message, "data.collected")


def _event(prefix: str, number: int) -> dict[str, Any]:
    project = f"proj_{number % _PROJECTS}"
    return {
        "event_id": f"evt_{prefix}_{number}",
        "event_type": "data.collected",
        "timestamp": datetime.now(UTC).isoformat(),
        "payload": {
            "project_id": project, "job_id": f"{project}-brand-0", "platform": "tiktok",
            "minio_path": f"{BUCKET}/{prefix}/{number}.json", "content_count": ITEMS,
            "batch_index": number, "task_type": "research_and_crawl", "keyword": "VinFast",
        },
    }  # fmt: skip
