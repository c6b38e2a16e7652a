"""`holdfast settings`: every setting and its value."""

from __future__ import annotations

import os
from typing import Any

import typer

from holdfast.cli.arguments import JSON
from holdfast.cli.output import print_json, print_table
from holdfast.configuration import every_setting, load_settings
from holdfast.settings import Setting, installed_groups


def register(app: typer.Typer) -> None:
    app.command("settings")(show_settings)


def show_settings(as_json: bool = JSON) -> None:
    """List every setting with its current value and its meaning."""
    settings = load_settings(os.environ)
    values = [
        (setting.name, _shown(settings.of(group) if group else settings, setting), setting.help)
        for group, declared in every_setting(installed_groups()).items()
        for setting in declared
    ]
    if as_json:
        print_json({name: value for name, value, _ in values})
        return
    print_table(("setting", "value", "meaning"), values, "")


def _shown(group: Any, setting: Setting) -> str:
    """Returns the value in this group. A secret is masked."""
    if not setting.secret:
        return setting.written_in(group)
    if hasattr(group, f"masked_{setting.field}"):
        return str(getattr(group, f"masked_{setting.field}"))
    return "***" if setting.value_in(group) else ""
