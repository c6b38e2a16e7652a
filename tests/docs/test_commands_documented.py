"""Every command and option of the core is in its reference, and none that it lacks. Commands of
extensions are compared with their own docs, in tests/extension/test_contract.py."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

from holdfast.cli.command_list import COMMANDS as LISTED
from holdfast.cli.lazy_commands import load_own
from tests.docs.described_commands import (
    commands,
    sections_of,
    undescribed_options,
    unexplained,
    unknown_words,
)

ROOT = Path(__file__).resolve().parents[2]
SECTIONS = sections_of((ROOT / "docs" / "reference" / "commands.md").read_text())
README = (ROOT / "README.md").read_text()
COMMANDS = dict(commands(SimpleNamespace(commands={name: load_own(name) for name in LISTED})))


@pytest.mark.parametrize("name", COMMANDS)
def test_command_is_described_with_its_options(name: str) -> None:
    assert undescribed_options(name, COMMANDS[name], SECTIONS) == set()


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.splitlines()[0])
def test_nothing_is_described_that_the_program_lacks(section: str) -> None:
    assert unknown_words(section, COMMANDS) == set()


@pytest.mark.parametrize("name", sorted({name.split()[0] for name in COMMANDS}))
def test_readme_lists_the_command(name: str) -> None:
    assert re.search(rf"`holdfast {name}\b|· `{name} JOB`", README)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_explains_itself_and_each_of_its_options(name: str) -> None:
    assert unexplained(COMMANDS[name]) == []
