"""Declares settings, and reads them from the environment."""

from __future__ import annotations

import builtins
import difflib
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from holdfast.errors import PipelineError
from holdfast.urls import (
    ACCEPTED_BROKER,
    ACCEPTED_DATABASE,
    ACCEPTED_PREFIX,
    read_broker_url,
    read_database_url,
    read_prefix,
)
from holdfast_client.names import ACCEPTED_SCHEMA, read_schema

PREFIX = "HOLDFAST_"
_PER_SECOND = {"ms": 1000}


def setting(
    default: Any,
    help: str,
    low: float | None = None,
    high: float | None = None,
    *,
    name: str | None = None,
    unit: str | None = None,
    aliased: bool = False,
    alias: str | None = None,
    choices: tuple[str, ...] = (),
    kind: str | None = None,
    secret: bool = False,
    follows: str | None = None,
    shown: str | None = None,
) -> Any:
    """Declares a field of a frozen dataclass that is read from the environment: of a part of the
    core, or of an extension's options.

    `name` is its name without the prefix, if it differs from the field's. `unit` "ms" reads
    milliseconds into a field of seconds. `kind` is a key of KINDS, for annotations that say too
    little. `aliased` reads it under its name without the prefix too, `alias` under any other name.
    `follows` names a core setting whose value is the default. `shown` documents a default that is
    computed. A secret is never printed."""
    if follows is not None and shown is None:
        shown = f"that of `{PREFIX}{follows.upper()}`"
    about = {
        "own_name": name,
        "unit": unit,
        "help": help,
        "low": low,
        "high": high,
        "aliased": aliased,
        "alias": alias,
        "choices": choices,
        "kind": kind,
        "secret": secret,
        "follows": follows,
        "shown": shown or f"`{_written(default, unit)}`",
    }
    if callable(default):
        return field(default_factory=default, repr=not secret, metadata=about)
    return field(default=default, repr=not secret, metadata=about)


def _written(value: Any, unit: str | None = None) -> str:
    if unit is not None:
        return f"{value * _PER_SECOND[unit]:g}"
    if isinstance(value, float):
        return str(value).removesuffix(".0")
    return str(value).lower() if isinstance(value, bool) else str(value)


def _read_bool(text: str) -> bool:
    word = text.lower()
    if word in ("true", "1", "yes", "on"):
        return True
    if word in ("false", "0", "no", "off"):
        return False
    raise ValueError(text)


def _read_folder(text: str) -> Path:
    try:
        return Path(text).expanduser()
    except RuntimeError as unknown_user:
        raise ValueError(text) from unknown_user


def _read_folders(text: str) -> tuple[Path, ...]:
    return tuple(_read_folder(part) for part in text.split(os.pathsep) if part)


def _read_text(text: str) -> str:
    if not text.isprintable():
        raise ValueError(text)
    return text


def _read_header(text: str) -> str:
    if not text.isascii():
        raise ValueError(text)
    return _read_text(text)


def _read_web_address(text: str) -> str:
    parts = urlsplit(_read_text(text))
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError(text)
    return text


def _read_endpoint(text: str) -> str:
    """Reads an address without a user, whose password would be in every text that names the
    address."""
    parts = urlsplit(_read_web_address(text))
    if "@" in parts.netloc or parts.query or parts.fragment:
        raise ValueError(text)
    return text.rstrip("/")


def _read_bucket(text: str) -> str:
    letters = all(letter.isascii() and (letter.isalnum() or letter in ".-") for letter in text)
    if not letters or text != text.lower() or not 3 <= len(text) <= 63:
        raise ValueError(text)
    return text


def _read_prefix_of_keys(text: str) -> str:
    parts = _read_text(text).strip("/").split("/")
    if len(text) > 200 or "\\" in text or any(part in ("", ".", "..") for part in parts):
        raise ValueError(text)
    return "/".join(parts) + "/"


def _read_bucket_places(text: str) -> str:
    for place in text.split(","):
        bucket, _, prefix = place.strip().partition("/")
        _read_bucket(bucket)
        if prefix.strip("/"):
            _read_prefix_of_keys(prefix)
    return text


