"""The files in deploy/ fit each other and the program."""

from __future__ import annotations

import json
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from holdfast.cli.command_list import COMMANDS as LISTED
from holdfast.cli.lazy_commands import load_own
from holdfast.configuration import every_setting, load_settings
from holdfast.server.connections import ConnectionLimits
from holdfast.settings import installed_groups
from tests.ops import deployment
from tests.ops.deployment import COMMANDS, DEPLOY, PROCESSES, ROOT, UNITS

SETTING_NAMES = {
    each.name for settings in every_setting(installed_groups()).values() for each in settings
}
FILES = sorted(path for path in DEPLOY.rglob("*") if path.is_file())
HOW_TOS = [
    ROOT / "docs" / "how-to" / name for name in ("run-a-fleet.md", "deploy.md", "monitoring.md")
]


@pytest.mark.parametrize(
    ("place", "arguments"), [*deployment.commands()], ids=lambda each: str(each)
)
def test_a_command_that_is_started_exists_with_its_options(
    place: str, arguments: list[str]
) -> None:
    name, *rest = arguments
    assert name in LISTED, f"{place} starts `holdfast {name}`"
    load_own(name).make_context(name, list(rest))


@pytest.mark.parametrize("path", [*FILES, *HOW_TOS], ids=lambda path: path.name)
def test_every_setting_that_is_named_exists(path: Path) -> None:
    assert set(re.findall(r"HOLDFAST_[A-Z][A-Z0-9_]*", path.read_text())) <= SETTING_NAMES


@pytest.mark.parametrize(
    ("place", "environment"), [*deployment.environments()], ids=lambda each: str(each)[:30]
)
def test_settings_have_values_that_the_program_takes(
    place: str, environment: dict[str, str]
) -> None:
    settings = load_settings(environment)
    if place != "Dockerfile":
        assert settings.database_url.startswith("postgresql://") and settings.broker_url


def test_a_process_may_drain_before_it_is_killed() -> None:
    drains = {place: load_settings(each).drain_seconds for place, each in deployment.environments()}
    graces = dict(deployment.graces())
    assert {place for place, grace in graces.items() if grace < drains[place] + 15} == set()
    assert len(graces) == 13


def test_every_way_of_deploying_starts_every_process() -> None:
    started = {(place.split()[0], rest[0]) for place, rest in deployment.commands()}
    for way in ("compose", "kubernetes"):
        assert {name for where, name in started if where == way} == {*COMMANDS}
    units = {name for where, name in started if where.endswith(".service")}
    assert units == {*COMMANDS}


class TestDockerfile:
    instructions = deployment.dockerfile()

    def test_every_copied_file_exists_and_is_not_ignored(self) -> None:
        allowed = (DEPLOY / "Dockerfile.dockerignore").read_text().splitlines()
        for word, rest in self.instructions:
            if word == "COPY" and not rest.startswith("--from"):
                for named in rest.split()[:-1]:
                    for source in {named.replace("${SET}", each) for each in ("base", "core")}:
                        assert (ROOT / source).exists(), source
                        assert f"!{source}" in allowed

    def test_it_runs_as_an_unprivileged_user_and_reports_its_health(self) -> None:
        words = dict(self.instructions)
        user, _, group = words["USER"].partition(":")
        assert int(user) > 0 and int(group) > 0
        assert json.loads(words["ENTRYPOINT"]) == ["holdfast"]
        image = dict(deployment.environments())["Dockerfile"]
        assert f":{image['HOLDFAST_HEALTH_PORT']}/healthz" in words["HEALTHCHECK"]

    def test_state_is_in_the_volume(self) -> None:
        image = dict(deployment.environments())["Dockerfile"]
        assert json.loads(dict(self.instructions)["VOLUME"]) == [image["HOLDFAST_DATA_DIR"]]

    def test_dependencies_are_installed_before_the_source_is_copied(self) -> None:
        steps = [rest for word, rest in self.instructions if word in ("COPY", "RUN")]
        install = next(n for n, step in enumerate(steps) if "--require-hashes" in step)
        assert install < steps.index("src src")


