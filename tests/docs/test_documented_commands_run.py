"""Every command line in the README and the docs is one that the program accepts."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import typer.core

from holdfast.cli.command_list import COMMANDS
from holdfast.cli.lazy_commands import load_own
from holdfast.extension import installed

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "src" / "holdfast" / "pipelines").rglob("docs/**/*.md")),
]
_BLOCK = re.compile(r"^```(?:bash|console|sh|text)?\n(.*?)^```", re.M | re.S)
_LINE = re.compile(r"^(?:\$ )?(?:[A-Z_]+=\S* )*(?:\.venv/bin/)?holdfast (.+?)(?: &)?$")
_PLACEHOLDER = re.compile(r"[A-Z]+(?:_[A-Z]+)*")


class Documented(NamedTuple):
    page: str
    line: str


def _documented() -> Iterator[Documented]:
    for page in PAGES:
        for block in _BLOCK.findall(page.read_text()):
            for line in block.replace("\\\n", " ").splitlines():
                match = _LINE.match(line.strip())
                # Brackets and dots describe the forms of a command; the reference is compared
                # with the program by its own test.
                if (
                    match
                    and match[1] != "COMMAND --help"
                    and not re.search(r"[\[\]…|<>(){}]|\.\.\.", match[1])
                ):
                    yield Documented(str(page.relative_to(ROOT)), match[1])


LINES = list(dict.fromkeys(_documented()))


def _program() -> Any:
    group = typer.core.TyperGroup(name="holdfast")
    for name in COMMANDS:
        group.add_command(load_own(name), name)
    for name, extension in installed().items():
        if extension.commands:
            group.add_command(typer.main.get_command(extension.load("commands")), name)
    return group


def test_there_are_documented_commands_of_every_kind() -> None:
    assert len(LINES) > 60
    assert {line.line.split()[0] for line in LINES} >= {"run", "up", "work", "schedule", "meetings"}


@pytest.mark.parametrize("documented", LINES, ids=lambda one: f"{one.page}: {one.line}"[:90])
def test_documented_command_is_accepted(documented: Documented) -> None:
    words = [
        "1" if _PLACEHOLDER.fullmatch(word) else word
        for word in shlex.split(documented.line, comments=True)
    ]
    command, context = _program(), None
    while hasattr(command, "commands"):
        assert words, f"{documented.line!r} names no command"
        name, *words = words
        assert name in command.commands, f"there is no command {name!r}"
        command = command.commands[name]
    context = command.make_context(name, list(words))
    assert context is not None
