"""Processes that start before their database: they wait and say so, and then work."""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator
from pathlib import Path

import httpx2
import pytest

from tests.command import HoldfastCommand
from tests.ports import free_port
from tests.proxy import Proxy

UPPER = """
from holdfast import pipeline

@pipeline
async def upper(row, ctx):
    return {"text": row["text"].upper()}
"""

#: the command, and a word of what it says once it runs
PROCESSES = {
    "api": (["api", "upper.py", "--port", "0"], "is running at"),
    "consume": (["consume", "posts"], ""),
    "relay": (["relay"], ""),
    "timers": (["timers", "upper.py"], "Press Ctrl-C to stop"),
    "up": (["up", "upper.py", "--workers", "1", "--port", "{port}"], "is running at"),
    "work": (["work", "upper.py"], "Working on upper"),
}


@pytest.fixture
async def absent(postgres_url: str) -> AsyncIterator[Proxy]:
    """A database that is not there yet."""
    async with Proxy(postgres_url) as proxy:
        await proxy.refuse()
        yield proxy


async def _readiness(port: int) -> tuple[int, dict[str, str]]:
    """What the health port says, once something listens there."""
    async with httpx2.AsyncClient() as client:
        while True:
            try:
                reply = await client.get(f"http://127.0.0.1:{port}/readyz")
                return reply.status_code, reply.json()["parts"]
            except httpx2.TransportError:
                await asyncio.sleep(0.02)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("name", PROCESSES)
async def test_process_waits_for_its_database_and_then_starts(
    absent: Proxy, tmp_path: Path, name: str
) -> None:
    (tmp_path / "upper.py").write_text(UPPER)
    arguments, running = PROCESSES[name]
    port, health_port = free_port(), free_port()
    environment = {
        "HOLDFAST_HEALTH_PORT": str(health_port),
        "HOLDFAST_BROKER_URL": f"amqp://127.0.0.1:{port}/" if not running else "",
    }
    process = HoldfastCommand(absent.url, tmp_path).start(
        *(word.format(port=port) for word in arguments), env=environment
    )
    try:
        assert process.stderr is not None
        line = await asyncio.to_thread(process.stderr.readline)
        assert "Waiting for the database, which cannot be reached" in line
        status, parts = await _readiness(health_port)
        assert (status, parts["database"]) == (503, "cannot be reached")
        await absent.accept()
        while running not in line:
            line = await asyncio.to_thread(process.stderr.readline)
            assert line, f"it ended without saying {running!r}"
        while parts["database"] != "ok":
            _, parts = await _readiness(health_port)
        process.send_signal(signal.SIGTERM)
        await asyncio.to_thread(process.communicate)
    finally:
        process.kill()
        await asyncio.to_thread(process.wait)


async def test_command_of_a_person_does_not_wait(absent: Proxy, tmp_path: Path) -> None:
    command = HoldfastCommand(absent.url, tmp_path)
    ended = await asyncio.to_thread(command.run, "jobs")
    assert ended.returncode == 1
    assert "the database cannot be reached" in ended.stderr
