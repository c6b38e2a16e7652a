"""`holdfast up`: everything on one host, kept alive, and gone when it is stopped."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import psutil
import pytest

from holdfast.extension import installed
from tests.ports import free_port
from tests.signing_in import sign_in

WAIT_SECONDS = 60.0
pytestmark = [
    pytest.mark.slow,
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]


def _until(look: Callable[[], Any]) -> Any:
    end = time.monotonic() + WAIT_SECONDS
    while time.monotonic() < end:
        if found := look():
            return found
        time.sleep(0.1)
    raise AssertionError("it did not come about")


def _login_link(process: subprocess.Popen[str]) -> str:
    assert process.stderr is not None
    for line in process.stderr:
        if found := re.search(r"http://\S+/login/\S+", line):
            return found[0]
    raise AssertionError("no link was printed")


def _child(process: subprocess.Popen[str], word: str) -> psutil.Process | None:
    for child in psutil.Process(process.pid).children():
        try:
            if word in child.cmdline():
                return child
        except psutil.NoSuchProcess:
            continue
    return None


def _answers(url: str) -> bool:
    try:
        return httpx2.get(f"{url}/healthz", timeout=5).status_code == 200
    except httpx2.HTTPError:
        return False


@pytest.fixture
def demo(start_holdfast: Callable[..., subprocess.Popen[str]]) -> Callable[[], tuple[Any, str]]:
    def start() -> tuple[Any, str]:
        port = free_port()
        return start_holdfast("up", "--demo", "--port", str(port), "--workers", "1"), (
            f"http://127.0.0.1:{port}"
        )

    return start


def test_demo_is_there_to_be_tried_and_ends_with_ctrl_c(
    demo: Callable[[], tuple[Any, str]],
) -> None:
    process, url = demo()
    with httpx2.Client(base_url=url, timeout=30) as client:
        assert sign_in(client, _login_link(process)).status_code == 303
        page = client.get("/jobs").text
        assert "shopping-list.csv" in page and "catalogue" in page
        _until(lambda: client.get("/api/jobs/1").json()["counters"]["done"] > 0)
        parts = {name for name, extension in installed().items() if extension.demo}
        assert parts and all(f'href="/{name}"' in page for name in parts)
        pipelines = {job["pipeline"] for job in client.get("/api/jobs").json()["jobs"]}
        assert parts <= pipelines
        children = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT_SECONDS) == 0
    _, alive = psutil.wait_procs(children, timeout=10)
    assert alive == []


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("word", ["api", "timers", "work", "holdfast.demo.world"])
def test_process_that_dies_is_started_again(word: str, demo: Callable[[], tuple[Any, str]]) -> None:
    process, url = demo()
    _login_link(process)
    first = _until(lambda: _child(process, word))
    # Longer than a process that cannot start at all would live.
    time.sleep(6)
    first.kill()
    first.wait(WAIT_SECONDS)
    second = _until(lambda: _child(process, word))
    assert second.pid != first.pid
    assert _until(lambda: _answers(url))


def test_children_end_when_their_supervisor_is_killed(
    demo: Callable[[], tuple[Any, str]],
) -> None:
    process, _ = demo()
    _login_link(process)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait(WAIT_SECONDS)
    _, alive = psutil.wait_procs(children, timeout=30)
    assert alive == []


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("arguments", [["--demo"], ["--host", "0.0.0.0"], []])
def test_port_that_is_taken_is_reported_before_anything_is_begun(
    arguments: list[str],
    start_holdfast: Callable[..., subprocess.Popen[str]],
    tmp_path: Path,
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        process = start_holdfast("up", *arguments, "--port", str(port), "--workers", "1")
        _, told = process.communicate(timeout=WAIT_SECONDS)
    assert process.returncode == 1
    assert f":{port}: another program is listening there" in told and "--port" in told
    assert "did not start" not in told and "Traceback" not in told
    assert not list(tmp_path.rglob("*.csv"))


def test_relay_runs_too_if_there_is_a_broker(
    start_holdfast: Callable[..., subprocess.Popen[str]],
    broker_url: str,
    queue_prefix: str,
) -> None:
    broker = {"HOLDFAST_BROKER_URL": broker_url, "HOLDFAST_QUEUE_PREFIX": queue_prefix}
    process = start_holdfast("up", "--port", str(free_port()), "--workers", "1", env=broker)
    _login_link(process)
    relay = _until(lambda: _child(process, "relay"))
    process.send_signal(signal.SIGINT)
    assert process.wait(WAIT_SECONDS) == 0
    assert not relay.is_running()
