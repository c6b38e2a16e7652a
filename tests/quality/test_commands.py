"""Each command of bench.quality that is documented can be run."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

import pytest
from typer.main import get_command

from bench.quality.__main__ import app
from tests.docs.documented_commands import PAGES, ROOT

_LINE = re.compile(r"^(?:\w+=\S+ )?(?:\.venv/bin/)?python -m bench\.quality (.+)$", re.M)


def _documented() -> Iterator[str]:
    for page in (*PAGES, *sorted((ROOT / "bench" / "quality").rglob("*.md"))):
        yield from _LINE.findall(page.read_text("utf-8"))


@pytest.mark.parametrize("line", sorted(set(_documented())))
def test_documented_command_is_known(line: str) -> None:
    name, *words = shlex.split(line)
    command = get_command(app).commands[name]
    assert command.make_context(name, words) is not None
    for word in words:
        assert not word.startswith(("bench/", "src/")) or (ROOT / word).exists()


def test_every_command_is_documented() -> None:
    page = (ROOT / "bench" / "quality" / "README.md").read_text("utf-8")
    for name in get_command(app).commands:
        assert f"python -m bench.quality {name}" in page
