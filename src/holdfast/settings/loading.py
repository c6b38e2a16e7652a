"""Reads the settings from the environment, once, and reports everything wrong with them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import PipelineError
from holdfast.settings.core import ORDERED, SETTINGS, Settings
from holdfast.settings.declared import PREFIX, Setting, nearest, read_setting
from holdfast.settings.groups import (
    ExtensionSettings,
    Group,
    Groups,
    installed_groups,
    settings_error,
)
from holdfast.urls import default_database_url

#: Read by the fault points of the tests; not a setting, but not refused either.
TEST_NAMES = frozenset({"HOLDFAST_FAULT"})
_CORE_NAMES = tuple(each.name for each in SETTINGS)
#: How similar two names must be to suggest one for the other. Settings of extensions must be more
#: similar, because they often differ only in the name of the extension.
_ALIKE, _VERY_ALIKE = 0.5, 0.75


def load_settings(environ: Mapping[str, str], groups: Groups = installed_groups) -> Settings:
    """The settings of this environment, or one SettingsError that lists everything wrong.

    The groups of extensions are looked up only if the environment has a prefixed name that the
    core does not know; the others are read by `Settings.of`.
    """
    given: dict[str, Any] = {}
    faulty: set[str] = set()
    problems: list[str] = []
    for each in SETTINGS:
        values, complaints = read_setting(each, environ)
        if complaints:
            faulty.add(each.field)
        elif values:
            given[each.field] = values[0]
        problems += complaints
    extensions = ExtensionSettings(environ, groups)
    settings = Settings(**_with_defaults(given), extensions=extensions)
    problems = _of_extensions(environ, groups, settings) + problems
    problems += _order_problems(settings, faulty, given)
    if problems:
        raise settings_error(problems)
    return settings


def every_setting(groups: Mapping[str, Group]) -> dict[str, tuple[Setting, ...]]:
    """The settings of the core, under the name "", and of each extension. No two share a name."""
    declared = {"": SETTINGS} | {name: group.settings for name, group in groups.items()}
    owners: dict[str, str] = {}
    for owner, settings in declared.items():
        for name in (name for each in settings for name in each.names):
            if name in owners:
                both = " and ".join(each or "the core" for each in (owners[name], owner))
                raise PipelineError(f"{name} is a setting of both {both}", "Rename one of them.")
            owners[name] = owner
    return declared


def _of_extensions(environ: Mapping[str, str], groups: Groups, settings: Settings) -> list[str]:
    """What is wrong with the prefixed names that the core does not know."""
    known = TEST_NAMES.union(_CORE_NAMES)
    foreign = sorted(name for name in environ if name.startswith(PREFIX) and name not in known)
    if not foreign:
        return []
    every = groups()
    wanted = [
        group for group in every.values() if any(name.startswith(group.prefix) for name in foreign)
    ]
    declared = {each.name for group in wanted for each in group.settings}
    problems = [_refusal(name, every) for name in foreign if name not in declared]
    for group in wanted:
        problems += group.read(environ, settings)[1]
    return problems


def _refusal(name: str, groups: Mapping[str, Group]) -> str:
    owners = [group for group in groups.values() if name.startswith(group.prefix)]
    if owners:
        owner = max(owners, key=lambda group: len(group.prefix))
        suggestion = nearest(name, [each.name for each in owner.settings], _ALIKE)
        return f"{name} is not a setting of the extension {owner.name}{_question(suggestion)}"
    every = [*_CORE_NAMES, *(each.name for group in groups.values() for each in group.settings)]
    suggestion = nearest(name, every, _VERY_ALIKE) or nearest(name, [*_CORE_NAMES], _ALIKE)
    if suggestion:
        return f"{name} is not a setting{_question(suggestion)}"
    names = ", ".join(sorted(groups)) or "none"
    return f"{name} is not a setting; no installed extension has it (installed: {names})"


def _question(suggestion: str | None) -> str:
    return f"; did you mean {suggestion}?" if suggestion else ""


def _with_defaults(given: dict[str, Any]) -> dict[str, Any]:
    """Adds the defaults that depend on other settings."""
    plain = Settings(**given)
    defaults = {
        "database_url": default_database_url(plain.data_dir),
        "concurrency_start": max(
            plain.concurrency_min, min(plain.concurrency_start, plain.concurrency_max)
        ),
    }
    return defaults | given


def _order_problems(settings: Settings, faulty: set[str], given: Mapping[str, Any]) -> list[str]:
    # A start that was not given is wrong only if the bounds are, which are reported themselves.
    silent = faulty if "concurrency_start" in given else faulty | {"concurrency_start"}
    return [
        f"{PREFIX}{low.upper()} ({getattr(settings, low)}) must not be greater than "
        f"{PREFIX}{high.upper()} ({getattr(settings, high)})"
        for low, high in ORDERED
        if not {low, high} & silent and getattr(settings, low) > getattr(settings, high)
    ]
