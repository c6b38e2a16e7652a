"""The flags that a process knows, with what the settings say about them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from holdfast.configuration import SETTINGS, Settings
from holdfast.extension import installed
from holdfast.flags import CORE_FLAGS, FlagSpec, ServedFlag
from holdfast.pipeline import Pipeline
from holdfast.settings import Group, Setting


def served_flags(settings: Settings, extensions: Iterable[str]) -> dict[str, ServedFlag]:
    """Returns the flags of the core and of these extensions."""
    fields = {setting.bare.lower(): setting for setting in SETTINGS}
    served = [_served(spec, settings, fields) for spec in CORE_FLAGS]
    for name in extensions:
        extension = installed()[name]
        if extension.all_flags:
            fields = {setting.bare.lower(): setting for setting in Group(extension).settings}
            served += [_served(spec, settings.of(name), fields) for spec in extension.all_flags]
    return {flag.spec.name: flag for flag in served}


def extensions_of(pipelines: Mapping[str, Pipeline]) -> list[str]:
    """Returns the extensions that these pipelines belong to."""
    return [item.extension for item in pipelines.values() if item.extension is not None]


def _served(spec: FlagSpec, group: Any, declared: Mapping[str, Setting]) -> ServedFlag:
    if spec.setting is None:
        return ServedFlag(spec)
    setting = declared[spec.setting]
    return ServedFlag(spec, setting.also or setting.name, bool(setting.value_in(group)))
