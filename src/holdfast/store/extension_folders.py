"""Where the installed extensions keep their SQL and migrations."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from holdfast.extension import installed
from holdfast.store.queries import CORE_FOLDERS, SqlFolder, extension_sql


@cache
def extension_folders() -> Mapping[str, Path]:
    """Name -> the folder of its package, in order of name. Imports no part of an extension."""
    return {name: _folder(extension.package) for name, extension in sorted(installed().items())}


def all_sql() -> tuple[SqlFolder, ...]:
    """Core's queries and those of every installed extension."""
    return (*CORE_FOLDERS, *extension_sql(extension_folders()))


def _folder(package: str) -> Path:
    spec = find_spec(package)
    assert spec is not None and spec.submodule_search_locations, f"{package} is a package"
    return Path(next(iter(spec.submodule_search_locations)))
