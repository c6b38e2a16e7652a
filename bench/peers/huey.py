"""Huey: Redis carries the tasks and keeps the results."""

from __future__ import annotations

import os

from huey import RedisHuey  # type: ignore[import-untyped]

from bench import data
from bench.peers import task

huey = RedisHuey(os.environ["BENCH_QUEUE"], url=os.environ["BENCH_REDIS_URL"])
handle = huey.task()(task.noop)


def enqueue(count: int) -> None:
    for item in data.rows(count):
        handle(item)


def kept() -> int:
    return int(huey.storage.result_store_size())
