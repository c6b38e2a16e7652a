"""A third party's package: built as a wheel, installed beside Holdfast's own wheel in an empty
environment, and used through the installed program."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import venv
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.signing_in import sign_in

ROOT = Path(__file__).resolve().parents[2]
THIRD_PARTY = Path(__file__).parent / "third_party"
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]

pytestmark = pytest.mark.slow


class Environment:
    """Holdfast and the third party's package, installed from wheels."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        wheels = folder / "wheels"
        for project in (ROOT, THIRD_PARTY):
            _run([*PIP, "wheel", "--no-build-isolation", "--no-deps", "-w", str(wheels), project])
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        self.python = folder / "venv" / "bin" / "python"
        install = [*PIP, "--python", str(self.python), "install", "--no-deps", "--no-index"]
        _run([*install, *sorted(wheels.glob("*.whl"))])
        self.packages = next((folder / "venv" / "lib").glob("python*/site-packages"))
        _borrow_dependencies(self.packages, folder / "dependencies")
        self.program = folder / "venv" / "bin" / "holdfast"
        self.work = folder / "work"
        self.work.mkdir()

    def run(self, *arguments: str) -> str:
        return _run([self.program, *arguments], cwd=self.work, env=self._variables())

    @contextmanager
    def signed_in(self, *arguments: str) -> Iterator[httpx2.Client]:
        """An admin's browser, while the command serves pages."""
        process = subprocess.Popen(
            [self.program, *arguments],
            cwd=self.work,
            env=self._variables(),
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            assert process.stderr is not None
            links = (re.search(r"http\S+/login/\S+", line) for line in process.stderr)
            link = next(match[0] for match in links if match)
            with httpx2.Client(base_url=link.partition("/login/")[0], timeout=30) as client:
                assert sign_in(client, link).status_code == 303
                yield client
        finally:
            process.send_signal(signal.SIGINT)
            process.communicate(timeout=30)

    def _variables(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "COLUMNS": "120"}


def _borrow_dependencies(packages: Path, folder: Path) -> None:
    """What both depend on, as it is installed here, so that nothing is downloaded. Holdfast itself
    is left out: only the wheel's may be imported."""
    folder.mkdir()
    for path in (Path(entry) for entry in sys.path if Path(entry).name == "site-packages"):
        for each in path.iterdir():
            link = folder / each.name
            if "holdfast" not in each.name and each.suffix != ".pth" and not link.is_symlink():
                link.symlink_to(each)
    (packages / "dependencies.pth").write_text(f"{folder}\n")


def _run(command: list[str | Path], **more: object) -> str:
    result = subprocess.run(command, capture_output=True, text=True, **more)  # type: ignore[call-overload]
    assert result.returncode == 0, result.stderr
    output: str = result.stdout
    return output


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Environment:
    return Environment(tmp_path_factory.mktemp("installed"))


def test_wheel_of_a_third_party_is_used_beside_holdfast(environment: Environment) -> None:
    where = "import holdfast, holdfast_tides; print(holdfast.__file__, holdfast_tides.__file__)"
    for path in _run([environment.python, "-c", where], cwd=environment.work).split():
        assert Path(path).is_relative_to(environment.packages)

    assert re.search(r"^  tides +High tides of harbours\.$", environment.run("--help"), re.M)
    assert environment.run("tides", "highest") == "3.5\n"

    environment.run("migrate", "up")
    assert re.search(r"tides +1 .*up to date", environment.run("migrate", "status"))

    (environment.work / "harbours.csv").write_text("harbour\nBrest\nDover\n")
    environment.run("run", "tides", "harbours.csv", "--out", "heights.csv")
    results = (environment.work / "heights.csv").read_text()
    assert "Dover" in results and "3.5" in results
    assert environment.run("tides", "list") == "Brest 3.5\nDover 3.5\n"

    with environment.signed_in("api", "tides", "--port", "0") as browser:
        page = browser.get("/tides").text
    assert "<li>Dover: 3.5 m</li>" in page and 'href="/tides"' in page

    environment.run("migrate", "down", "tides", "base", "--yes")
    assert re.search(r"tides .*run: holdfast migrate up", environment.run("migrate", "status"))
