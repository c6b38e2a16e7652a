"""Wheels of ours, installed in an empty environment with exactly what they declare."""

from __future__ import annotations

import atexit
import os
import shutil
import subprocess
import sys
import tempfile
import venv
from collections.abc import Iterator, Sequence
from functools import cache
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).resolve().parents[1]
#: The core, and the client that it depends on.
CORE = (ROOT, ROOT / "client")
PIP = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]


class Environment:
    """Projects as their wheels, and the packages that these depend on, with the extras named. The
    packages are linked from where the tests run, so that nothing is downloaded."""

    def __init__(
        self,
        folder: Path,
        projects: Sequence[Path],
        extras: Sequence[str] = (),
        others: Sequence[str] = (),
    ) -> None:
        """`others` are requirements of somebody else's: the drivers of an application."""
        venv.create(folder / "venv", with_pip=False, symlinks=True)
        self.python = folder / "venv" / "bin" / "python"
        install = [*PIP, "--python", str(self.python), "install", "--no-deps", "--no-index"]
        run([*install, *map(wheel, projects)])
        self.packages = next((folder / "venv" / "lib").glob("python*/site-packages"))
        ours = list(distributions(path=[str(self.packages)]))
        needs = [need for each in ours for need in _needs(each, ["", *extras])]
        self.dependencies = _closure(needs, ours)
        beside = _closure([Requirement(other) for other in others], ours)
        for dependency in (self.dependencies | beside).values():
            _link(dependency, self.packages)
        self.program = folder / "venv" / "bin" / "holdfast"
        self.work = folder / "work"
        self.work.mkdir()

    def run(self, *arguments: str) -> str:
        return run([self.program, *arguments], cwd=self.work, env=self.variables())

    def variables(self) -> dict[str, str]:
        return {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8", "NO_COLOR": "1", "COLUMNS": "120"}


@cache
def wheel(project: Path) -> Path:
    """Returns the project's wheel, built once."""
    folder = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, folder)
    run([*PIP, "wheel", "--no-build-isolation", "--no-deps", "-w", str(folder), project])
    return next(folder.glob("*.whl"))


def run(command: Sequence[str | Path], **more: object) -> str:
    result = subprocess.run(command, capture_output=True, text=True, **more)  # type: ignore[call-overload]
    assert result.returncode == 0, result.stderr
    output: str = result.stdout
    return output


def _closure(needs: Sequence[Requirement], ours: Sequence[Distribution]) -> dict[str, Distribution]:
    """Returns what is needed, directly or not, by name, without ours."""
    names = {canonicalize_name(each.name) for each in ours}
    found: dict[str, Distribution] = {}
    waiting = list(needs)
    seen: set[tuple[str, tuple[str, ...]]] = set()
    while waiting:
        need = waiting.pop()
        name = canonicalize_name(need.name)
        key = (name, tuple(sorted(need.extras)))
        if key in seen:
            continue
        seen.add(key)
        each = next((one for one in ours if canonicalize_name(one.name) == name), None)
        if each is None:
            each = found.setdefault(name, _installed(need))
        waiting += _needs(each, ["", *need.extras])
    assert not names & found.keys()
    return found


def _installed(need: Requirement) -> Distribution:
    try:
        return distribution(need.name)
    except PackageNotFoundError:
        raise AssertionError(f"{need} is declared, and not in requirements/dev.txt") from None


def _needs(each: Distribution, extras: Sequence[str]) -> Iterator[Requirement]:
    for text in each.requires or ():
        need = Requirement(text)
        if need.marker is None or any(need.marker.evaluate({"extra": one}) for one in extras):
            yield need


def _link(each: Distribution, packages: Path) -> None:
    """Links what belongs to a distribution. A folder without __init__.py may be shared by several:
    what is in it is linked."""
    for path in each.files or ():
        parts = path.parts
        if ".." in parts or "__pycache__" in parts:
            continue
        depth = 1
        while depth < len(parts) and _is_shared(_place(each, parts[:depth])):
            depth += 1
        target = packages.joinpath(*parts[:depth])
        target.parent.mkdir(parents=True, exist_ok=True)
        if not target.exists():
            target.symlink_to(_place(each, parts[:depth]))


def _is_shared(folder: Path) -> bool:
    is_whole = folder.suffix == ".dist-info" or (folder / "__init__.py").exists()
    return folder.is_dir() and not is_whole


def _place(each: Distribution, parts: Sequence[str]) -> Path:
    return Path(str(each.locate_file("/".join(parts))))
