"""Prints a bill of materials (CycloneDX, JSON): what a full installation consists of.

    python tools/sbom.py > dist/sbom.json

Packages and versions are those of requirements/base.txt, which installs everything but the parts
that are off by default; licenses are those that the installed packages state.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PROJECTS = (ROOT, ROOT / "client", *sorted(ROOT.glob("pipelines/*")))
_PIN = re.compile(r"^([\w.-]+)(?:\[.*?\])?==([^\s;\\]+)", re.MULTILINE)


def bill_of_materials() -> dict[str, Any]:
    """Returns the document: our own distributions, and every package that they need."""
    ours = [_our_own(project) for project in PROJECTS]
    others = [_component(name, version) for name, version in pins()]
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {"component": ours[0]},
        "components": ours[1:] + others,
    }


def pins() -> list[tuple[str, str]]:
    """Returns name and version of each package that a full installation brings."""
    return _PIN.findall((ROOT / "requirements" / "base.txt").read_text())


def _our_own(project: Path) -> dict[str, Any]:
    name = tomllib.loads((project / "pyproject.toml").read_text())["project"]["name"]
    return _component(name, metadata(name)["Version"]) | {"type": "application"}


def _component(name: str, version: str) -> dict[str, Any]:
    component: dict[str, Any] = {
        "type": "library",
        "name": name,
        "version": version,
        "purl": f"pkg:pypi/{name.lower().replace('_', '-')}@{version}",
    }
    if license := _license_of(name):
        component["licenses"] = [{"license": {"name": license}}]
    return component


def _license_of(name: str) -> str:
    """Returns what the package says about its license, shortly; empty if it says nothing."""
    try:
        about = metadata(name)
    except PackageNotFoundError:  # not on this platform
        return ""
    classified = [
        line.rpartition(" :: ")[2]
        for line in about.get_all("Classifier") or ()
        if line.startswith("License :: ")
    ]
    stated = about.get("License-Expression") or ", ".join(classified) or about.get("License") or ""
    return stated.splitlines()[0][:100] if stated else ""


if __name__ == "__main__":
    json.dump(bill_of_materials(), sys.stdout, indent=2)
    print()
