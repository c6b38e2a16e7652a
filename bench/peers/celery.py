"""Celery: RabbitMQ carries the tasks, Redis keeps the results."""

from __future__ import annotations

import os

import redis
from celery import Celery  # type: ignore[import-untyped]

from bench import data
from bench.peers import task

RESULTS = os.environ["BENCH_REDIS_URL"] + "/2"

app = Celery("bench", broker=os.environ["BENCH_AMQP_URL"], backend=RESULTS)
app.conf.update(
    task_acks_late=True,
    task_default_queue=os.environ["BENCH_QUEUE"],
    worker_prefetch_multiplier=64,
)
handle = app.task(name="handle")(task.noop)


def enqueue(count: int) -> None:
    for item in data.rows(count):
        handle.delay(item)


def kept() -> int:
    return int(redis.Redis.from_url(RESULTS).dbsize())
