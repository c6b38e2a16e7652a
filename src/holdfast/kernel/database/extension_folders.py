"""Finds the folders with the SQL of the installed extensions."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from holdfast.errors import PipelineError
from holdfast.extension import installed
from holdfast.kernel.database.queries import CORE_FOLDERS, SqlFolder, extension_sql


@cache
def extension_folders() -> Mapping[str, Path]:
    """Returns the folder of each extension's package by its name, in order of name.

    It imports no part of an extension."""
    return {
        name: folder_of(name, extension.package) for name, extension in sorted(installed().items())
    }


def all_sql() -> tuple[SqlFolder, ...]:
    """Returns the queries of the core and of every installed extension."""
    return (*CORE_FOLDERS, *extension_sql(extension_folders()))


def folder_of(name: str, package: str) -> Path:
    try:
        spec = find_spec(package)
    except (ImportError, ValueError):  # the parent does not exist, or the name is empty
        spec = None
    if spec is None or not spec.submodule_search_locations:
        raise PipelineError(
            f"the extension {name} says that its package is {package!r}, which is not a folder "
            "with an __init__.py",
            "Describe the extension in the __init__.py of its folder, with package=__name__; or "
            "uninstall it.",
        )
    return Path(next(iter(spec.submodule_search_locations)))
