"""Two APIs and two workers that share a database and a bucket, but no disk."""

from __future__ import annotations

import re
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.chaos.children import Child, Children
from tests.command import HoldfastCommand
from tests.pictures import png

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
    "HOLDFAST_WORKER_LOST_SECONDS": "2",
    "HOLDFAST_STALE_STREAM_SECONDS": "3",
}
PATIENCE_SECONDS = 60.0


class Hosts:
    """Processes, each on a disk of its own."""

    def __init__(self, database_url: str, folder: Path, settings: dict[str, str]) -> None:
        self._command = HoldfastCommand(database_url, folder, {**settings, **HASTE})
        self._children = Children(folder)
        self._folder = folder
        self._stack = ExitStack()
        self._started = 0
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
        disk = self._folder / f"disk-{self._started}"
        env = self._command.environment({"HOLDFAST_DATA_DIR": str(disk), **settings})
        return self._children.holdfast(list(words), env)


@pytest.fixture
def hosts(postgres_url: str, tmp_path: Path, bucket_settings: dict[str, str]) -> Iterator[Hosts]:
    opened = Hosts(postgres_url, tmp_path, bucket_settings)
    yield opened
    opened.close()


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


def test_no_host_is_special(hosts: Hosts) -> None:
    doomed, first = hosts.api()
    hosts.log_in()
    first.headers.update(hosts.headers)
    second_api, second = hosts.api()
    lost, _ = hosts.worker(), hosts.worker()

    image = first.post("/api/files", files={"file": ("chair.png", png())}).json()
    body = {"pipeline": "lengths", "fileIds": [image["id"]]}
    jobs = [int(second.post("/api/jobs", json=body).json()["id"])]
    jobs += [upload((first, second)[number % 2], number) for number in range(8)]
    doomed.send_signal(signal.SIGKILL)
    lost.send_signal(signal.SIGKILL)
    seen = [ended(second, job_id) for job_id in jobs]
    assert [job["state"] for job in seen] == ["DONE"] * 9, [job["error"] for job in seen]
    assert [job["counters"]["done"] for job in seen] == [1] + [100] * 8

    third_api, third = hosts.api()
    export_id = exported(second, jobs[-1])
    wait(lambda: is_written(third, export_id))
    second_api.send_signal(signal.SIGKILL)
    second_api.wait(30)
    sent = third.get(f"/api/exports/{export_id}/download")
    lines = sent.text.splitlines()
    assert (sent.status_code, len(lines)) == (200, 101)
    assert lines[1].split(",")[:3] == ["1", "row 7.0", "7"]
    part = third.get(f"/api/exports/{export_id}/download", headers={"Range": "bytes=3-9"})
    assert (part.status_code, part.content) == (206, sent.content[3:10])
    shown = third.get(f"/api/files/{image['id']}/image")
    assert shown.content == png()
    assert third_api.returncode is None