class TestCompose:
    def test_no_password_is_written_down(self) -> None:
        text = (DEPLOY / "compose.yaml").read_text()
        names = set(re.findall(r"\$\{(\w*(?:PASSWORD|KEY)\w*):\?", text))
        example = deployment.environment_file(DEPLOY / "example.env")
        assert names and all(example[name] == "" for name in names)

    def test_ports_are_published_on_loopback_only(self) -> None:
        services = deployment.compose()["services"].values()
        ports = [port for each in services for port in each.get("ports", ())]
        assert ports and all(port.startswith("127.0.0.1:") for port in ports)

    def test_processes_start_after_the_migration(self) -> None:
        for name, service in deployment.our_services().items():
            if name != "migrate":
                condition = service["depends_on"]["migrate"]["condition"]
                assert condition == "service_completed_successfully"
            assert service["read_only"] and service["cap_drop"] == ["ALL"]

    def test_images_are_named_by_exact_versions(self) -> None:
        services = deployment.compose()["services"].values()
        images = {each["image"] for each in services} - {"holdfast"}
        arguments = dict(rest.split("=") for word, rest in deployment.dockerfile() if word == "ARG")
        images.add(arguments["PYTHON"])
        # PostgreSQL's versions have two numbers.
        exact = r"postgres:\d+\.\d+-\w+|[\w/]+:v?\d+\.\d+\.\d+(-[\w-]+)?"
        assert len(images) == 5
        assert {each for each in images if not re.fullmatch(exact, each)} == set()

    def test_grafana_has_no_password_of_its_own(self) -> None:
        written = deployment.compose()
        grafana = written["services"]["grafana"]
        assert "/run/secrets/grafana-password" in str(grafana["environment"])
        assert grafana["secrets"] == ["grafana-password"]
        name = written["secrets"]["grafana-password"]["environment"]
        assert deployment.environment_file(DEPLOY / "example.env")[name] == ""

    def test_prometheus_is_given_the_token_that_the_processes_want(self) -> None:
        written = deployment.compose()
        name = written["secrets"]["metrics-token"]["environment"]
        assert f"${{{name}:?" in (DEPLOY / "compose.yaml").read_text()
        assert written["services"]["prometheus"]["secrets"] == ["metrics-token"]


