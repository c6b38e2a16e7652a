"""Reads word lists: TOML files of words, with the file and line of what is wrong in them."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from holdfast.errors import InputError

_PLACE = re.compile(r" \(at line (\d+), column \d+\)")
_TABLE = re.compile(r"\s*\[([^\[\]]+)\]\s*(?:#.*)?")
_VALUE = re.compile(r"""\s*("[^"]*"|'[^']*'|[\w-]+)\s*=(.*)""")


class WordList:
    """A TOML file whose values are texts: words or phrases with commas between them.

    A path is the name of a value, or the name of a table and that of a value in it.
    """

    def __init__(self, file: Path) -> None:
        self._file = file
        self._lines = _text_of(file).splitlines()
        self._values = _parsed(file, "\n".join(self._lines))

    def text(self, *path: str) -> str:
        """Returns the value as it is written."""
        *table, name = path
        values = self._table(*table)
        if name not in values:
            raise self.mistake(f"{_shown(path)} is missing", *table)
        value = values[name]
        if not isinstance(value, str):
            message = f"{_shown(path)} is {value!r:.40}, which is not text"
            raise self.mistake(message, *path, hint=_EXAMPLE)
        return value

    def texts(self, *table: str) -> dict[str, str]:
        """Returns the values of a table, or of a file without tables, by their names."""
        return {name: self.text(*table, name) for name in self._table(*table)}

    def words(self, *path: str) -> list[str]:
        """Returns the words or phrases of a value, in the order of the file."""
        words: dict[str, None] = {}
        for part in self.text(*path).split(","):
            word = " ".join(part.split())
            if word in words:
                raise self.mistake(f"{_shown(path)} has {word!r} twice", *path, word=word)
            if word:
                words[word] = None
        return list(words)

    def number(self, *path: str) -> float:
        *table, name = path
        value = self._table(*table).get(name)
        if not isinstance(value, int | float):
            raise self.mistake(f"{_shown(path)} is not a number", *(path if value else table))
        return value

    def names(self, *table: str) -> list[str]:
        """Returns the names of the values of a table, or of the tables of the file."""
        return list(self._table(*table))

    def groups(self, table: str) -> dict[str, list[str]]:
        """Returns the words of each value of a table."""
        return {name: self.words(table, name) for name in self._table(table)}

    def by_word(self, table: str) -> dict[str, str]:
        """Returns each word of a table with the name of the value that it is in."""
        names: dict[str, str] = {}
        for name, words in self.groups(table).items():
            for word in words:
                if word in names:
                    message = f"{word!r} is in two lists of {table}: {names[word]} and {name}"
                    raise self.mistake(message, table, name, word=word)
                names[word] = name
        return names

    def weights(self, table: str) -> dict[str, float]:
        """Returns each word of a table with its weight: the name of the value that it is in."""
        numbers = {name: self._weight(table, name) for name in self._table(table)}
        return {word: numbers[name] for word, name in self.by_word(table).items()}

    def mistake(
        self, message: str, *path: str, word: str = "", hint: str | None = None
    ) -> InputError:
        """Returns an error that names the file and the last line with the word, or the first of the
        value."""
        lines = {n: words for n, (at, words) in enumerate(_places(self._lines), 1) if at == path}
        of_word = [number for number, words in lines.items() if word and word in words]
        line = of_word[-1] if of_word else min(lines, default=1)
        return InputError(f"{self._file}, line {line}: {message}", hint)

    def _table(self, *path: str) -> Mapping[str, Any]:
        if not path:
            return self._values
        (name,) = path
        if name not in self._values:
            raise self.mistake(f"the table [{name}] is missing")
        table = self._values[name]
        if not isinstance(table, dict):
            message = f"{name} is {table!r:.40}, which is not a table"
            raise self.mistake(message, name, hint=f"Write it as [{name}].")
        return table

    def _weight(self, table: str, name: str) -> float:
        try:
            return float(name)
        except ValueError:
            raise self.mistake(f"{name!r} is not a number", table, name, hint=_WEIGHT) from None


def _shown(path: tuple[str, ...]) -> str:
    return " in ".join(reversed(path))


_EXAMPLE = 'Write words as text with commas between them: "one, two words, three".'
_WEIGHT = 'Before a list of words is their weight: "2.5" = "good, very good".'


def _text_of(file: Path) -> str:
    try:
        return file.read_text("utf-8")
    except OSError as error:
        raise InputError(f"{file} cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        line = file.read_bytes()[: error.start].count(b"\n") + 1
        raise InputError(f"{file}, line {line}: is not UTF-8", "Save it as UTF-8.") from error


def _parsed(file: Path, text: str) -> Mapping[str, Any]:
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        place = _PLACE.search(str(error))
        line = int(place[1]) if place else text.count("\n") + 1
        message = _PLACE.sub("", str(error)).removesuffix(" (at end of document)")
        raise InputError(f"{file}, line {line}: is not TOML: {message}") from error


def _places(lines: list[str]) -> Iterator[tuple[tuple[str, ...], list[str]]]:
    """Yields the path and the words of each line, which tomllib does not say."""
    path: tuple[str, ...] = ()
    table: tuple[str, ...] = ()
    within = False
    for line in lines:
        header, value, text = _TABLE.fullmatch(line), _VALUE.fullmatch(line), line
        if not within and header:
            path = table = (header[1].strip(),)
        elif not within and value:
            path, text = (*table, value[1].strip("\"'")), value[2]
        if line.count('"""') % 2:
            within = not within
        yield path, [" ".join(part.split()) for part in text.replace('"', "").split(",")]
