"""`holdfast doctor` and `holdfast broker reset`, as a person runs them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess

import pytest
from aio_pika.abc import AbstractChannel

from holdfast.messaging.broker import Broker
from holdfast.messaging.topology import QUEUES
from tests.command import HoldfastCommand
from tests.messaging.conftest import next_of, outgoing, until
from tests.ports import free_port

Run = Callable[..., CompletedProcess[str]]


@pytest.fixture
def run(broker_url: str, queue_prefix: str, tmp_path: Path) -> Run:
    command = HoldfastCommand(f"sqlite:///{tmp_path / 'holdfast.db'}", tmp_path)
    ours = {"HOLDFAST_BROKER_URL": broker_url, "HOLDFAST_QUEUE_PREFIX": queue_prefix}

    def run_(*arguments: str, **environment: str) -> CompletedProcess[str]:
        return command.run(*arguments, env={**ours, **environment})

    return run_


def findings(reply: CompletedProcess[str]) -> dict[str, dict[str, object]]:
    return {found["what"]: found for found in json.loads(reply.stdout)}


async def test_doctor_finds_the_queues_in_order(
    run: Run, broker: Broker, queue_prefix: str
) -> None:
    consumer = await broker.consume("orders", 1)
    await broker.publish([outgoing("orders")])
    await next_of(consumer)
    reply = run("doctor", "--json")
    found = findings(reply)
    assert reply.returncode == 0, reply.stdout
    assert found["broker"]["ok"] and "guest:guest" not in reply.stdout
    assert all(found[f"queue {queue_prefix}.{word}"]["ok"] for word in QUEUES)
    assert "1 consumers" in str(found[f"queue {queue_prefix}.orders"]["text"])


def test_doctor_declares_nothing(run: Run, queue_prefix: str) -> None:
    for _ in range(2):
        found = findings(run("doctor", "--json"))
        texts = [str(found[f"queue {queue_prefix}.{word}"]["text"]) for word in QUEUES]
        assert all(text.startswith("does not exist yet") for text in texts)


async def test_doctor_reports_a_queue_without_consumers(
    run: Run, broker: Broker, queue_prefix: str
) -> None:
    await broker.publish([outgoing("orders") for _ in range(3)])
    reply = run("doctor", "--json")
    found = findings(reply)[f"queue {queue_prefix}.orders"]
    assert reply.returncode == 3
    assert not found["ok"] and "3 messages, 0 consumers" in str(found["text"])


async def test_doctor_shows_a_queue_of_another_form_and_reset_fixes_it(
    run: Run, admin: AbstractChannel, queue_prefix: str
) -> None:
    await admin.declare_queue(f"{queue_prefix}.orders", durable=True)
    found = findings(run("doctor", "--json"))[f"queue {queue_prefix}.orders"]
    assert not found["ok"] and "holdfast broker reset orders" in str(found["fix"])
    assert run("broker", "reset", "orders").returncode == 0
    assert findings(run("doctor", "--json"))[f"queue {queue_prefix}.orders"]["ok"]


def test_doctor_says_that_the_broker_is_not_there(run: Run) -> None:
    reply = run("doctor", HOLDFAST_BROKER_URL=f"amqp://guest:secret@127.0.0.1:{free_port()}/")
    assert reply.returncode == 3
    assert "cannot be reached" in reply.stdout and "HOLDFAST_BROKER_URL" in reply.stdout
    assert "secret" not in reply.stdout + reply.stderr
    assert reply.stderr == ""


def test_doctor_says_that_the_password_is_wrong(run: Run, broker_url: str) -> None:
    reply = run("doctor", HOLDFAST_BROKER_URL=broker_url.replace("guest:guest", "guest:secret"))
    assert reply.returncode == 3
    assert "does not accept the user or password" in reply.stdout
    assert "secret" not in reply.stdout + reply.stderr


async def test_queue_with_messages_is_reset_by_force_only(run: Run, broker: Broker) -> None:
    await broker.publish([outgoing("orders") for _ in range(3)])
    reply = run("broker", "reset", "orders")
    assert reply.returncode == 1
    assert "holds 3 messages" in reply.stderr and "--force" in reply.stderr
    assert await broker.depth("orders") == 3
    assert run("broker", "reset", "orders", "--force").returncode == 0
    assert await broker.depth("orders") == 0


async def test_dead_messages_are_not_called_harmless(run: Run, broker: Broker) -> None:
    await broker.publish([outgoing("orders")])
    await (await next_of(await broker.consume("orders", 1))).reject_to_dead("REFUSED", "no")

    async def dead() -> bool:
        return await broker.depth("dead") == 1

    await until(dead)
    reply = run("broker", "reset", "dead")
    assert reply.returncode == 1
    assert "the database does not have yet" in reply.stderr


async def test_workers_continue_during_a_reset(run: Run, broker: Broker) -> None:
    consumer = await broker.consume("orders", 1)
    await broker.publish([outgoing("orders")])
    await (await next_of(consumer)).ack()
    assert run("broker", "reset", "orders").returncode == 0

    async def sent() -> bool:
        return await broker.publish([outgoing("orders")]) == [None]

    await until(sent)
    await next_of(consumer)


def test_unknown_queue_is_reported_with_the_known_ones(run: Run) -> None:
    reply = run("broker", "reset", "bulky")
    assert reply.returncode == 1
    assert (
        "there is no queue 'bulky'" in reply.stderr
        and "orders, dead, work.PIPELINE" in reply.stderr
    )


def test_reset_without_a_broker_says_what_to_set(run: Run) -> None:
    reply = run("broker", "reset", "orders", HOLDFAST_BROKER_URL="")
    assert reply.returncode == 1
    assert "HOLDFAST_BROKER_URL" in reply.stderr


def test_settings_show_the_broker_without_its_password(run: Run) -> None:
    reply = run("settings", "--json", HOLDFAST_BROKER_URL="amqp://ann:secret@host/place")
    assert json.loads(reply.stdout)["HOLDFAST_BROKER_URL"] == "amqp://ann:***@host/place"


@pytest.mark.parametrize("url", ["http://host/", "amqp://", "host:5672", "amqp://host:0/"])
def test_url_of_something_else_is_refused_without_being_shown(run: Run, url: str) -> None:
    reply = run("jobs", HOLDFAST_BROKER_URL=url)
    assert reply.returncode == 1
    assert "HOLDFAST_BROKER_URL must be amqp://USER:PASSWORD@HOST/VHOST" in reply.stderr


def test_prefix_that_no_queue_could_have_is_refused(run: Run) -> None:
    reply = run("jobs", HOLDFAST_QUEUE_PREFIX="a b")
    assert reply.returncode == 1 and "HOLDFAST_QUEUE_PREFIX must be" in reply.stderr
