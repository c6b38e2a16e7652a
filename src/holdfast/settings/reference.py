"""The reference page of the settings, in Markdown: the core's, then each extension's."""

from __future__ import annotations

from collections.abc import Mapping

from holdfast.settings.core import HEADINGS
from holdfast.settings.declared import Setting
from holdfast.settings.groups import Group
from holdfast.settings.loading import every_setting

_INTRODUCTION = """\
# Settings

Read from the environment once, when a command starts. A name in the second column is
accepted too; given both with different values, the command refuses to start, as it
does for an unknown `HOLDFAST_` name and a value out of bounds. An empty value counts
as not given. The settings of an extension are `HOLDFAST_<EXTENSION>_<NAME>`."""


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
