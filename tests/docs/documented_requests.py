"""The HTTP requests in the README and the docs: `curl` lines, `METHOD /path` with or without a body
in a block, and `METHOD /path` within a sentence.

Not those of the reference pages: they list the routes, and other tests compare them.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

ROOT = Path(__file__).resolve().parents[2]
PAGES = [
    path
    for path in (
        ROOT / "README.md",
        *sorted((ROOT / "docs").rglob("*.md")),
        *sorted((ROOT / "pipelines").glob("*/src/*/docs/**/*.md")),
    )
    if path != ROOT / "docs" / "reference" / "api.md"
    and not path.match("pipelines/*/src/*/docs/reference.md")
]
_METHOD = r"(GET|POST|PUT|PATCH|DELETE)"
_BLOCK = re.compile(r"^```\w*\n(.*?)^```", re.M | re.S)
_LINE = re.compile(rf"^{_METHOD} +(/\S+)")
_SENTENCE = re.compile(rf"`{_METHOD} (/[^`\s]+)`(?: with `(\{{[^`]+\}})`)?")


@dataclass(frozen=True)
class Documented:
    page: str
    method: str
    target: str
    body: str | None = None
    headers: tuple[tuple[str, str], ...] = ()
    form: tuple[tuple[str, str], ...] = field(default=())

    def __str__(self) -> str:
        return f"{self.page}: {self.method} {self.target}"


def documented_requests() -> list[Documented]:
    return list(dict.fromkeys(request for page in PAGES for request in _requests_of(page)))


def _requests_of(page: Path) -> Iterator[Documented]:
    name, text = str(page.relative_to(ROOT)), page.read_text()
    for block in _BLOCK.findall(text):
        yield from _in_block(name, block)
    for method, target, body in _SENTENCE.findall(_BLOCK.sub("", text)):
        yield Documented(name, method, target, body or None)


def _in_block(page: str, block: str) -> Iterator[Documented]:
    lines = block.replace("\\\n", " ").splitlines()
    for number, line in enumerate(lines):
        match = _LINE.match(line)
        if line.startswith("curl "):
            yield _of_curl(page, shlex.split(line)[1:])
        elif match:
            following = "\n".join(lines[number + 1 :])
            body = following if following.startswith("{") else None
            yield Documented(page, match[1], match[2], body)


def _of_curl(page: str, words: list[str]) -> Documented:
    method, target, body = "", "", None
    headers: list[tuple[str, str]] = []
    form: list[tuple[str, str]] = []
    rest = iter(words)
    for word in rest:
        if word == "-X":
            method = next(rest)
        elif word == "-H":
            name, _, value = next(rest).partition(": ")
            headers.append((name, value))
        elif word == "-F":
            name, _, value = next(rest).partition("=")
            form.append((name, value))
        elif word in ("-d", "--data-binary"):
            body = next(rest)
        else:
            assert word.startswith("http"), f"{page}: unknown option {word} of curl"
            parts = urlsplit(word)
            target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    method = method or ("POST" if form or body else "GET")
    return Documented(page, method, target, body, tuple(headers), tuple(form))
