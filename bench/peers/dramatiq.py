"""Dramatiq: RabbitMQ carries the messages, Redis keeps the results."""

from __future__ import annotations

import os

import dramatiq
import redis
from dramatiq.brokers.rabbitmq import RabbitmqBroker
from dramatiq.results import Results
from dramatiq.results.backends import RedisBackend

from bench import data
from bench.peers import task

RESULTS = os.environ["BENCH_REDIS_URL"] + "/2"

broker = RabbitmqBroker(url=os.environ["BENCH_AMQP_URL"])
broker.add_middleware(Results(backend=RedisBackend(url=RESULTS), store_results=True))  # type: ignore[no-untyped-call]
dramatiq.set_broker(broker)
handle = dramatiq.actor(queue_name=os.environ["BENCH_QUEUE"], max_retries=0)(task.noop)


def enqueue(count: int) -> None:
    for item in data.rows(count):
        handle.send(item)


def kept() -> int:
    return int(redis.Redis.from_url(RESULTS).dbsize())
