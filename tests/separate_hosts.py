"""API servers and workers as processes, each on a disk of its own, and what people do there."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import httpx2

from tests.chaos.children import Child, Children
from tests.command import HoldfastCommand
from tests.fleet import broker_settings, forget_queues
from tests.rabbitmq import RabbitServer

PIPELINE = """
from holdfast import pipeline

@pipeline(columns=["name", "length"])
async def lengths(row, ctx):
    if "media_type" in row:
        async with ctx.file(row) as path:
            return {"name": path.name, "length": len(path.read_bytes())}
    return {"name": row["title"], "length": len(row["title"])}
"""
HASTE = {
    "HOLDFAST_SWEEP_SECONDS": "0.2",
    "HOLDFAST_LOCK_FLOOR_MS": "2000",
    "HOLDFAST_LOCK_CAP_MS": "2000",
}
PATIENCE_SECONDS = 60.0


class Hosts:
    """Processes, each on a disk of its own, or all on one."""

    def __init__(
        self,
        database_url: str,
        folder: Path,
        settings: dict[str, str],
        shares_disk: bool = False,
    ) -> None:
        self._command = HoldfastCommand(database_url, folder, {**settings, **HASTE})
        self._children = Children(folder)
        self._folder = folder
        self._stack = ExitStack()
        self._started = 0
        self._shares_disk = shares_disk
        self.headers: dict[str, str] = {}
        (folder / "lengths.py").write_text(PIPELINE)

    def close(self) -> None:
        self._stack.close()
        self._children.tell()
        self._children.close()

    def log_in(self) -> None:
        made = self._command.run("token", "create", "admin", "--name", "test")
        assert made.returncode == 0, made.stderr
        self.headers = {"Authorization": f"Bearer {made.stdout.strip()}"}

    def worker(self) -> Child:
        return self._start("work", str(self._folder / "lengths.py"))

    def relay(self) -> Child:
        return self._start("relay")

    def api(self, **settings: str) -> tuple[Child, httpx2.Client]:
        child = self._start("api", str(self._folder / "lengths.py"), "--port", "0", **settings)
        found = None
        while found is None:
            assert child.returncode is None, child.said()
            time.sleep(0.02)
            found = re.search(r"(http://\S+?)/ ", child.said())
        client = httpx2.Client(base_url=found[1], headers=self.headers, timeout=30)
        self._stack.callback(client.close)
        wait(lambda: client.get("/readyz").status_code == 200)
        return child, client

    def _start(self, *words: str, **settings: str) -> Child:
        self._started += 1
        disk = self._folder / ("disk" if self._shares_disk else f"disk-{self._started}")
        env = self._command.environment({"HOLDFAST_DATA_DIR": str(disk), **settings})
        return self._children.holdfast(list(words), env)


@contextmanager
def hosts_of_fleet(
    database_url: str, broker_url: str, rabbit: RabbitServer, folder: Path
) -> Iterator[Hosts]:
    """Processes that are told by messages what to do; their queues are removed at the end."""
    settings = broker_settings(broker_url)
    hosts = Hosts(database_url, folder, settings, shares_disk=True)
    yield hosts
    hosts.close()
    rabbit.start()
    with ThreadPoolExecutor() as thread:  # a browser's loop may run in this one
        thread.submit(forget_queues, settings).result()


def wait(condition: Callable[[], Any]) -> Any:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not (value := condition()):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    return value


def upload(client: httpx2.Client, number: int) -> int:
    rows = "title\n" + "".join(f"row {number}.{row}\n" for row in range(100))
    reply = client.post(
        "/api/jobs",
        data={"pipeline": "lengths"},
        files={"file": (f"{number}.csv", rows.encode())},
    )
    assert reply.status_code == 202, reply.text
    return int(reply.json()["id"])


def ended(client: httpx2.Client, job_id: int) -> dict[str, Any]:
    """The job when it is no longer running, as this API sees it."""

    def look() -> dict[str, Any] | None:
        job: dict[str, Any] = client.get(f"/api/jobs/{job_id}").json()
        return None if job["state"] in ("QUEUED", "RUNNING") else job

    return wait(look)  # type: ignore[no-any-return]


def exported(client: httpx2.Client, job_id: int) -> int:
    made = client.post(f"/api/jobs/{job_id}/export?format=csv")
    assert made.status_code == 202, made.text
    return int(made.json()["id"])


def is_written(client: httpx2.Client, export_id: int) -> bool:
    return bool(client.get(f"/api/exports/{export_id}").json()["state"] == "DONE")
