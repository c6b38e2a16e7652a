"""The reference of settings, in Markdown: the page of the core's, and a table of an extension's."""

from __future__ import annotations

from holdfast.settings.core import HEADINGS, SETTINGS
from holdfast.settings.declared import Setting
from holdfast.settings.groups import Group

_INTRODUCTION = """\
# Settings

Read from the environment once, when a command starts. A name in the second column is
accepted too; given both with different values, the command refuses to start, as it
does for an unknown `HOLDFAST_` name and a value out of bounds. An empty value counts
as not given. The settings of an extension are `HOLDFAST_<EXTENSION>_<NAME>`, and listed
in its own reference."""
_TABLE_HEAD = [
    "| Setting | Also read as | Default | Accepts | Meaning |",
    "|---|---|---|---|---|",
]


def core_page() -> str:
    lines = [_INTRODUCTION]
    for each in SETTINGS:
        if each.field in HEADINGS:
            lines += ["", f"## {HEADINGS[each.field]}", "", *_TABLE_HEAD]
        lines.append(_row(each))
    return "\n".join(lines) + "\n"


def extension_table(group: Group) -> str:
    return "\n".join([*_TABLE_HEAD, *map(_row, group.settings)]) + "\n"


def _row(each: Setting) -> str:
    alias = f"`{each.also}`" if each.also else ""
    return f"| `{each.name}` | {alias} | {each.shown} | {each.accepts} | {each.help} |"
