"""A real Prometheus with our rules, scraping a real worker."""

from __future__ import annotations

import json
import shutil
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.cli.desk import UPPER, Desk, wait_until
from tests.command import HoldfastCommand
from tests.ops.deployment import DEPLOY
from tests.ops.test_watching import alerts, expressions
from tests.ports import free_port

TOKEN = "sesame"


@contextmanager
def prometheus(folder: Path, target: int) -> Iterator[str]:
    """Its address; it asks the target every second, as a worker of a fleet."""
    (folder / "metrics-token").write_text(TOKEN)
    scrape = {
        "job_name": "holdfast-worker",
        "authorization": {"credentials_file": "metrics-token"},
        "static_configs": [{"targets": [f"127.0.0.1:{target}"]}],
    }
    config = {
        "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
        "rule_files": ["alerts.yml"],
        "scrape_configs": [scrape],
    }
    (folder / "prometheus.yml").write_text(yaml.safe_dump(config))
    shutil.copy(DEPLOY / "prometheus" / "alerts.yml", folder)
    port = free_port()
    with (folder / "prometheus.log").open("wb") as log:
        process = subprocess.Popen(
            [
                "prometheus",
                f"--config.file={folder / 'prometheus.yml'}",
                f"--storage.tsdb.path={folder / 'data'}",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdout=log,
            stderr=log,
        )
        try:
            yield f"http://127.0.0.1:{port}"
        finally:
            process.terminate()
            process.wait(30)


def answer(address: str, path: str) -> Any:
    try:
        with urllib.request.urlopen(f"{address}/api/v1/{path}", timeout=10) as reply:
            return json.load(reply)["data"]
    except OSError:
        return None


def value_of(address: str, expression: str) -> list[Any]:
    query = urllib.parse.urlencode({"query": expression})
    found = answer(address, f"query?{query}")
    return found["result"] if found else []


@pytest.mark.tools
@pytest.mark.slow
@pytest.mark.usefixtures("promtool")
@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_prometheus_reads_a_worker_and_evaluates_every_alert_and_panel(
    holdfast_command: HoldfastCommand, tmp_path: Path
) -> None:
    desk = Desk(holdfast_command)
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 30)
    desk.succeed("run", "upper.py", "in.csv", "--no-work")
    port = free_port()
    guarded = {"HOLDFAST_METRICS_TOKEN": TOKEN}
    desk.start("work", "upper.py", "--health-port", str(port), env=guarded)
    with prometheus(tmp_path, port) as address:
        done = 'sum(holdfast_items_total{status="DONE"}) == 30'
        wait_until(lambda: value_of(address, done), seconds=60)
        groups = wait_until(lambda: evaluated(address), seconds=60)
        rules = [rule for group in groups for rule in group["rules"]]
        assert {rule["name"] for rule in rules} == set(alerts())
        assert {rule["health"] for rule in rules} == {"ok"}
        assert value_of(address, 'sum(up{job="holdfast-worker"})')[0]["value"][1] == "1"
        for _, expression in expressions():
            plain = expression.replace("$__rate_interval", "1m").replace("$pipeline", ".*")
            query = urllib.parse.urlencode({"query": plain})
            assert answer(address, f"query?{query}") is not None, plain


def evaluated(address: str) -> Any:
    """The rule groups, when each rule was evaluated at least once."""
    groups = (answer(address, "rules") or {}).get("groups", [])
    rules = [rule for group in groups for rule in group["rules"]]
    return groups if rules and all(rule["health"] != "unknown" for rule in rules) else None
