"""Flags: values that an admin changes while processes run. Declared by the core or an extension."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from holdfast.errors import PipelineError, UserError

FlagValue = bool | int | float | str
_WORDS = {"true": True, "on": True, "yes": True, "1": True} | {
    "false": False,
    "off": False,
    "no": False,
    "0": False,
}
_LARGEST = 2**53 - 1  # the largest integer that every JSON reader keeps exactly


class FlagKind(StrEnum):
    BOOLEAN = "boolean"
    INTEGER = "integer"
    PERCENTAGE = "percentage"  # 0 to 100
    CHOICE = "choice"


@dataclass(frozen=True, slots=True)
class FlagSpec:
    """A flag. `default` is its value until it is set; a boolean is on.

    `setting` names a field of the extension's options, a bool: off there is off, whatever the
    flag says. Only boolean flags have one.
    """

    name: str
    help: str
    setting: str | None = None
    kind: FlagKind = FlagKind.BOOLEAN
    default: Any = True
    choices: Sequence[str] = ()
    minimum: int = 0
    maximum: int = _LARGEST

    def __post_init__(self) -> None:
        if self.setting is not None and self.kind is not FlagKind.BOOLEAN:
            raise PipelineError(
                f"the flag {self.name} has a setting", "Only boolean flags can have one."
            )
        if (self.kind is FlagKind.CHOICE) != bool(self.choices):
            raise PipelineError(
                f"the flag {self.name} is a {self.kind} with {len(self.choices)} choices",
                "A choice has choices; the other kinds have none.",
            )
        try:
            self.checked(self.default)
        except UserError as error:
            raise PipelineError(
                f"the default of the flag {self.name} does not fit: {error.message}", error.hint
            ) from error

    def checked(self, value: Any) -> FlagValue:
        """Returns the value, if the flag can have it."""
        match self.kind:
            case FlagKind.BOOLEAN:
                fits = isinstance(value, bool)
            case FlagKind.INTEGER:
                fits = _is_integer(value) and self.minimum <= value <= self.maximum
            case FlagKind.PERCENTAGE:
                fits = _is_number(value) and 0 <= value <= 100
            case FlagKind.CHOICE:
                fits = isinstance(value, str) and value in self.choices
        if not fits:
            raise UserError(f"the flag {self.name} cannot be {value!r}", f"It is {self.domain}.")
        fitting: FlagValue = value
        return fitting

    def parsed(self, text: str) -> FlagValue:
        """Parses the value that a person wrote."""
        word = text.strip()
        value: Any = word
        if self.kind is FlagKind.BOOLEAN:
            value = _WORDS.get(word.lower(), word)
        elif self.kind is not FlagKind.CHOICE:
            value = _number(word.removesuffix("%").rstrip())
        return self.checked(value)

    @property
    def domain(self) -> str:
        """The values that it can have, in words."""
        match self.kind:
            case FlagKind.BOOLEAN:
                return "on or off (in JSON: true or false)"
            case FlagKind.INTEGER:
                return f"an integer from {self.minimum} to {self.maximum}"
            case FlagKind.PERCENTAGE:
                return "a percentage from 0 to 100"
            case FlagKind.CHOICE:
                return f"one of {', '.join(self.choices)}"


class Flag(StrEnum):
    """The flags of the core; extensions add theirs."""

    INGEST = "ingest"
    PENDING = "pending"


CORE_FLAGS = (
    FlagSpec(Flag.INGEST, "Uploads, and new jobs from files.", "db_ingest_enabled"),
    FlagSpec(Flag.PENDING, "The list of pending items of all jobs."),
)


@dataclass(frozen=True, slots=True)
class ServedFlag:
    """A flag that this process knows."""

    spec: FlagSpec
    setting: str | None = None  # the name under which people set it
    allowed: bool = True  # what the setting says

    def value(self, stored: Any) -> FlagValue:
        """Returns the flag's value, given what is stored (None: nothing).

        A stored value that does not fit, for example from another version of the extension, counts
        as not set."""
        try:
            value = self.spec.default if stored is None else self.spec.checked(stored)
        except UserError:
            value = self.spec.default
        if self.spec.kind is FlagKind.BOOLEAN:
            return bool(value) and self.allowed
        fitting: FlagValue = value
        return fitting


def in_share(percentage: float, key: str) -> bool:
    """Whether the key belongs to that percentage of all keys: always the same keys, and more of
    them as the percentage grows."""
    digest = hashlib.sha256(key.encode("utf-8", "replace")).digest()
    return int.from_bytes(digest[:8]) / 2**64 * 100 < percentage


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return _is_integer(value) or (isinstance(value, float) and math.isfinite(value))


def _number(word: str) -> Any:
    for kind in (int, float):
        try:
            return kind(word)
        except ValueError:
            continue
    return word
