"""What a real worker process says of itself over HTTP."""

import json
import signal
import subprocess
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.composition import store_checks
from holdfast.kernel import Store, open_store
from holdfast.kernel.database.schema import installed_branches
from tests.cli.desk import SLOW, UPPER, Desk, stop, wait_until
from tests.command import HoldfastCommand
from tests.ports import free_port
from tests.proxy import Proxy
from tests.store.checks import execute


@pytest.fixture
def desk(holdfast_command: HoldfastCommand) -> Desk:
    return Desk(holdfast_command)


def probe(port: int, path: str) -> tuple[int, Any]:
    try:
        with urllib.request.urlopen(f"http://127.0.0.1:{port}{path}", timeout=10) as reply:
            return reply.status, json.load(reply)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)
    except OSError:
        return 0, None


def test_a_worker_is_alive_and_ready(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    port = free_port()
    worker = desk.start("work", "upper.py", env={"HOLDFAST_HEALTH_PORT": str(port)})
    status, told = wait_until(lambda: (found := probe(port, "/readyz"))[0] and found)
    assert (status, told["parts"]) == (200, {"process": "ok", "database": "ok", "schema": "ok"})
    assert probe(port, "/healthz")[0] == 200
    assert stop(worker, signal.SIGTERM)[0] == 0
    assert probe(port, "/healthz")[0] == 0


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_the_api_serves_its_health_separately_from_its_pages(desk: Desk) -> None:
    port = free_port()
    serving = {"HOLDFAST_HEALTH_PORT": str(port)}
    api = desk.start("api", "--port", str(free_port()), env=serving)
    told = wait_until(lambda: (found := probe(port, "/readyz"))[0] == 200 and found[1])
    assert set(told["parts"]) == {"process", "database", "schema", "server"}
    assert probe(port, "/healthz")[0] == 200
    assert stop(api, signal.SIGTERM)[0] == 0


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_worker_that_drains_is_alive_but_not_ready(desk: Desk) -> None:
    desk.write("slow.py", SLOW)
    desk.write("speed", "600")
    desk.write_rows("in.csv", 1)
    desk.succeed("run", "slow.py", "in.csv", "--no-work")
    port = free_port()
    long_drain = {"HOLDFAST_DRAIN_SECONDS": "300"}
    worker = desk.start("work", "slow.py", "--health-port", str(port), env=long_drain)
    wait_until(desk.started)
    worker.send_signal(signal.SIGTERM)
    told = wait_until(lambda: (found := probe(port, "/readyz"))[0] == 503 and found[1])
    assert told["parts"]["process"] == "draining"
    assert probe(port, "/healthz")[0] == 200
    desk.write("speed", "0")
    assert worker.wait(30) == 0
    assert desk.statuses() == ["DONE"]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_workers_under_a_supervisor_do_not_fight_for_the_port(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 3)
    crowded = {"HOLDFAST_HEALTH_PORT": str(free_port()), "HOLDFAST_WORKERS": "2"}
    desk.succeed("run", "upper.py", "in.csv", env=crowded)
    assert desk.statuses() == ["DONE"] * 3


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_a_port_that_is_taken_is_reported_clearly(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    port = free_port()
    first = desk.start("work", "upper.py", "--health-port", str(port))
    wait_until(lambda: probe(port, "/healthz")[0] == 200)
    assert f"127.0.0.1:{port}" in desk.fail("work", "upper.py", "--health-port", str(port))
    assert stop(first, signal.SIGTERM)[0] == 0


async def test_a_schema_that_does_not_fit_is_named(store: Store) -> None:
    await execute(store, "update schema_versions set version = 0 where branch = 'core'")
    told = await store_checks(store)["schema"]()
    assert told == f"is core empty, the program needs core {installed_branches()[0].newest}"


async def test_a_database_that_is_gone_is_named(postgres_url: str) -> None:
    async with Proxy(postgres_url) as proxy:
        store = await open_store(proxy.url)
        checks = store_checks(store)
        assert [await check() for check in checks.values()] == [None, None]
        await proxy.refuse()
        assert await checks["database"]() == "cannot be reached"
        assert await checks["schema"]() == "unknown"
        await store.close()


@pytest.mark.tools
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_what_a_real_worker_serves_satisfies_promtool(
    desk: Desk, promtool: Path, tmp_path: Path
) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 3)
    desk.succeed("run", "upper.py", "in.csv", "--no-work")
    port = free_port()
    guarded = {"HOLDFAST_METRICS_TOKEN": "sesame"}
    worker = desk.start("work", "upper.py", "--health-port", str(port), env=guarded)
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}/metrics", headers={"Authorization": "Bearer sesame"}
    )

    def scraped() -> str:
        try:
            with urllib.request.urlopen(request, timeout=10) as reply:
                return str(reply.read().decode())
        except OSError:
            return ""

    text = wait_until(lambda: 'status="DONE"} 3.0' in (found := scraped()) and found)
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert probe(port, "/metrics")[0] == 401
    assert stop(worker, signal.SIGTERM)[0] == 0
