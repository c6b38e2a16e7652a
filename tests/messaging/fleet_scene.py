"""A fleet of real processes on a database and queues of the test's own, and a plain producer."""

from __future__ import annotations

import asyncio
import json
import signal
import urllib.request
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import uuid4

import aio_pika
from aio_pika.exceptions import ChannelNotFoundEntity, PublishError

from holdfast.messaging.signing import ZEROS, sign
from tests.chaos.children import Child, Children
from tests.chaos.scene import DEEDS, Scene, finish, wait_until
from tests.fleet import EXCHANGES, QUEUES
from tests.rabbitmq import RabbitServer

HOSTILE = DEEDS.with_name("hostile.py")


def message(
    type_: str,
    body: Mapping[str, Any],
    *,
    version: int = 1,
    message_id: str | None = None,
    key: str = "",
    age: timedelta = timedelta(0),
) -> bytes:
    """What a producer in any language would send: plain JSON; signed, if there is a key."""
    header = {
        "message_id": message_id or str(uuid4()),
        "correlation_id": "a-producer",
        "type": type_,
        "version": version,
        "created_at": (datetime.now(UTC) - age).isoformat(),
        "attempt": 1,
        "max_attempts": 3,
    }
    if key:
        header["signature"] = ZEROS
    payload = json.dumps({"header": header, "body": body, "tracing": {}}).encode()
    return sign(payload, key) if key else payload


def nudge(job_id: int) -> bytes:
    return message("job.work", {"job_id": job_id})


