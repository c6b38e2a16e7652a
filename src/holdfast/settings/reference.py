"""Writes the reference of settings, in Markdown: the page of the core's, and a table of an
extension's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.settings.declared import Setting
from holdfast.settings.groups import Group

_INTRODUCTION = """\
# Settings

Settings are read from the environment once, when a command starts. The names in the second
column are accepted as well. A command refuses to start if both names are given with different
values, if a `HOLDFAST_` name is unknown, or if a value is out of bounds. An empty value counts
as not set. The settings of an extension are called `HOLDFAST_<EXTENSION>_<NAME>` and are
listed in its own reference.

`holdfast settings` lists the values that apply."""
_TABLE_HEAD = [
    "| Setting | Also read as | Default | Accepts | Meaning |",
    "|---|---|---|---|---|",
]


def core_page(sections: Mapping[str, Sequence[Setting]]) -> str:
    """Returns the page of the settings under each heading."""
    lines = [_INTRODUCTION]
    for heading, settings in sections.items():
        lines += ["", f"## {heading}", "", *_TABLE_HEAD, *map(_row, settings)]
    return "\n".join(lines) + "\n"


def extension_table(group: Group) -> str:
    return "\n".join([*_TABLE_HEAD, *map(_row, group.settings)]) + "\n"


def _row(each: Setting) -> str:
    alias = f"`{each.also}`" if each.also else ""
    return f"| `{each.name}` | {alias} | {each.shown} | {each.accepts} | {each.help} |"
