"""The options of a pipeline that can be set per job: names, types, defaults, choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.errors import PipelineError, UserError
from holdfast_client.json_depth import DEEPEST, is_too_deep

_KINDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}
_LARGEST = 2**63  # JSON libraries keep integers up to this one
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class Option:
    """`Option("currency", choices=["EUR", "USD"], default="EUR", help="Currency of prices.")`

    An option without a default may be omitted, unless it is `required`; it is then missing from
    `ctx.options`.
    """

    name: str
    type: type = str
    default: Any = None
    help: str = ""
    choices: Sequence[Any] = ()
    required: bool = False

    def __post_init__(self) -> None:
        if self.type not in _KINDS or not self.name or self.name.startswith("_"):
            raise PipelineError(
                f"the option {self.name!r} is declared wrongly",
                "Its type must be str, int, float or bool, and its name must not begin with _.",
            )
        if self.required and self.default is not None:
            raise PipelineError(
                f"the option {self.name!r} is required and has a default", "Remove one of the two."
            )
        for value in (*self.choices, *([] if self.default is None else [self.default])):
            self.convert(value)

    @property
    def kind(self) -> str:
        """Its type, for people."""
        return _KINDS[self.type]

    @property
    def description(self) -> str:
        choices = ", ".join(str(choice) for choice in self.choices)
        return f"{self.name} ({choices or self.kind})"

    def convert(self, value: Any) -> Any:
        """Returns the value in the type of the option.

        Text is parsed, as from command lines and forms."""
        converted = _parse(self.type, value)
        if converted is None or (self.choices and converted not in self.choices):
            raise UserError(
                f"{value!r} is not a valid value for the option {self.name}",
                f"Expected: {self.description}.",
            )
        return converted


def checked_options(
    pipeline: str, declared: Sequence[Option], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the given options in their declared types; undeclared ones are refused."""
    known = {option.name: option for option in declared}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UserError(
            f"the pipeline {pipeline} has no option {unknown[0]!r}",
            f"Options: {'; '.join(option.description for option in declared)}."
            if declared
            else "It declares none.",
        )
    return _storable({name: known[name].convert(value) for name, value in given.items()})


def _storable(options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options, if they can be stored with the job and shown again."""
    try:
        text = orjson.dumps(dict(options)).decode()
    except TypeError as error:
        raise UserError(
            f"the options cannot be stored: {error}", "Use plain JSON values."
        ) from None
    if is_too_deep(text):
        raise UserError(f"the options nest deeper than {DEEPEST} levels", "Use simpler values.")
    return dict(options)


def whole_options(
    pipeline: str, declared: Sequence[Option], given: Mapping[str, Any]
) -> dict[str, Any]:
    """Returns the given options with defaults for the others."""
    options = filled_options(declared, checked_options(pipeline, declared, given))
    missing = [option for option in declared if option.required and option.name not in options]
    if missing:
        raise UserError(
            f"the pipeline {pipeline} needs the option {missing[0].name}",
            f"Expected: {missing[0].description}.",
        )
    return options


def filled_options(declared: Sequence[Option], given: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the options of a job, also of one that is older than an option of its pipeline."""
    defaults = {option.name: option.default for option in declared if option.default is not None}
    return {**defaults, **given}


def _parse(wanted: type, value: Any) -> Any:
    """Parses a value; returns None if that fails."""
    if wanted is str:
        # A NUL fits into JSON, but not into the other columns that options end up in.
        return value if isinstance(value, str) and "\0" not in value else None
    if wanted is bool:
        return value if isinstance(value, bool) else _TRUTHS.get(str(value).lower())
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if wanted is int and isinstance(value, float):
        return int(value) if value.is_integer() else None
    try:
        number = wanted(value)
    except (ValueError, OverflowError):
        return None
    return number if abs(number) < _LARGEST else None