class TestKubernetes:
    deployments = deployment.kubernetes("Deployment")

    def test_every_file_parses_and_is_in_the_namespace(self) -> None:
        for path in (DEPLOY / "kubernetes").glob("*.yaml"):
            for each in deployment.documents(path):
                if each["kind"] not in ("Namespace", "Kustomization"):
                    assert each["metadata"]["namespace"] == "holdfast", path.name

    def test_the_kustomization_names_files_that_exist(self) -> None:
        folder = DEPLOY / "kubernetes"
        (kustomization,) = deployment.documents(folder / "kustomization.yaml")
        missing = {name for name in kustomization["resources"] if not (folder / name).exists()}
        assert missing == {"secret.yaml"}
        assert (folder / "secret.example.yaml").exists()

    @pytest.mark.parametrize("name", PROCESSES)
    def test_every_process_is_probed_on_its_health_port(self, name: str) -> None:
        container = deployment.containers()[name]
        ports = {port["name"]: port["containerPort"] for port in container["ports"]}
        config = deployment.kubernetes("ConfigMap")["holdfast"]["data"]
        assert ports["health"] == int(config["HOLDFAST_HEALTH_PORT"])
        paths = {"startup": "/healthz", "liveness": "/healthz", "readiness": "/readyz"}
        for probe, path in paths.items():
            assert container[f"{probe}Probe"]["httpGet"] == {"path": path, "port": "health"}

    @pytest.mark.parametrize("name", [*PROCESSES, "migrate"])
    def test_every_pod_is_as_restricted_as_its_namespace_asks(self, name: str) -> None:
        workloads = {**self.deployments, **deployment.kubernetes("Job")}
        pod = workloads[name]["spec"]["template"]["spec"]
        assert pod["securityContext"]["runAsNonRoot"]
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        limits = pod["containers"][0]["securityContext"]
        assert limits["readOnlyRootFilesystem"] and not limits["allowPrivilegeEscalation"]
        assert limits["capabilities"] == {"drop": ["ALL"]}

    @pytest.mark.parametrize("name", PROCESSES)
    def test_disruption_budgets_select_the_pods(self, name: str) -> None:
        labels = self.deployments[name]["spec"]["template"]["metadata"]["labels"]
        budget = deployment.kubernetes("PodDisruptionBudget")[name]
        assert budget["spec"]["selector"]["matchLabels"] == labels
        assert self.deployments[name]["spec"]["replicas"] > budget["spec"]["maxUnavailable"]

    def test_what_is_scaled_exists(self) -> None:
        scaled = deployment.kubernetes("ScaledObject")["worker"]
        assert scaled["spec"]["scaleTargetRef"]["name"] in self.deployments

    def test_what_is_mounted_exists(self) -> None:
        maps = deployment.kubernetes("ConfigMap")
        claims = deployment.kubernetes("PersistentVolumeClaim")
        for each in self.deployments.values():
            pod = each["spec"]["template"]["spec"]
            volumes = {volume["name"]: volume for volume in pod["volumes"]}
            for mount in pod["containers"][0]["volumeMounts"]:
                volume = volumes[mount["name"]]
                assert "configMap" not in volume or volume["configMap"]["name"] in maps
                claim = volume.get("persistentVolumeClaim")
                assert claim is None or claim["claimName"] in claims

    def test_nothing_reaches_a_pod_but_what_a_policy_names(self) -> None:
        policies = deployment.kubernetes("NetworkPolicy")
        closed = policies["closed"]["spec"]
        assert closed == {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
        (kustomization,) = deployment.documents(DEPLOY / "kubernetes" / "kustomization.yaml")
        assert "network.yaml" in kustomization["resources"]
        for name, policy in policies.items():
            wanted = policy["spec"]["podSelector"].get("matchLabels", {}).items()
            selected = [
                each
                for each in self.deployments.values()
                if wanted <= each["spec"]["template"]["metadata"]["labels"].items()
            ]
            assert selected, name
            ports = {port for each in selected for port in _ports(each)}
            for rule in policy["spec"].get("ingress", ()):
                assert {port["port"] for port in rule["ports"]} <= ports, name

    def test_the_public_web_is_all_that_pipelines_reach(self) -> None:
        rules = deployment.kubernetes("NetworkPolicy")["outgoing"]["spec"]["egress"]
        (web,) = [each["to"][0]["ipBlock"] for each in rules if "ipBlock" in str(each)]
        assert {"10.0.0.0/8", "169.254.0.0/16", "192.168.0.0/16"} <= set(web["except"])


def _ports(deployed: dict[str, Any]) -> set[str | int]:
    ports = deployed["spec"]["template"]["spec"]["containers"][0]["ports"]
    return {port["name"] for port in ports} | {port["containerPort"] for port in ports}


def test_the_units_allow_more_open_files_than_the_connections_need() -> None:
    for path in UNITS:
        (limit,) = deployment.unit(path)["LimitNOFILE"]
        assert int(limit) >= 2 * ConnectionLimits().connections


def test_the_build_backend_is_pinned_and_the_same_everywhere() -> None:
    for path in (
        ROOT / "pyproject.toml",
        ROOT / "client" / "pyproject.toml",
        *ROOT.glob("pipelines/*/pyproject.toml"),
    ):
        (wanted,) = tomllib.loads(path.read_text())["build-system"]["requires"]
        assert wanted.startswith("hatchling>=")
    pins = [(ROOT / "requirements" / name).read_text() for name in ("build.txt", "dev.txt")]
    pinned = {re.search(r"^hatchling==.*$", text, re.M)[0] for text in pins}  # type: ignore[index]
    assert len(pinned) == 1
    steps = [rest for word, rest in deployment.dockerfile() if word == "RUN"]
    assert any("--require-hashes -r requirements/build.txt" in step for step in steps)
    assert any("--no-build-isolation" in step for step in steps)


@pytest.mark.tools
class TestSystemd:
    @pytest.fixture
    def units(self, tmp_path: Path) -> Path:
        """The units with a program that is there, as `systemd-analyze` looks for it."""
        for path in (DEPLOY / "systemd").glob("holdfast*.*"):
            text = path.read_text().replace("/opt/holdfast/bin/holdfast", "/bin/true")
            (tmp_path / path.name.replace("@.", "@prices.")).write_text(text)
        return tmp_path

    @pytest.mark.parametrize("name", [path.name.replace("@.", "@prices.") for path in UNITS])
    def test_the_unit_is_understood_and_hardened(self, units: Path, name: str) -> None:
        verified = _analyze("verify", "--man=no", str(units / name))
        assert (verified.returncode, verified.stderr) == (0, "")
        judged = _analyze("security", "--offline=true", "--threshold=20", str(units / name))
        assert judged.returncode == 0, judged.stdout

    def test_health_ports_differ(self) -> None:
        environments = dict(deployment.environments())
        names = [path.name for path in UNITS if "migrate" not in path.name]
        ports = {load_settings(environments[name]).health.port for name in names}
        assert len(ports) == len(names) and None not in ports


def _analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(["systemd-analyze", *arguments], capture_output=True, text=True)