class Fleet(Scene):
    """A scene whose processes hear messages. Nothing runs until it is started."""

    def __init__(
        self,
        database_url: str,
        folder: Path,
        children: Children,
        settings: Mapping[str, str],
        rabbit: RabbitServer,
    ) -> None:
        super().__init__(database_url, folder, children, settings)
        self.rabbit = rabbit
        self._broker_url = settings["HOLDFAST_BROKER_URL"]
        self._prefix = settings["HOLDFAST_QUEUE_PREFIX"]

    def start_relay(self, **more: str) -> Child:
        return self.start("relay", **more)

    def start_listener(self, *pipelines: str | Path, **more: str) -> Child:
        """One worker process that runs until it is stopped."""
        return self.start("work", *(pipelines or (DEEDS,)), **more)

    def start_worker_host(self, processes: int, **more: str) -> Child:
        """What a host runs: worker processes under their supervisor."""
        return self.start("work", DEEDS, "--processes", str(processes), **more)

    def state(self, job_id: int) -> str:
        rows = self.fetch(f"select state from jobs where id = {job_id}")
        return str(rows[0][0]) if rows else "gone"

    def wait_done(self, *job_ids: int, seconds: float = 180) -> None:
        for job_id in job_ids:
            wait_until(lambda j=job_id: self.state(j) == "DONE", f"job {job_id} is done", seconds)

    def outcomes(self, job_id: int) -> int:
        return int(self.fetch(f"select count(*) from outcomes where job_id = {job_id}")[0][0])

    def assert_saved_once_each(self, jobs: int, items: int) -> None:
        """As `assert_saved_once`, for several jobs with as many items each."""
        rows = self.fetch("select seq, count(*) from saved group by seq")
        wrong = {row[0]: row[1] for row in rows if row[1] != jobs}
        assert (len(rows), wrong) == (items, {}), (len(rows), wrong)

    # Dead letters.

    def wait_for_letters(self, count: int, kind: str = "message") -> list[dict[str, Any]]:
        query = f"select count(*) from dead_letters where state = 'OPEN' and kind = '{kind}'"
        wait_until(lambda: self.fetch(query)[0][0] >= count, f"{count} dead letters")
        return [self.letter(one["id"]) for one in self.dead_letters() if one["kind"] == kind]

    def letter(self, letter_id: int) -> dict[str, Any]:
        told: dict[str, Any] = json.loads(self.order("dead", "show", str(letter_id), "--json"))
        return told

    def order(self, *arguments: str | Path, **more: str) -> str:
        """A command that has to work, and what it says."""
        return finish(self.start(*arguments, **more))

    # The broker, as another program sees it.

    def send(self, queue: str, *bodies: bytes) -> None:
        """Publishes as any AMQP client would, without a message id of its own; waits until the
        fleet has declared and bound the queue."""
        left = list(bodies)

        async def publish(channel: aio_pika.abc.AbstractChannel) -> None:
            exchange = await channel.get_exchange(f"{self._prefix}.work")
            while left:
                await exchange.publish(aio_pika.Message(left[0]), queue)
                left.pop(0)

        def all_are_taken() -> bool:
            try:
                self._with_channel(publish)
            except (ChannelNotFoundEntity, PublishError):
                return False
            return True

        wait_until(all_are_taken, f"{queue} takes what is sent")

    def depth(self, queue: str) -> int:
        """How many messages wait; -1 while there is no such queue."""

        async def ask(channel: aio_pika.abc.AbstractChannel) -> int:
            found = await channel.declare_queue(f"{self._prefix}.{queue}", passive=True)
            return int(found.declaration_result.message_count or 0)

        try:
            return int(self._with_channel(ask))
        except ChannelNotFoundEntity:
            return -1

    def nudges(self, queue: str) -> tuple[int, int]:
        """How many wait in a queue, and how many are held by workers."""
        listed = self.rabbit.control(
            "list_queues", "name", "messages_ready", "messages_unacknowledged"
        )
        rows = [line.split() for line in listed.splitlines()]
        counts = [row[1:] for row in rows if row[0] == f"{self._prefix}.{queue}"]
        return (int(counts[0][0]), int(counts[0][1])) if counts else (0, 0)

    def consumers(self, queue: str) -> int:
        async def ask(channel: aio_pika.abc.AbstractChannel) -> int:
            found = await channel.declare_queue(f"{self._prefix}.{queue}", passive=True)
            return int(found.declaration_result.consumer_count or 0)

        try:
            return int(self._with_channel(ask))
        except ChannelNotFoundEntity:
            return 0

    def wipe_broker(self) -> None:
        """Everything of ours in the broker goes, with the messages in it."""

        async def wipe(channel: aio_pika.abc.AbstractChannel) -> None:
            for word in QUEUES:
                await channel.queue_delete(f"{self._prefix}.{word}")
            for word in EXCHANGES:
                await channel.exchange_delete(f"{self._prefix}.{word}")

        self._with_channel(wipe)

    def _with_channel(self, action: Any) -> Any:
        async def main() -> Any:
            async with await aio_pika.connect(self._broker_url) as connection:
                return await action(await connection.channel(on_return_raises=True))

        return asyncio.run(main())


def stop(*processes: Child) -> list[str]:
    """SIGTERM, as a service manager sends it; each has to end well. What they said."""
    for process in processes:
        wait_until(process.can_stop_in_order, "the process has begun")
        process.send_signal(signal.SIGTERM)
    return [finish(process) for process in processes]


METRICS_TOKEN = "sesame"


def metric(port: int, name: str, **labels: str) -> float:
    """A sample of a process's /metrics; 0 when it is not there yet."""
    try:
        request = urllib.request.Request(
            f"http://127.0.0.1:{port}/metrics",
            headers={"Authorization": f"Bearer {METRICS_TOKEN}"},
        )
        with urllib.request.urlopen(request, timeout=5) as reply:
            lines: Sequence[str] = reply.read().decode().splitlines()
    except OSError:
        return 0.0
    wanted = [f'{label}="{value}"' for label, value in labels.items()]
    found = [
        float(line.rsplit(" ", 1)[1])
        for line in lines
        if line.startswith(name) and all(each in line for each in wanted)
    ]
    return sum(found)
