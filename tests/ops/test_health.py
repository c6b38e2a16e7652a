"""The server of health and metrics: what it says while a process lives, drains and is stuck."""

import asyncio
import json
import socket
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.parser import text_string_to_metric_families

from holdfast.clock import FixedClock
from holdfast.errors import UserError
from holdfast.observe.health import Check, HealthOptions, HealthServer
from holdfast.observe.metrics import Metrics

TOKEN = "sesame"


class Served:
    """A health server over an event loop that runs on a thread of its own."""

    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.clock = FixedClock()
        self.metrics = Metrics()
        self.checks: dict[str, Check] = {}
        self._thread = threading.Thread(target=self.loop.run_forever)
        self._thread.start()
        self.server = HealthServer(
            0,
            self.metrics,
            self.checks,
            self.loop,
            options=HealthOptions(metrics_token=TOKEN),
            clock=self.clock,
        )

    def get(self, path: str) -> tuple[int, dict[str, Any]]:
        status, text = self.fetch(path)
        return status, json.loads(text)

    def fetch(self, path: str, token: str | None = None) -> tuple[int, str]:
        headers = {} if token is None else {"Authorization": f"Bearer {token}"}
        url = urllib.request.Request(f"http://127.0.0.1:{self.server.port}{path}", headers=headers)
        try:
            with urllib.request.urlopen(url, timeout=20) as reply:
                return reply.status, reply.read().decode()
        except urllib.error.HTTPError as error:
            with error:
                return error.code, error.read().decode()

    def end_loop(self) -> None:
        self.loop.call_soon_threadsafe(self.loop.stop)
        self._thread.join()
        self.loop.close()

    def close(self) -> None:
        self.server.stop()
        if not self.loop.is_closed():
            self.end_loop()


@pytest.fixture
def served() -> Iterator[Served]:
    served = Served()
    yield served
    served.close()


async def fine() -> str | None:
    return None


async def broken() -> str | None:
    return "cannot be reached"


async def raising() -> str | None:
    raise ValueError("the password is sesame")


async def silent() -> str | None:
    await asyncio.sleep(600)
    return None


def test_a_running_loop_is_alive(served: Served) -> None:
    assert served.get("/healthz") == (200, {"alive": True, "event_loop": "ok"})


def test_a_loop_held_up_for_a_moment_is_alive_and_one_stuck_for_long_is_not(served: Served) -> None:
    go_on = threading.Event()
    served.loop.call_soon_threadsafe(go_on.wait)
    assert served.get("/healthz")[0] == 200
    served.clock.advance(31)
    status, told = served.get("/healthz")
    assert status == 503
    assert told["event_loop"] == "the event loop has not answered for 31 s"
    go_on.set()
    wait_until(lambda: served.get("/healthz")[0] == 200)


def test_a_process_without_its_loop_is_not_alive_and_not_ready(served: Served) -> None:
    served.checks["database"] = fine
    served.end_loop()
    assert served.get("/healthz")[0] == 503
    status, told = served.get("/readyz")
    assert (status, told["parts"]["database"]) == (503, "the process is ending")


def test_ready_when_every_part_is(served: Served) -> None:
    served.checks.update(database=fine, broker=fine)
    parts = {"process": "ok", "database": "ok", "broker": "ok"}
    assert served.get("/readyz") == (200, {"ready": True, "parts": parts})


def test_what_is_not_ready_is_named(served: Served) -> None:
    served.checks.update(database=fine, broker=broken)
    status, told = served.get("/readyz")
    assert status == 503
    assert told["parts"] == {"process": "ok", "database": "ok", "broker": "cannot be reached"}


def test_a_draining_process_is_alive_but_not_ready(served: Served) -> None:
    served.server.drain()
    assert served.get("/healthz")[0] == 200
    assert served.get("/readyz") == (503, {"ready": False, "parts": {"process": "draining"}})


def test_a_check_that_fails_reveals_no_secret(served: Served) -> None:
    served.checks["database"] = raising
    status, text = served.fetch("/readyz")
    assert status == 503
    assert "ValueError" in text and "sesame" not in text


def test_a_check_that_does_not_answer_is_not_waited_for(served: Served) -> None:
    served.checks.update(database=fine, broker=silent)
    status, told = served.get("/readyz")
    assert status == 503
    assert told["parts"]["database"] == "ok"
    assert "no answer within" in told["parts"]["broker"]


def test_metrics_are_served_as_prometheus_reads_them(served: Served) -> None:
    served.metrics.throttles.labels("prices").inc(2)
    families = text_string_to_metric_families(served.fetch("/metrics", TOKEN)[1])
    samples = {sample.name: sample.value for family in families for sample in family.samples}
    assert samples["holdfast_throttles_total"] == 2


@pytest.mark.parametrize("token", [None, "", "sesam", "sesame2"])
def test_metrics_need_their_token(served: Served, token: str | None) -> None:
    status, text = served.fetch("/metrics", token)
    assert status == 401 and "HOLDFAST_METRICS_TOKEN" in text and "# HELP" not in text
    assert served.fetch("/healthz")[0] == 200


def test_metrics_without_a_token_are_closed() -> None:
    assert not HealthOptions().allows("Bearer ")
    assert not HealthOptions().allows("")


def test_another_path_names_those_there_are(served: Served) -> None:
    status, told = served.get("/")
    assert status == 404
    assert told["known"] == ["/healthz", "/readyz", "/metrics"]
    assert served.get("/healthz?verbose=1")[0] == 200


def test_a_client_that_says_nothing_or_goes_away_delays_no_one(
    served: Served, capfd: pytest.CaptureFixture[str]
) -> None:
    with socket.create_connection(("127.0.0.1", served.server.port)) as mute:
        mute.sendall(b"GET /metrics HTTP/1.1\r\n")
        assert served.get("/healthz")[0] == 200
    assert served.get("/healthz")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


def test_a_stopped_server_answers_no_more_and_its_port_is_free(served: Served) -> None:
    first = HealthServer(0, Metrics(), {}, served.loop)
    first.stop()
    with pytest.raises(urllib.error.URLError):
        urllib.request.urlopen(f"http://127.0.0.1:{first.port}/healthz", timeout=5)
    second = HealthServer(first.port, Metrics(), {}, served.loop)
    assert second.port == first.port
    second.stop()


def test_it_listens_over_ipv6_where_asked(served: Served) -> None:
    server = HealthServer(0, Metrics(), {}, served.loop, options=HealthOptions(host="::1"))
    with urllib.request.urlopen(f"http://[::1]:{server.port}/healthz", timeout=5) as reply:
        assert reply.status == 200
    server.stop()


def test_a_port_in_use_is_reported_with_a_fix(served: Served) -> None:
    port = served.server.port
    with pytest.raises(UserError, match=f"127.0.0.1:{port}") as caught:
        HealthServer(port, Metrics(), {}, served.loop)
    assert caught.value.hint is not None and "--health-port" in caught.value.hint


@pytest.mark.parametrize(("host", "port"), [("127.0.0.1", 70000), ("no.such.host.invalid", 0)])
def test_an_impossible_address_is_reported_with_a_fix(served: Served, host: str, port: int) -> None:
    with pytest.raises(UserError, match="cannot serve health"):
        HealthServer(port, Metrics(), {}, served.loop, options=HealthOptions(host=host))


def wait_until(condition: Any) -> None:
    deadline = time.monotonic() + 30
    while not condition():
        assert time.monotonic() < deadline, "waited too long"
        time.sleep(0.02)
