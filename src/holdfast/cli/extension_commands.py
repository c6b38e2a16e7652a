"""The commands of extensions, `holdfast NAME …`, imported only when one of them is run."""

from __future__ import annotations

from typing import Any

import typer
from typer.core import TyperGroup

from holdfast.errors import PipelineError
from holdfast.extension import Extension, installed


class Commands(TyperGroup):
    """Our own commands, then a group for each extension that has commands."""

    def list_commands(self, ctx: Any) -> list[str]:
        own = super().list_commands(ctx)
        added = [name for name, extension in installed().items() if extension.commands]
        for name in added:
            if name in own:
                package = installed()[name].package
                raise PipelineError(
                    f"the extension {name} of the package {package} has the same name as a command",
                    "Uninstall it, or ask its authors to rename it.",
                )
        return [*own, *added]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        own = super().get_command(ctx, cmd_name)
        if own is not None:
            return own  # without looking for extensions, which takes time
        extension = installed().get(cmd_name)
        return None if extension is None or not extension.commands else _Group(extension)


class _Group(TyperGroup):
    """Represents the group of an extension, with the help of its manifest, until it is run."""

    def __init__(self, extension: Extension) -> None:
        super().__init__(name=extension.name, help=extension.help)
        self._extension = extension

    def make_context(
        self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any
    ) -> Any:
        return self._loaded().make_context(info_name, args, parent=parent, **extra)

    def _loaded(self) -> TyperGroup:
        app = self._extension.load("commands")
        if not isinstance(app, typer.Typer):
            raise PipelineError(
                f"the commands of the extension {self.name} are not a typer.Typer",
                f"Check {self._extension.commands} in the package {self._extension.package}.",
            )
        app.rich_markup_mode = None  # as in all other commands
        group = typer.main.get_group(app)
        group.help = group.help or self._extension.help
        return group
