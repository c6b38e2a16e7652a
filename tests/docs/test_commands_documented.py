"""Every command and option of the program is in its reference, and none that it lacks."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer

from holdfast.cli.main import app
from holdfast.extension import installed

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "reference" / "commands.md").read_text()
README = (ROOT / "README.md").read_text()
SECTIONS = [section for section in PAGE.split("\n## ")[1:] if "```\nholdfast " in section]


def commands(group: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    for name, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from commands(command, f"{path}{name} ")
        else:
            yield f"{path}{name}", command


COMMANDS = dict(commands(typer.main.get_command(app)))
for extension in installed().values():
    if extension.commands:
        group = typer.main.get_group(extension.load("commands"))
        COMMANDS |= commands(group, f"{extension.name} ")


def options_of(command: Any) -> set[str]:
    visible = [each for each in command.params if not getattr(each, "hidden", False)]
    names = [name for each in visible for name in (*each.opts, *each.secondary_opts)]
    return {name for name in names if name.startswith("--")} - {"--help"}


def section_of(name: str) -> str:
    (found,) = (each for each in SECTIONS if re.search(rf"^holdfast {name}\b", each, re.M))
    return found


@pytest.mark.parametrize("name", COMMANDS)
def test_command_is_described_with_its_options(name: str) -> None:
    section = section_of(name)
    mentioned = set(re.findall(r"--[a-z][a-z-]*", section))
    assert options_of(COMMANDS[name]) - mentioned == set()


@pytest.mark.parametrize("section", SECTIONS, ids=lambda section: section.splitlines()[0])
def test_nothing_is_described_that_the_program_lacks(section: str) -> None:
    described = re.findall(r"^holdfast ([a-z-]+(?: [a-z]+(?= |$))?)", section, re.M)
    names = {name if name in COMMANDS else name.split()[0] for name in described}
    assert names <= set(COMMANDS), names
    known = set().union(*(options_of(COMMANDS[name]) for name in names))
    assert set(re.findall(r"--[a-z][a-z-]*", section)) <= known


@pytest.mark.parametrize("name", sorted({name.split()[0] for name in COMMANDS}))
def test_readme_lists_the_command(name: str) -> None:
    assert re.search(rf"`holdfast {name}\b|· `{name} JOB`", README)


@pytest.mark.parametrize("name", COMMANDS)
def test_command_explains_itself_and_each_of_its_options(name: str) -> None:
    command = COMMANDS[name]
    assert command.help and command.help.strip().split("\n")[0].endswith(".")
    silent = [
        each.name for each in command.params if not getattr(each, "hidden", False) and not each.help
    ]
    assert silent == []
