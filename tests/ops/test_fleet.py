"""Health and traces of a real fleet: relay, workers and timers on PostgreSQL and RabbitMQ."""

from __future__ import annotations

import json
import signal
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest

from tests.cli.desk import UPPER, Desk, stop, wait_until
from tests.collector import Collector, collecting
from tests.command import HoldfastCommand
from tests.ports import free_port

pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("database_url", ["postgres"], indirect=True),
]


@pytest.fixture
def desk(holdfast_command: HoldfastCommand) -> Desk:
    return Desk(holdfast_command)


@pytest.fixture
def fleet(broker_url: str, queue_prefix: str) -> dict[str, str]:
    return {"HOLDFAST_BROKER_URL": broker_url, "HOLDFAST_QUEUE_PREFIX": queue_prefix}


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


def readiness(port: int) -> dict[str, Any]:
    """The parts of the process at that port, or nothing where none answers yet."""
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/readyz", timeout=10) as reply:
            found = json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            found = json.load(error)
    except OSError:
        return {}
    parts: dict[str, Any] = found["parts"]
    return parts


def is_ready(port: int, *names: str) -> bool:
    return readiness(port) == dict.fromkeys(("process", "database", "schema", *names), "ok")


def test_a_trace_passes_through_outbox_and_broker_to_the_worker_that_settles(
    desk: Desk, fleet: dict[str, str], collector: Collector
) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 30)
    traced = {**fleet, "HOLDFAST_OTLP_ENDPOINT": collector.url}
    relay = desk.start("relay", env={**traced, "HOLDFAST_SERVICE_NAME": "relay"})
    in_worker = {**traced, "HOLDFAST_SERVICE_NAME": "worker"}
    worker = desk.start("work", "upper.py", "--processes", "2", env=in_worker)
    desk.succeed("run", "upper.py", "in.csv", "--no-work", env=traced)
    wait_until(lambda: desk.show()["state"] == "DONE", seconds=60)
    assert stop(worker, signal.SIGTERM)[0] == 0
    assert stop(relay, signal.SIGTERM)[0] == 0

    (created,) = collector.named("job.create")
    slices, settles = collector.named("claim"), collector.named("settle")
    assert created.trace_id == desk.show()["trace_id"]
    assert {span.trace_id for span in slices + settles} == {created.trace_id}
    assert {span.parent_id for span in slices} == {created.span_id}
    assert {span.service for span in slices} == {"worker"}
    assert sum(span.attributes["items"] for span in settles) == 30


def test_every_process_of_the_fleet_reports_its_health(desk: Desk, fleet: dict[str, str]) -> None:
    desk.write("upper.py", UPPER)
    base = free_port()
    relay, timers = free_port(), free_port()
    started = [
        desk.start("relay", "--health-port", str(relay), env=fleet),
        desk.start("timers", "upper.py", "--health-port", str(timers), env=fleet),
        desk.start("work", "upper.py", "--processes", "2", "--health-port", str(base), env=fleet),
    ]
    wait_until(lambda: is_ready(relay, "broker"), seconds=60)
    wait_until(lambda: is_ready(timers), seconds=60)
    wait_until(lambda: is_ready(base), seconds=60)
    wait_until(lambda: is_ready(base + 1, "broker"), seconds=60)
    wait_until(lambda: is_ready(base + 2, "broker"), seconds=60)
    for process in started:
        assert stop(process, signal.SIGTERM)[0] == 0


@pytest.mark.parametrize("command", [["relay"], ["work", "upper.py"]], ids=lambda each: each[0])
def test_a_process_that_waits_for_its_broker_is_alive_but_not_ready(
    desk: Desk, command: list[str]
) -> None:
    desk.write("upper.py", UPPER)
    port = free_port()
    nowhere = {"HOLDFAST_BROKER_URL": f"amqp://guest:guest@127.0.0.1:{free_port()}/"}
    desk.start(*command, "--health-port", str(port), env=nowhere)
    parts = wait_until(lambda: readiness(port), seconds=60)
    assert parts == {
        "process": "ok",
        "database": "ok",
        "schema": "ok",
        "broker": "is being waited for",
    }
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/healthz", timeout=10) as reply:
        assert reply.status == 200
