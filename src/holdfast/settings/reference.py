"""The reference page of the settings, in Markdown: first the core, then each extension."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.settings.core import HEADINGS
from holdfast.settings.declared import Setting
from holdfast.settings.groups import Group
from holdfast.settings.loading import every_setting

_INTRODUCTION = """\
# Settings

Settings are read from the environment once, when a command starts. The names in the second
column are accepted as well. A command refuses to start if both names are given with different
values, if a `HOLDFAST_` name is unknown, or if a value is out of bounds. An empty value counts
as not set. The settings of an extension are called `HOLDFAST_<EXTENSION>_<NAME>`.

`holdfast settings` lists the values that apply."""


def reference(groups: Mapping[str, Group]) -> str:
    lines = [_INTRODUCTION]
    for name, settings in every_setting(groups).items():
        if name and settings:
            lines += _heading(f"Extension: {name}")
        for each in settings:
            if not name and each.field in HEADINGS:
                lines += _heading(HEADINGS[each.field])
            lines.append(_row(each))
    return "\n".join(lines) + "\n"


def _heading(title: str) -> list[str]:
    return [
        "",
        f"## {title}",
        "",
        "| Setting | Also read as | Default | Accepts | Meaning |",
        "|---|---|---|---|---|",
    ]


def _row(each: Setting) -> str:
    alias = f"`{each.also}`" if each.also else ""
    return f"| `{each.name}` | {alias} | {each.shown} | {each.accepts} | {each.help} |"
