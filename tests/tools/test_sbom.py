"""The bill of materials names what is installed."""

from __future__ import annotations

import re
from pathlib import Path

from tools.sbom import bill_of_materials, pins

ROOT = Path(__file__).resolve().parents[2]


def test_every_pinned_package_and_each_distribution_is_on_the_bill() -> None:
    lines = (ROOT / "requirements" / "base.txt").read_text().splitlines()
    pinned = [line for line in lines if re.match(r"\w", line)]
    assert len(pins()) == len(pinned) > 50
    bill = bill_of_materials()
    names = {component["name"] for component in bill["components"]}
    assert {"orjson", "holdfast-client", "holdfast-posts"} <= names
    assert bill["metadata"]["component"]["name"] == "holdfast"


def test_packages_state_their_licenses() -> None:
    components = bill_of_materials()["components"]
    without = [each["name"] for each in components if "licenses" not in each]
    assert len(without) < len(components) / 10, without
    assert not [each["name"] for each in components if "GPLv2" in str(each.get("licenses"))]
