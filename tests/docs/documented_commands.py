"""The `holdfast` lines in the blocks of the README and the docs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    ROOT / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
    *sorted((ROOT / "pipelines").glob("*/src/*/docs/**/*.md")),
]
#: Every block, whatever its language: the end of one must not be taken for the start of the next.
_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```", re.M | re.S)
_LANGUAGES = ("", "bash", "console", "sh", "text")
_LINE = re.compile(
    r"^(?:\$ )?(?:.* \| |\w+=\$\()?((?:[A-Z_]+=\S* )*)(?:\.venv/bin/)?holdfast (.+?)\)?(?: &)?$"
)
#: Such signs describe the forms of a command. The reference is compared with the program by its
#: own test.
_FORMS = re.compile(r"[\[\]…|]|\.\.\.")


class Documented(NamedTuple):
    page: str
    line: str
    #: what the line sets before the command
    settings: str = ""

    def __str__(self) -> str:
        return f"{self.page}: {self.line}"[:90]

    def words(self) -> list[str]:
        words = shlex.split(self.line, comments=True)
        return words[: words.index(">")] if ">" in words else words


def documented_commands() -> list[Documented]:
    return list(dict.fromkeys(command for page in PAGES for command in _commands_of(page)))


def _commands_of(page: Path) -> Iterator[Documented]:
    for language, block in _BLOCK.findall(page.read_text()):
        if language not in _LANGUAGES:
            continue
        for line in block.replace("\\\n", " ").splitlines():
            match = _LINE.match(line.strip())
            if match and match[2] != "COMMAND --help" and not _FORMS.search(match[2]):
                yield Documented(str(page.relative_to(ROOT)), match[2], match[1].strip())
