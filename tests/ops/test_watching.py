"""Alerts, scrape configurations and dashboard: understood by Prometheus, true to the metrics."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.observe.metrics import Metrics
from tests.ops import deployment
from tests.ops.deployment import DEPLOY, PROCESSES, ROOT

RULES = DEPLOY / "prometheus" / "alerts.yml"
TESTS = DEPLOY / "prometheus" / "alerts_test.yml"
SCRAPES = [
    DEPLOY / "prometheus" / name for name in ("prometheus.yml", "hosts.yml", "kubernetes.yml")
]
DASHBOARD = json.loads((DEPLOY / "grafana" / "holdfast.json").read_text())
METRICS = {each.name: each for each in Metrics().described}


def alerts() -> dict[str, Any]:
    groups = yaml.safe_load(RULES.read_text())["groups"]
    return {rule["alert"]: rule for group in groups for rule in group["rules"]}


def panels() -> list[Any]:
    return [each for each in DASHBOARD["panels"] if each["type"] != "row"]


def expressions() -> Iterator[tuple[str, str]]:
    for name, rule in alerts().items():
        yield name, rule["expr"]
    for panel in panels():
        for target in panel["targets"]:
            yield panel["title"], target["expr"]
    for trigger in deployment.kubernetes("ScaledObject")["worker"]["spec"]["triggers"]:
        yield "autoscale", trigger["metadata"]["query"]


def metric_of(name: str) -> str:
    """The metric behind a series: a histogram is several."""
    found = re.sub(r"_(bucket|count|sum)$", "", name)
    return found if found in METRICS else name


@pytest.mark.parametrize(("place", "expression"), [*expressions()], ids=lambda each: each[:40])
def test_every_metric_that_is_asked_for_exists_with_the_labels_that_are_used(
    place: str, expression: str
) -> None:
    names = {metric_of(name) for name in re.findall(r"holdfast_\w+", expression)}
    assert names <= set(METRICS)
    labels = set(re.findall(r"(\w+)(?:=~?|!=)\"", expression))
    for grouping in re.findall(r"by \(([^)]*)\)", expression):
        labels |= {label.strip() for label in grouping.split(",")}
    known = {label for name in names for label in METRICS[name].labels}
    assert labels <= known | {"le", "job", "instance"}


def test_every_metric_is_on_the_dashboard() -> None:
    asked = " ".join(expression for _, expression in expressions())
    shown = {metric_of(name) for name in re.findall(r"holdfast_\w+", asked)}
    assert set(METRICS) - shown == set()


def test_every_alert_is_tested_and_says_what_to_do_here_and_in_the_docs() -> None:
    tested = {
        case["alertname"]
        for test in yaml.safe_load(TESTS.read_text())["tests"]
        for case in test["alert_rule_test"]
        if case.get("exp_alerts")
    }
    page = (ROOT / "docs" / "how-to" / "monitoring.md").read_text()
    for name, rule in alerts().items():
        assert name in tested
        assert f"`{name}`" in page
        assert rule["labels"]["severity"] in ("critical", "warning")
        assert {"summary", "action"} == set(rule["annotations"])


def test_alerts_ask_for_jobs_that_are_scraped() -> None:
    asked = set(re.findall(r'job="([^"]+)"', RULES.read_text()))
    for path in SCRAPES[:2]:
        scraped = {each["job_name"] for each in yaml.safe_load(path.read_text())["scrape_configs"]}
        assert asked <= scraped == {f"holdfast-{name}" for name in PROCESSES}


def test_ports_of_the_units_are_scraped() -> None:
    scraped = re.findall(r"example\.org:(\d+)", SCRAPES[1].read_text())
    served = [each.get("HOLDFAST_HEALTH_PORT") for _, each in deployment.environments()]
    assert {"9400", "9401", "9402", "9410"} <= set(scraped) & set(served)


class TestDashboard:
    def test_panels_do_not_overlap_and_have_ids_of_their_own(self) -> None:
        ids = [each["id"] for each in DASHBOARD["panels"]]
        assert len(ids) == len(set(ids))
        taken: set[tuple[int, int]] = set()
        for each in DASHBOARD["panels"]:
            place = each["gridPos"]
            cells = {
                (x, y)
                for x in range(place["x"], place["x"] + place["w"])
                for y in range(place["y"], place["y"] + place["h"])
            }
            assert not cells & taken and max(x for x, _ in cells) < 24
            taken |= cells

    def test_every_panel_says_what_it_shows(self) -> None:
        assert all(each["title"] and each["description"].endswith(".") for each in panels())


@pytest.mark.tools
class TestPromtool:
    def test_the_rules_are_valid_and_fire_when_they_should(self, promtool: Path) -> None:
        run(promtool, "check", "rules", str(RULES))
        run(promtool, "test", "rules", str(TESTS))

    @pytest.mark.parametrize("path", SCRAPES, ids=lambda path: path.name)
    def test_the_scrape_configuration_is_valid(
        self, promtool: Path, path: Path, tmp_path: Path
    ) -> None:
        config = yaml.safe_load(path.read_text())
        for each in config["scrape_configs"]:
            # Debian's Prometheus is built without the discovery of Kubernetes.
            if each.pop("kubernetes_sd_configs", None):
                each["static_configs"] = [{"targets": ["pod:9400"]}]
            # promtool looks whether the file is there.
            token = Path(each["authorization"]["credentials_file"]).name
            (tmp_path / token).write_text("sesame")
            each["authorization"]["credentials_file"] = token
        (tmp_path / path.name).write_text(yaml.safe_dump(config))
        (tmp_path / "alerts.yml").write_text(RULES.read_text())
        run(promtool, "check", "config", str(tmp_path / path.name))

    def test_the_dashboard_asks_in_words_that_prometheus_knows(
        self, promtool: Path, tmp_path: Path
    ) -> None:
        def plain(expression: str) -> str:
            return expression.replace("$__rate_interval", "5m").replace("$pipeline", ".*")

        asked = [plain(expression) for _, expression in expressions()]
        rules = [{"record": f"panel:{n}", "expr": each} for n, each in enumerate(asked)]
        file = tmp_path / "rules.yml"
        file.write_text(yaml.safe_dump({"groups": [{"name": "dashboard", "rules": rules}]}))
        run(promtool, "check", "rules", str(file))


def run(*command: str | Path) -> None:
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
