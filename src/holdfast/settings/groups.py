"""Reads the settings of extensions: one group for each, read when it is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cached_property
from typing import Any

from holdfast.errors import PipelineError, SettingsError
from holdfast.extension import Extension, installed
from holdfast.settings.declared import PREFIX, Setting, declared_by, read_setting


class Group:
    """The settings of one extension: HOLDFAST_<EXTENSION>_<FIELD>."""

    def __init__(self, extension: Extension) -> None:
        self.extension = extension
        self.name = extension.name
        self.prefix = f"{PREFIX}{extension.name.upper()}_"

    @cached_property
    def kind(self) -> type[Any] | None:
        """The dataclass that declares them, imported when it is first needed."""
        kind = self.extension.load("options")
        if kind is None or (isinstance(kind, type) and is_dataclass(kind)):
            return kind
        raise PipelineError(
            f"the options of the extension {self.name} are not a dataclass",
            f"{self.extension.package}:{self.extension.options} must be a frozen dataclass.",
        )

    @cached_property
    def settings(self) -> tuple[Setting, ...]:
        return () if self.kind is None else declared_by(self.kind, self.prefix)

    def read(self, environ: Mapping[str, str], core: Any) -> tuple[Any, list[str]]:
        """Returns the extension's options in this environment, and what is wrong with them."""
        if self.kind is None:
            return None, []
        given: dict[str, Any] = {
            each.field: core.value(each.follows) for each in self.settings if each.follows
        }
        problems: list[str] = []
        for each in self.settings:
            values, complaints = read_setting(each, environ)
            if values and not complaints:
                given[each.field] = values[0]
            problems += complaints
        return self.kind(**given), problems


Groups = Callable[[], Mapping[str, Group]]


def installed_groups() -> dict[str, Group]:
    return {name: Group(extension) for name, extension in installed().items()}


@dataclass(frozen=True, slots=True)
class ExtensionSettings:
    """Reads groups from one environment, each at most once."""

    environ: Mapping[str, str]
    groups: Groups
    _options: dict[str, Any] = field(default_factory=dict)

    def read(self, name: str, core: Any) -> Any:
        if name not in self._options:
            options, problems = self.groups()[name].read(self.environ, core)
            if problems:
                raise settings_error(problems)
            self._options[name] = options
        return self._options[name]


def no_environment() -> ExtensionSettings:
    return ExtensionSettings({}, installed_groups)


def settings_error(problems: list[str]) -> SettingsError:
    hint = "`holdfast settings` lists every setting."
    if len(problems) == 1:
        return SettingsError(problems[0], hint)
    listed = "".join(f"\n  - {problem}" for problem in problems)
    return SettingsError(f"{len(problems)} settings are wrong:{listed}", hint)
