"""The options of a job that a pipeline declares: names, types, defaults, choices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.errors import PipelineError, UserError
from holdfast.json_depth import DEEPEST, is_too_deep

_KINDS = {str: "text", int: "whole number", float: "number", bool: "true or false"}
_LARGEST = 2**63  # what JSON keeps
_TRUTHS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


@dataclass(frozen=True, slots=True)
class Option:
    """`Option("currency", choices=["EUR", "USD"], default="EUR", help="Currency of the prices.")`

    An option without a default may be left out, and is then missing in `ctx.options`, unless it is
    `required`: then a job cannot start without it.
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
                f"the option {self.name!r} is not valid",
                "Its type must be str, int, float or bool, and its name must not start with _.",
            )
        if self.required and self.default is not None:
            raise PipelineError(
                f"the option {self.name!r} is required and has a default",
                "Give it one or the other.",
            )
        for value in (*self.choices, *([] if self.default is None else [self.default])):
            self.taken(value)

    @property
    def kind(self) -> str:
        """Its type, in words."""
        return _KINDS[self.type]

    @property
    def told(self) -> str:
        choices = ", ".join(str(choice) for choice in self.choices)
        return f"{self.name} ({choices or self.kind})"

    def taken(self, value: Any) -> Any:
        """The value in the option's type; text is read, as command lines and forms give it."""
        read = _read(self.type, value)
        if read is None or (self.choices and read not in self.choices):
            raise UserError(f"{value!r} does not fit the option {self.name}", f"{self.told}.")
        return read


def checked_options(
    pipeline: str, declared: Sequence[Option], given: Mapping[str, Any]
) -> dict[str, Any]:
    """What was given, in the declared types. A pipeline that declares none takes anything."""
    if not declared:
        return _storable(given)
    known = {option.name: option for option in declared}
    unknown = [name for name in given if name not in known]
    if unknown:
        raise UserError(
            f"the pipeline {pipeline} has no option {unknown[0]!r}",
            f"Options: {'; '.join(option.told for option in declared)}.",
        )
    return _storable({name: known[name].taken(value) for name, value in given.items()})


def _storable(options: Mapping[str, Any]) -> dict[str, Any]:
    """What can be kept with the job, and told again."""
    try:
        text = orjson.dumps(dict(options)).decode()
    except TypeError as error:
        raise UserError(f"the options cannot be kept: {error}", "Give plain JSON values.") from None
    if is_too_deep(text):
        raise UserError(f"the options nest deeper than {DEEPEST} levels", "Give simpler ones.")
    return dict(options)


def whole_options(
    pipeline: str, declared: Sequence[Option], given: Mapping[str, Any]
) -> dict[str, Any]:
    """The same, with the defaults of what was not given."""
    defaults = {option.name: option.default for option in declared if option.default is not None}
    options = defaults | checked_options(pipeline, declared, given)
    missing = [option for option in declared if option.required and option.name not in options]
    if missing:
        raise UserError(
            f"the pipeline {pipeline} needs the option {missing[0].name}", f"{missing[0].told}."
        )
    return options


def _read(wanted: type, value: Any) -> Any:
    """None where it cannot be read."""
    if wanted is str:
        return value if isinstance(value, str) else None
    if wanted is bool:
        return value if isinstance(value, bool) else _TRUTHS.get(str(value).lower())
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if wanted is int and isinstance(value, float):
        return int(value) if value.is_integer() else None
    try:
        read = wanted(value)
    except (ValueError, OverflowError):
        return None
    return read if abs(read) < _LARGEST else None
