"""What the program has, its reference describes."""

import ast
import re
import sqlite3
from contextlib import closing
from enum import StrEnum
from pathlib import Path

import pytest

import holdfast
from holdfast.errors import ERROR_CODES, ErrorCode
from holdfast.extension import installed
from holdfast.kernel.database.extension_folders import extension_folders
from holdfast.model import JOB_TRANSITIONS, ItemStatus, JobState, Lane, StreamState
from holdfast.pipeline import Pipeline

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
PAGES = (DOCS, *(folder / "docs" for folder in extension_folders().values()))
STATES = (DOCS / "reference" / "states.md").read_text()
TABLE_ROW = re.compile(r"^\| ?(.+?) ?\|$", re.MULTILINE)

PYTHON = [
    pytest.param(block, id=f"{page.stem}-{number}")
    for page in (
        ROOT / "README.md",
        *(page for docs in PAGES for page in sorted(docs.rglob("*.md"))),
    )
    for number, block in enumerate(
        re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL), 1
    )
]


def rows_of(section: str) -> list[list[str]]:
    text = STATES.split(f"\n## {section}\n")[1].split("\n## ")[0]
    return [row.split(" | ") for row in TABLE_ROW.findall(text)]


@pytest.mark.parametrize(
    ("section", "words"),
    [("Job", JobState), ("Item", ItemStatus), ("Stream", StreamState), ("Lane", Lane)],
)
def test_every_state_is_described(section: str, words: type[StrEnum]) -> None:
    described = {row[0] for row in rows_of(section)}
    assert set(words) <= described


@pytest.mark.parametrize("verb", JOB_TRANSITIONS)
def test_every_transition_of_a_job_is_described(verb: str) -> None:
    allowed, target = JOB_TRANSITIONS[verb]
    origins, result = next(row[1:] for row in rows_of("Job") if row[0] == verb)
    assert set(origins.split(", ")) == set(allowed)
    assert result.split(";")[0] == target


@pytest.mark.parametrize("code", ERROR_CODES.values(), ids=lambda code: code.code)
def test_every_error_code_is_described(code: ErrorCode) -> None:
    alert = "yes" if code.alert else ""
    rows = [[cell.strip() for cell in row] for row in rows_of("Error codes")]
    assert [code.code, code.category, code.retry, alert] in [[*row, ""][:4] for row in rows]


def test_every_table_is_described(sqlite_url: str) -> None:
    described = set(re.findall(r"^\*\*`(\w+)`\*\*", _schema(), re.MULTILINE))
    with closing(sqlite3.connect(sqlite_url.removeprefix("sqlite:///"))) as connection:
        names = connection.execute(
            "SELECT name FROM pragma_table_list WHERE type IN ('table', 'virtual')"
            " AND schema = 'main' AND name NOT LIKE 'sqlite_%'"
        ).fetchall()
    extensions = tuple(f"{name}_" for name in installed())
    own = {name.removeprefix("holdfast_") for (name,) in names}
    assert described == {name for name in own if not name.startswith(extensions)}


def test_tutorial_shows_the_example_as_it_is() -> None:
    code = (ROOT / "examples" / "prices.py").read_text().split('"""', 2)[2].strip()
    assert code in (DOCS / "tutorial" / "first-pipeline.md").read_text()


@pytest.mark.parametrize("block", PYTHON)
def test_python_in_the_docs_runs_if_it_is_whole(block: str) -> None:
    """An example that imports what it needs is run; the rest, parts of one and the files of an
    extension (tests/extension/test_guide.py builds it), must at least be Python."""
    tree = ast.parse(block)
    if block.startswith(("from ", "import ")):
        names: dict[str, object] = {}
        exec(block, names)
        defined = {node.name for node in tree.body if hasattr(node, "name")}
        assert defined and defined <= names.keys()


def test_class_in_the_docs_is_a_pipeline_that_discovers_and_saves() -> None:
    page = (DOCS / "how-to" / "write-a-pipeline-class.md").read_text()
    names: dict[str, type[Pipeline]] = {}
    exec(page.split("```python\n")[1].split("```")[0], names)
    meetings = names["Meetings"]()
    assert (meetings.name, meetings.discovers, meetings.saves) == ("meetings", True, True)
    assert not meetings.threaded


def test_types_of_the_examples_for_pipelines_are_imported_from_holdfast() -> None:
    """An example that shows one method does not repeat the imports: `from holdfast import …`."""
    page = (DOCS / "how-to" / "write-a-pipeline-class.md").read_text()
    blocks = re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    used: set[str] = set()
    for block in blocks:
        used |= {node.id for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Name)}
    types = {name for name in used if name[0].isupper() and not name.isupper()}
    assert {"UserError", "Loader", "NothingYet"} <= types
    assert types <= set(holdfast.__all__)


def _schema() -> str:
    return (DOCS / "reference" / "schema.md").read_text()
