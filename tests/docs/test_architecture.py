"""The architecture page describes the folders and files that there are."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "holdfast"
PAGE = (ROOT / "docs" / "explanation" / "architecture.md").read_text()
FOLDERS = re.findall(r"^\| `([\w*./]+)` \|", PAGE, re.M)


def test_every_folder_is_described() -> None:
    folders = {f"{path.parent.name}/" for path in SOURCE.glob("*/__init__.py")}
    assert set(FOLDERS) == {"holdfast/*.py", *folders}


def test_the_seven_steps_of_a_record_name_files_that_exist() -> None:
    steps = re.findall(r"^\| (\d) \| `([\w/]+\.py)` \|", PAGE, re.M)
    assert [number for number, _ in steps] == list("1234567")
    assert all((SOURCE / path).is_file() for _, path in steps)


def test_every_file_that_the_page_names_exists() -> None:
    paths = set(re.findall(r"`((?:\w+/)+(?:\w+\.(?:py|sql))?)`", PAGE)) - {"src/holdfast/"}
    there = {path for path in paths if (SOURCE / path).exists() or (ROOT / path).exists()}
    assert paths - there == set()