#: annotation or kind -> (how its text is read, what it accepts)
KINDS: dict[str, tuple[Callable[[str], Any], str]] = {
    "int": (int, "a whole number"),
    "int | None": (int, "a whole number"),
    "float | None": (float, "a number"),
    "float": (float, "a number"),
    "bool": (_read_bool, "`true` or `false`"),
    "str": (_read_text, "printable text"),
    "Path": (_read_folder, "a folder"),
    "web address": (_read_web_address, "an address such as `http://collector:4318`"),
    "folders": (_read_folders, "folders"),
    "header": (_read_header, "printable ASCII text"),
    "endpoint": (_read_endpoint, "an address such as `http://storage:8333`, without a user"),
    "bucket": (_read_bucket, "3 to 63 lower-case letters, digits, `.` and `-`"),
    "prefix": (_read_prefix_of_keys, "names separated by `/`"),
    "bucket places": (_read_bucket_places, "`BUCKET` or `BUCKET/PREFIX/`, separated by commas"),
    "schema": (read_schema, ACCEPTED_SCHEMA),
    "database URL": (read_database_url, ACCEPTED_DATABASE),
    "broker URL": (read_broker_url, ACCEPTED_BROKER),
    "queue prefix": (read_prefix, ACCEPTED_PREFIX),
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting, as it is read and documented."""

    field: str
    annotation: str
    own_name: str | None
    unit: str | None
    help: str
    low: float | None
    high: float | None
    aliased: bool
    alias: str | None
    choices: tuple[str, ...]
    kind: str | None
    secret: bool
    follows: str | None
    shown: str
    prefix: str = PREFIX
    part: str = ""

    @property
    def bare(self) -> str:
        """Its name without the prefix."""
        return self.own_name or self.field.upper()

    @property
    def name(self) -> str:
        return self.prefix + self.bare

    @property
    def also(self) -> str | None:
        """Its second name."""
        return self.bare if self.aliased else self.alias

    @property
    def names(self) -> tuple[str, ...]:
        return (self.name,) if self.also is None else (self.name, self.also)

    @property
    def accepts(self) -> str:
        if self.choices:
            return "one of " + ", ".join(f"`{choice}`" for choice in self.choices)
        kind = KINDS[self.kind or self.annotation][1]
        return kind if self.low is None else f"{kind} from {self.low:,} to {self.high:,}"

    def read(self, text: str) -> Any:
        """Parses a value; raises ValueError if the text is not one."""
        if self.choices:
            return self.choices[self.choices.index(text.lower())]
        value = KINDS[self.kind or self.annotation][0](text)
        # Written this way to refuse "nan", which compares false with everything.
        if self.low is not None and self.high is not None and not self.low <= value <= self.high:
            raise ValueError(text)
        return value if self.unit is None else value / _PER_SECOND[self.unit]

    def value_in(self, options: Any) -> Any:
        """Returns its value in the settings, or in the options of its extension."""
        return getattr(getattr(options, self.part) if self.part else options, self.field)

    def written_in(self, options: Any) -> str:
        """Returns its value as text, in the unit in which it is set."""
        return _written(self.value_in(options), self.unit)


def declared_by(kind: type[Any], prefix: str = PREFIX, part: str = "") -> tuple[Setting, ...]:
    """Returns the settings that a dataclass declares; its other fields are not read."""
    declared = tuple(
        Setting(each.name, _annotation(each.type), prefix=prefix, part=part, **each.metadata)
        for each in fields(kind)
        if "help" in each.metadata
    )
    for each in declared:
        if not each.choices and (each.kind or each.annotation) not in KINDS:
            raise PipelineError(
                f"the setting {each.name} cannot be a {each.kind or each.annotation}",
                f"It can be: {', '.join(KINDS)}.",
            )
    return declared


def _annotation(type: Any) -> str:
    """Returns the annotation as written in the source, whether or not the module postpones
    annotations."""
    return type.__name__ if isinstance(type, builtins.type) else str(type)


def nearest(name: str, known: Sequence[str], cutoff: float) -> str | None:
    """Returns the most similar known name."""
    # Compared without the prefix, which would make all names similar.
    bare = [each.removeprefix(PREFIX).lower() for each in known]
    found = difflib.get_close_matches(name.removeprefix(PREFIX).lower(), bare, 1, cutoff)
    return PREFIX + found[0].upper() if found else None


def read_setting(each: Setting, environ: Mapping[str, str]) -> tuple[list[Any], list[str]]:
    """Returns the values given under any name of a setting, and what is wrong with them."""
    values: list[Any] = []
    complaints: list[str] = []
    # An empty variable is how compose files and unit files pass one that is not set.
    texts = {name: environ[name].strip() for name in each.names if environ.get(name, "").strip()}
    for name, text in texts.items():
        try:
            values.append(each.read(text))
        except ValueError:
            accepts = each.accepts.replace("`", "")
            complaints.append(
                f"{name} must be {accepts}" + ("" if each.secret else f", not {text!r}")
            )
    if len(values) == 2 and values[0] != values[1]:
        first, second = texts.items()
        complaints.append(
            f"{first[0]} ({first[1]}) and {second[0]} ({second[1]}) are the same setting, "
            "but have different values"
        )
    return values, complaints
