"""Taskiq: RabbitMQ carries the tasks, Redis keeps the results."""

from __future__ import annotations

import asyncio
import os

import redis
from taskiq_aio_pika import AioPikaBroker, Queue
from taskiq_redis import RedisAsyncResultBackend

from bench import data
from bench.peers import task

RESULTS = os.environ["BENCH_REDIS_URL"] + "/2"
IN_FLIGHT = 100

broker = AioPikaBroker(
    os.environ["BENCH_AMQP_URL"],
    qos=IN_FLIGHT,
    task_queues=[Queue(name=os.environ["BENCH_QUEUE"])],
).with_result_backend(RedisAsyncResultBackend(RESULTS))
handle = broker.task(task_name="handle")(task.chosen())


def enqueue(count: int) -> None:
    asyncio.run(_enqueue(count))


async def _enqueue(count: int) -> None:
    await broker.startup()
    for start in range(0, count, IN_FLIGHT):
        size = min(IN_FLIGHT, count - start)
        await asyncio.gather(*(handle.kiq(item) for item in data.rows(size, start)))
    await broker.shutdown()


def kept() -> int:
    return int(redis.Redis.from_url(RESULTS).dbsize())
