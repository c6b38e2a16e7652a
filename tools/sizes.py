"""Prints the size of each folder, for people to look at; nothing fails by it.

`make sizes`, or `python tools/sizes.py PART` for the folders whose path contains PART. Ideas are
what a folder asks its reader to learn: the classes and functions that other folders import, the
settings that it declares, and the tables that it creates. Lines are those of Python and SQL, and
functions have a median and a longest, in lines.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

ROOT = Path(__file__).resolve().parents[1]
SOURCES = (ROOT / "src", *sorted(ROOT.glob("pipelines/*/src")))
HEADINGS = ("Files", "Lines", "Functions", "Median", "Longest", "Names", "Settings", "Tables")
_TABLE = re.compile(r"create (?:virtual )?table (?:if not exists )?(\w+)", re.IGNORECASE)


@dataclass(slots=True)
class Folder:
    """What one folder contains, without the folders below it."""

    files: int = 0
    lines: int = 0
    functions: list[int] = field(default_factory=list)
    names: set[str] = field(default_factory=set)
    settings: int = 0
    tables: set[str] = field(default_factory=set)

    @property
    def ideas(self) -> int:
        return len(self.names) + self.settings + len(self.tables)

    def row(self) -> list[str]:
        functions = self.functions or [0]
        values = (
            self.files,
            self.lines,
            len(self.functions),
            round(median(functions)),
            max(functions),
            len(self.names),
            self.settings,
            len(self.tables),
            self.ideas,
        )
        return [f"{value:,}" for value in values]


def folders_of(source: Path) -> dict[str, Folder]:
    """Measures every folder below the source that has Python or SQL, by its path."""
    folders: dict[str, Folder] = defaultdict(Folder)
    for path in sorted(source.rglob("*")):
        if path.suffix in (".py", ".sql"):
            _add(folders[_folder_of(path, source)], path)
    for path in source.rglob("*.py"):
        for module, name in _imported(ast.parse(path.read_text())):
            home = _home(module, source)
            if home is not None and home != _folder_of(path, source) and not name.isupper():
                folders[home].names.add(f"{module}.{name}")
    return folders


def _folder_of(path: Path, source: Path) -> str:
    return path.parent.relative_to(source).as_posix()


def _add(folder: Folder, path: Path) -> None:
    text = path.read_text()
    folder.files += 1
    folder.lines += len(text.splitlines())
    folder.tables.update(_TABLE.findall(text))
    if path.suffix == ".py":
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                folder.functions.append((node.end_lineno or node.lineno) - node.lineno + 1)
            elif isinstance(node, ast.Call) and getattr(node.func, "id", "") == "setting":
                folder.settings += 1


def _imported(tree: ast.Module) -> list[tuple[str, str]]:
    """Returns the module and the name of everything that a file imports by name."""
    return [
        (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    ]


def _home(module: str, source: Path) -> str | None:
    """Returns the folder of a module of ours, or None for any other."""
    path = source / module.replace(".", "/")
    if path.is_dir():
        return path.relative_to(source).as_posix()
    return _folder_of(path, source) if path.with_suffix(".py").is_file() else None


def main(part: str = "") -> None:
    """Prints one line for each folder whose path contains the text."""
    folders = {name: folder for source in SOURCES for name, folder in folders_of(source).items()}
    rows = [(name, folder.row()) for name, folder in sorted(folders.items()) if part in name]
    width = max(len(name) for name, _ in rows)
    print(f"{'Folder':{width}}", *(f"{heading:>9}" for heading in (*HEADINGS, "Ideas")))
    for name, row in rows:
        print(f"{name:{width}}", *(f"{cell:>9}" for cell in row))


if __name__ == "__main__":
    main(*sys.argv[1:2])
