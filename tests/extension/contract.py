"""What the contract of an extension is checked with: its parts, its folder, its pages of docs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path

import typer
from fastapi import APIRouter, FastAPI

from holdfast.extension import CORE, Extension, installed
from holdfast.kernel.database.queries import CORE_FOLDERS, SqlFolder, extension_sql
from holdfast.kernel.database.schema import Branch, installed_branches
from holdfast.server.navigation import PagePack
from tests.docs.described_commands import commands
from tests.extension.weather import EXTENSION as TOY

ROOT = Path(__file__).resolve().parents[2]
CORE_BRANCH = next(branch for branch in installed_branches() if branch.name == CORE)


@dataclass(frozen=True)
class Subject:
    """An extension under test. `rows` is the module that has a row for each of its tables."""

    extension: Extension
    rows: str

    @property
    def name(self) -> str:
        return self.extension.name

    @cached_property
    def folder(self) -> Path:
        file = import_module(self.extension.package).__file__
        assert file is not None
        return Path(file).parent

    @property
    def branches(self) -> tuple[Branch, ...]:
        """Core's and its own; none of its own where it has no tables."""
        own = Branch(self.name, self.folder / "schema")
        return (CORE_BRANCH, own) if own.folder.is_dir() else (CORE_BRANCH,)

    @property
    def sql(self) -> tuple[SqlFolder, ...]:
        return (*CORE_FOLDERS, *extension_sql({self.name: self.folder}))

    @cached_property
    def docs(self) -> str:
        return "\n".join(path.read_text() for path in sorted(self.folder.glob("docs/**/*.md")))

    @property
    def pack(self) -> PagePack | None:
        pack = self.extension.load("web")
        assert pack is None or isinstance(pack, PagePack)
        return pack

    @property
    def commands(self) -> dict[str, typer.core.TyperCommand]:
        app = self.extension.load("commands")
        return {} if app is None else dict(commands(typer.main.get_group(app), f"{self.name} "))

    @property
    def sample_rows(self) -> Mapping[str, str]:
        """Table -> the rest of its insert."""
        rows: Mapping[str, str] = import_module(self.rows).ROWS
        return rows


def routes(router: APIRouter | None) -> Iterator[tuple[str, str]]:
    """Method and path."""
    if router is None:
        return
    app = FastAPI()
    app.include_router(router)
    for path, methods in app.openapi()["paths"].items():
        yield from ((method.upper(), path) for method in methods)


SUBJECTS = [
    *(
        Subject(extension, f"pipelines.{name}.tests.sample_rows")
        for name, extension in installed().items()
    ),
    Subject(TOY, "tests.extension.sample_rows"),
]

_TESTS = ROOT / "tests"
#: Each branch, and the folder that has what databases of its versions contain.
SNAPSHOTS = (
    (CORE_BRANCH, _TESTS / "store" / "schema"),
    *(
        (subject.branches[1], ROOT.joinpath(*subject.rows.split(".")[:-1]) / "schema")
        for subject in SUBJECTS
        if len(subject.branches) == 2
    ),
)
