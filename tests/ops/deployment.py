"""What the files in deploy/ say: commands, settings and times, however they are written down."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
UNITS = sorted((DEPLOY / "systemd").glob("*.service"))
PROCESSES = ("api", "relay", "timers", "worker")
COMMANDS = ("api", "relay", "timers", "work", "migrate")


def documents(path: Path) -> list[Any]:
    return [document for document in yaml.safe_load_all(path.read_text()) if document]


def compose() -> dict[str, Any]:
    """As it is written; `${NAME:-default}` becomes the default, a required name a password."""

    def filled(found: re.Match[str]) -> str:
        return found["default"] if found["mark"] == ":-" else "sesame"

    text = (DEPLOY / "compose.yaml").read_text()
    text = re.sub(r"\$\{\w+(?P<mark>:[-?])(?P<default>[^}]*)\}", filled, text)
    read: dict[str, Any] = yaml.safe_load(text)
    return read


def our_services() -> dict[str, Any]:
    return {
        name: each for name, each in compose()["services"].items() if each["image"] == "holdfast"
    }


def kubernetes(kind: str) -> dict[str, Any]:
    found = [each for path in (DEPLOY / "kubernetes").glob("*.yaml") for each in documents(path)]
    return {each["metadata"]["name"]: each for each in found if each["kind"] == kind}


def containers() -> dict[str, Any]:
    """The one container of each workload of the cluster."""
    workloads = {**kubernetes("Deployment"), **kubernetes("Job")}
    return {
        name: each["spec"]["template"]["spec"]["containers"][0] for name, each in workloads.items()
    }


def unit(path: Path) -> dict[str, list[str]]:
    """The entries of a unit file; a key may occur several times."""
    entries: dict[str, list[str]] = {}
    for line in path.read_text().splitlines():
        key, equals, value = line.partition("=")
        if equals and not line.startswith("#"):
            entries.setdefault(key, []).append(value)
    return entries


def environment_file(path: Path) -> dict[str, str]:
    pairs = (line.partition("=") for line in path.read_text().splitlines() if line)
    return {name: value for name, _, value in pairs if not name.startswith("#")}


def dockerfile() -> list[tuple[str, str]]:
    """Instructions and what follows them, with continued lines joined."""
    text = (DEPLOY / "Dockerfile").read_text().replace("\\\n", " ")
    lines = (line.strip() for line in text.splitlines())
    instructions = (line.partition(" ") for line in lines if line and not line.startswith("#"))
    return [(word, rest.strip()) for word, _, rest in instructions]


def commands() -> Iterator[tuple[str, list[str]]]:
    """Where a command of ours is given, and its arguments."""
    for name, service in our_services().items():
        yield f"compose {name}", service["command"]
    for name, container in containers().items():
        yield f"kubernetes {name}", container["args"]
    for path in UNITS:
        program, *arguments = shlex.split(unit(path)["ExecStart"][0])
        assert program == "/opt/holdfast/bin/holdfast"
        yield path.name, arguments
    yield "Dockerfile", json.loads(dict(dockerfile())["CMD"])


def environments() -> Iterator[tuple[str, dict[str, str]]]:
    """Where settings are given, and which."""
    for name, service in our_services().items():
        yield f"compose {name}", service["environment"]
    config = kubernetes("ConfigMap")["holdfast"]["data"]
    secret = kubernetes("Secret")["holdfast"]["stringData"]
    for name, container in containers().items():
        own = {each["name"]: each["value"] for each in container.get("env", ())}
        yield f"kubernetes {name}", {**config, **secret, **own}
    shared = environment_file(DEPLOY / "systemd" / "holdfast.env")
    for path in UNITS:
        words = shlex.split(" ".join(unit(path).get("Environment", ())))
        yield path.name, {**dict(word.split("=", 1) for word in words), **shared}
    image = shlex.split(dict(dockerfile())["ENV"])
    yield "Dockerfile", dict(word.split("=", 1) for word in image)


def seconds_of(text: str) -> float:
    return float(str(text).removesuffix("s"))


def graces() -> Iterator[tuple[str, float]]:
    """How long each process is given to end."""
    for name, service in our_services().items():
        yield f"compose {name}", seconds_of(service["stop_grace_period"])
    for name, deployment in kubernetes("Deployment").items():
        pod = deployment["spec"]["template"]["spec"]
        yield f"kubernetes {name}", float(pod["terminationGracePeriodSeconds"])
    for path in UNITS:
        entries = unit(path)
        if entries["Type"] != ["oneshot"]:
            yield path.name, seconds_of(entries["TimeoutStopSec"][0])
