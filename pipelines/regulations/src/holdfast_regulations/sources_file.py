"""Reads the sources file: TOML, checked completely, with the line and field of every mistake."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, get_args

from pydantic import BaseModel, ValidationError

from holdfast.errors import InputError
from holdfast_regulations.sources import Source

_HEADER = re.compile(r"\s*(\[\[?)([^\]]+)\]\]?\s*(?:#.*)?$")
_KEY = re.compile(r"\s*((?:[A-Za-z0-9_-]+|\"[^\"]*\"|'[^']*')(?:\s*\.\s*(?:[\w-]+))*)\s*=")
_TOML_LINE = re.compile(r"\(at line (\d+), column \d+\)")
_ITEM = "source"

Names = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Mistake:
    """A mistake; `field` is empty if the whole file is meant."""

    line: int
    field: str
    message: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.field + ' ' if self.field else ''}{self.message}"


class SourcesFileError(InputError):
    def __init__(self, file: str, mistakes: list[Mistake]) -> None:
        lines = "\n".join(f"  {mistake}" for mistake in mistakes)
        super().__init__(
            f"{file} has {len(mistakes)} mistake{'s' if len(mistakes) > 1 else ''}:\n{lines}",
            "The page Sources in the documentation of regulations describes every field.",
        )
        self.mistakes = mistakes


def shipped_sources() -> dict[str, Source]:
    """Returns the Croatian sources that come with Holdfast, by slug."""
    file = resources.files("holdfast_regulations") / "croatia.toml"
    return parse_sources(file.read_text("utf-8"), "croatia.toml")


def read_sources(path: Path) -> dict[str, Source]:
    try:
        text = path.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not UTF-8", "Save it as UTF-8.") from error
    return parse_sources(text, str(path))


def parse_sources(text: str, file: str) -> dict[str, Source]:
    """Returns the sources by slug; raises every mistake that the file has."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SourcesFileError(file, [_syntax(error, text)]) from error
    lines = _Lines(text)
    mistakes = list(_top_level(document, lines))
    sources: list[tuple[int, Source]] = []
    for position, table in enumerate(_tables(document)):
        try:
            sources.append((position, Source.model_validate(table)))
        except ValidationError as error:
            mistakes += _mistakes(error, position, lines)
    mistakes += _repeated(sources, lines)
    if mistakes:
        raise SourcesFileError(file, sorted(mistakes, key=lambda mistake: mistake.line))
    return {source.slug: source for _, source in sources}


def _tables(document: Mapping[str, Any]) -> list[Any]:
    tables = document.get(_ITEM, [])
    return tables if isinstance(tables, list) else []


def _syntax(error: tomllib.TOMLDecodeError, text: str) -> Mistake:
    place = _TOML_LINE.search(str(error))
    line = int(place[1]) if place else text.count("\n") + 1
    return Mistake(line, "", f"is not TOML: {str(error).partition(' (at ')[0]}")


def _top_level(document: Mapping[str, Any], lines: _Lines) -> Iterator[Mistake]:
    for name in document:
        if name != _ITEM:
            yield Mistake(lines.of_top(name), name, f"is not known here{_nearest(name, [_ITEM])}")
    if not _tables(document):
        yield Mistake(1, "", "there is no [[source]]")


def _mistakes(error: ValidationError, position: int, lines: _Lines) -> Iterator[Mistake]:
    named: set[Names] = set()
    for problem in error.errors(include_url=False):
        path = tuple(str(part) for part in problem["loc"] if isinstance(part, str))
        # A list whose entries are all wrong counts as empty too: one message is enough.
        if problem["type"] == "too_short" and path in named:
            continue
        named.add(path)
        yield Mistake(lines.of(position, path), ".".join(path), _message(problem, path))


def _message(problem: Any, path: Names) -> str:
    kind = problem["type"]
    if kind == "extra_forbidden":
        return f"is not known here{_nearest(path[-1], _fields(path[:-1]))}"
    if kind == "missing":
        return "is missing"
    if kind == "value_error":
        return str(problem["ctx"]["error"])
    if kind == "too_short":
        return "is empty"
    text = str(problem["msg"]).replace("Input should", "must")
    return f"is {problem['input']!r:.60}; it {text[:1].lower()}{text[1:]}"


def _fields(path: Names) -> list[str]:
    """Returns the names that are known in the table at this path."""
    model: type[BaseModel] = Source
    for name in path:
        annotation = model.model_fields[name].annotation
        choices = [annotation, *get_args(annotation)]
        model = next(c for c in choices if isinstance(c, type) and issubclass(c, BaseModel))
    return list(model.model_fields)


def _nearest(name: str, known: list[str]) -> str:
    nearest = difflib.get_close_matches(name, known, 1, cutoff=0.5)
    return f"; did you mean {nearest[0]}?" if nearest else f"; known: {', '.join(known)}"


def _repeated(sources: list[tuple[int, Source]], lines: _Lines) -> Iterator[Mistake]:
    first: dict[str, int] = {}
    for position, source in sources:
        line = lines.of(position, ("slug",))
        if source.slug in first:
            message = f"{source.slug!r} is the slug of another source, in line {first[source.slug]}"
            yield Mistake(line, "slug", message)
        first.setdefault(source.slug, line)


class _Lines:
    """Finds the line of each key, which tomllib does not say.

    A line inside a multi-line string that looks like a key is taken for one: a mistake would then
    be shown a few lines off, and nothing worse."""

    def __init__(self, text: str) -> None:
        self._places: dict[tuple[int, Names], int] = {}
        position, sources_count = -1, 0
        table: Names = ()
        for number, line in enumerate(text.splitlines(), 1):
            header = _HEADER.match(line)
            key = _KEY.match(line)
            if header is not None:
                name, *table_names = _names(header[2])
                table = tuple(table_names)
                if name != _ITEM:
                    table = (name, *table)
                elif header[1] == "[[" and not table:
                    sources_count += 1
                position = sources_count - 1 if name == _ITEM else -1
                self._note(position, table, number)
            elif key is not None:
                self._note(position, (*table, *_names(key[1])), number)

    def of(self, position: int, path: Names) -> int:
        """Returns the line of the field; if it is not written, of the nearest table around it."""
        while path and (position, path) not in self._places:
            path = path[:-1]
        return self._places.get((position, path), 1)

    def of_top(self, name: str) -> int:
        return self._places.get((-1, (name,)), 1)

    def _note(self, position: int, path: Names, number: int) -> None:
        for end in range(len(path), -1, -1):
            self._places.setdefault((position, path[:end]), number)


def _names(dotted: str) -> list[str]:
    return [name.strip().strip("\"'") for name in dotted.split(".")]
