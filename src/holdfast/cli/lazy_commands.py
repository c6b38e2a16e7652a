"""The commands of the program and of its extensions, imported only when one of them is run."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from importlib import import_module
from typing import Any

import typer
from typer.core import TyperGroup

from holdfast.cli.command_list import COMMANDS
from holdfast.errors import PipelineError
from holdfast.extension import Extension, installed


class Commands(TyperGroup):
    """Our own commands, then a group for each extension that has commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        added = [name for name, extension in installed().items() if extension.commands]
        for name in added:
            if name in COMMANDS:
                package = installed()[name].package
                raise PipelineError(
                    f"the extension {name} of the package {package} has the same name as a command",
                    "Uninstall it, or ask its authors to rename it.",
                )
        return [*COMMANDS, *added]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        listed = COMMANDS.get(cmd_name)
        if listed is not None:  # without looking for extensions, which takes time
            return _Later(cmd_name, listed.line, partial(load_own, cmd_name))
        extension = installed().get(cmd_name)
        if extension is None or not extension.commands:
            return None
        return _Later(cmd_name, extension.help, partial(_load_extension, extension))


class _Later(TyperGroup):
    """Represents a command in the list, with one line of help, until it is run."""

    def __init__(self, name: str, line: str, load: Callable[[], Any]) -> None:
        super().__init__(name=name, help=line)
        self.load = load

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        return self.load().make_context(info_name, args, parent=parent, **extra)


def load_own(name: str) -> Any:
    """Returns the command of this name, as its module registers it."""
    app = typer.Typer(rich_markup_mode=None)
    app.callback()(_options)  # so that it stays a group, even of one command
    import_module(COMMANDS[name].module).register(app)
    return typer.main.get_group(app).commands[name]


def _options() -> None:
    pass


def _load_extension(extension: Extension) -> TyperGroup:
    app = extension.load("commands")
    if not isinstance(app, typer.Typer):
        raise PipelineError(
            f"the commands of the extension {extension.name} are not a typer.Typer",
            f"Check {extension.commands} in the package {extension.package}.",
        )
    app.rich_markup_mode = None  # as in all other commands
    group = typer.main.get_group(app)
    group.help = group.help or extension.help
    return group
