"""The core and each pipeline as wheels, in an empty environment with what they declare."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.wheels import CORE, ROOT, Environment, run

pytestmark = pytest.mark.slow

PIPELINES = sorted(ROOT.glob("pipelines/*"))

#: What a base installation does not bring: pipelines' libraries, and those of optional parts.
NOT_OF_THE_CORE = {
    "ada-url", "aio-pika", "anyascii", "lxml-html-clean", "obstore", "onnxruntime",
    "opentelemetry-sdk", "pillow", "pillow-heif", "pypdf", "rapidfuzz", "rapidocr", "selectolax",
    "trafilatura", "uvloop",
}  # fmt: skip

IMPORT_ALL = """
import importlib, pkgutil, sys
package = importlib.import_module(sys.argv[1])
for found in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
    importlib.import_module(found.name)
"""


@pytest.fixture(scope="module")
def core(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("core"), CORE)


def test_core_alone_needs_no_library_of_a_pipeline(core: Environment) -> None:
    assert core.dependencies.keys() & NOT_OF_THE_CORE == set()
    (core.work / "shout.py").write_text(
        "from holdfast import pipeline\n\n"
        "@pipeline\n"
        "async def shout(row, ctx):\n"
        "    return {'word': row['word'].upper()}\n"
    )
    (core.work / "words.csv").write_text("word\nsea\n")
    core.run("run", "shout.py", "words.csv", "--out", "loud.csv")
    assert "SEA" in (core.work / "loud.csv").read_text()
    assert "none is installed" in core.run("doctor")


@pytest.mark.parametrize(
    ("extra", "setting", "value"),
    [
        ("rabbitmq", "HOLDFAST_BROKER_URL", "amqp://localhost/"),
        ("s3", "HOLDFAST_FILES_BUCKET", "records"),
        ("otel", "HOLDFAST_OTLP_ENDPOINT", "http://localhost:4318"),
    ],
)
@pytest.mark.parametrize("command", ["jobs", "doctor"])
def test_setting_that_needs_a_missing_part_says_what_to_install(
    core: Environment, extra: str, setting: str, value: str, command: str
) -> None:
    environment = {**core.variables(), setting: value}
    result = subprocess.run(
        [core.program, command], cwd=core.work, env=environment, capture_output=True, text=True
    )
    assert result.returncode != 0
    assert f"pip install 'holdfast[{extra}]'" in result.stdout + result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("command", [["relay"], ["broker", "reset", "orders"]])
def test_command_of_a_missing_part_needs_no_library_to_say_so(
    core: Environment, command: list[str]
) -> None:
    environment = core.variables()
    result = subprocess.run(
        [core.program, *command], cwd=core.work, env=environment, capture_output=True, text=True
    )
    assert result.returncode != 0 and "no broker is configured" in result.stderr
    assert "Traceback" not in result.stderr


@pytest.mark.parametrize("project", PIPELINES, ids=lambda project: project.name)
def test_pipeline_brings_what_it_imports(project: Path, tmp_path: Path) -> None:
    environment = Environment(tmp_path, [*CORE, project], extras=["photos"])
    name = project.name
    assert f"  {name} " in environment.run("--help")
    assert "Usage: holdfast" in environment.run(name, "--help")
    run([environment.python, "-c", IMPORT_ALL, f"holdfast_{name}"], cwd=environment.work)
    environment.run("migrate", "up")
    assert f"\n{name} " in environment.run("migrate", "status")
