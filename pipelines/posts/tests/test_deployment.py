"""The files of deploy/posts: alerts fire when they should, commands and settings exist."""

from __future__ import annotations

import re
import shlex
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

from holdfast.cli.references import declared_metrics
from holdfast.configuration import SETTINGS
from holdfast.extension import installed
from holdfast.settings import Group

FOLDER = Path(__file__).parents[3] / "deploy" / "posts"
DOCS = Path(__file__).parents[3] / "pipelines/posts/src/holdfast_posts/docs"


def _rules() -> list[dict[str, Any]]:
    groups: list[dict[str, Any]] = yaml.safe_load((FOLDER / "alerts.yml").read_text())["groups"]
    return [rule for group in groups for rule in group["rules"]]


def test_alerts_fire_when_they_should() -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.fail("promtool is missing: run tests/servers as root, or install prometheus")
    for words in (("check", "rules", "alerts.yml"), ("test", "rules", "alerts_test.yml")):
        done = subprocess.run([promtool, *words], cwd=FOLDER, capture_output=True, text=True)
        assert done.returncode == 0, done.stdout + done.stderr


def test_every_metric_that_is_asked_for_exists_and_every_alert_is_tested() -> None:
    described = declared_metrics(installed()["posts"])
    known = {each.name for each in described} | {f"{each.name}_bucket" for each in described}
    tested = (FOLDER / "alerts_test.yml").read_text()
    for rule in _rules():
        assert set(re.findall(r"\bholdfast_posts_\w+", rule["expr"])) <= known, rule
        if "alert" in rule:
            assert f"alertname: {rule['alert']}" in tested
        else:
            assert any(rule["record"] in other["expr"] for other in _rules())


def test_alerts_and_rules_that_the_docs_name_exist() -> None:
    text = "".join(path.read_text() for path in DOCS.glob("*.md"))
    names = {rule.get("alert") or rule["record"] for rule in _rules()}
    named = set(re.findall(r"HoldfastPosts\w+|holdfast_posts:\w+:\w+", text))
    assert named
    assert named <= names


def test_every_way_of_deploying_starts_the_consumer() -> None:
    compose = yaml.safe_load((FOLDER / "compose.yaml").read_text())
    assert compose["services"]["consume"]["command"] == ["consume", "posts"]
    deployment = next(yaml.safe_load_all((FOLDER / "consume.yaml").read_text()))
    container = deployment["spec"]["template"]["spec"]["containers"][0]
    assert (deployment["metadata"]["name"], container["name"]) == ("consume", "consume")
    assert container["args"] == ["consume", "posts"]
    unit = (FOLDER / "holdfast-consume.service").read_text()
    started = re.search(r"^ExecStart=(.*)$", unit, re.MULTILINE)
    assert started
    assert shlex.split(started[1]) == ["/opt/holdfast/bin/holdfast", "consume", "posts"]


@pytest.mark.tools
def test_unit_is_understood_and_hardened(tmp_path: Path) -> None:
    units = [*(FOLDER.parent / "systemd").glob("holdfast*.*"), FOLDER / "holdfast-consume.service"]
    for path in units:
        text = path.read_text().replace("/opt/holdfast/bin/holdfast", "/bin/true")
        (tmp_path / path.name).write_text(text)
    unit = str(tmp_path / "holdfast-consume.service")
    judging = ("security", "--offline=true", "--threshold=20")
    for words in (("verify", "--man=no"), judging):
        done = subprocess.run(["systemd-analyze", *words, unit], capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), done.stdout


def test_pods_are_as_restricted_as_the_workers_and_may_reach_an_object_store() -> None:
    consume, _, policy = yaml.safe_load_all((FOLDER / "consume.yaml").read_text())
    worker = next(
        each
        for each in yaml.safe_load_all((FOLDER.parent / "kubernetes/worker.yaml").read_text())
        if each["kind"] == "Deployment"
    )
    pods = [each["spec"]["template"]["spec"] for each in (consume, worker)]
    assert pods[0]["securityContext"] == pods[1]["securityContext"]
    containers = [pod["containers"][0] for pod in pods]
    assert containers[0]["securityContext"] == containers[1]["securityContext"]
    assert containers[0]["envFrom"] == containers[1]["envFrom"]
    selected = policy["spec"]["podSelector"]["matchLabels"].items()
    for each in (consume, worker):
        assert selected <= each["spec"]["template"]["metadata"]["labels"].items()


@pytest.mark.parametrize("path", sorted(FOLDER.iterdir()), ids=lambda path: path.name)
def test_every_setting_that_is_named_exists(path: Path) -> None:
    own = Group(installed()["posts"]).settings
    known = {setting.name for setting in (*SETTINGS, *own)}
    assert set(re.findall(r"HOLDFAST_[A-Z][A-Z0-9_]*", path.read_text())) <= known
