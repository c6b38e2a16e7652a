"""Export equals grid: whatever results hold, every format has the grid's values in its order."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import httpx2
import orjson
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from python_calamine import CalamineWorkbook

from holdfast.features.console import open_console
from holdfast.features.items.grid import Chosen, write_export
from holdfast.features.items.items import ItemFilter
from holdfast.kernel import NewJob, NewStream, Store
from holdfast.kernel.record.outcomes import Settlement
from holdfast.model import ItemStatus
from holdfast.tables.writers import EXACT_INTEGERS, FORMULA_STARTS
from tests.api.server import ApiServer
from tests.store.checks import claim, ingest, lease_stream, outcome_of, records

COLUMNS = ("a", "b")
PAGE = 1000
_STARTS = re.escape("".join(FORMULA_STARTS))
_MARKS = re.compile(rf"""(^|[;\t\r\n]"*)'(?=[{_STARTS}])""")

#: What spreadsheets like to take for something else.
TRAPS = st.sampled_from(
    [
        "=1+1", "+1", "-1", "@sum", "\t=1", "\r", "\n", "a\r\nb", "\r\r\n", "＝1", "'quoted'", "'",
        "007", "1e5", "1,5", "TRUE", "null", "#N/A", "2024-01-31", "12345678901234567890",
        "https://shop.example/a?b=c&d", "mailto:a@b.example", "_x0041_", "_x000D_", "\x00", "\x1f",
        "\x7f", "\ufeff", "\u2028", " spaces ", '"', ",", ";", "<a>&amp;</a>", "]]>",
    ]
)  # fmt: skip
#: The two excluded ones are written as spreadsheets do, but not read so by the test's reader.
CHARACTERS = st.characters(exclude_categories=("Cs",), exclude_characters="\ufffe\uffff")
LEAVES = (
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([EXACT_INTEGERS, EXACT_INTEGERS - 1, -EXACT_INTEGERS, 2**53 + 1])
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(CHARACTERS, max_size=20)
    | TRAPS
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text("ab\n=é", max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)
ROWS = st.lists(st.fixed_dictionaries(dict.fromkeys(COLUMNS, VALUES)), min_size=1, max_size=25)


async def job_with(store: Store, results: Sequence[Any], declared: bool) -> int:
    """A DONE job with these results. Its later half was finished first."""
    streams = [NewStream("rows {job}", "rows")]
    columns = COLUMNS if declared else ()
    job_id = await store.jobs.create(
        NewJob("lengths", "values", streams, columns=columns), "tester"
    )
    stream = await lease_stream(store, job_id)
    half = len(results) // 2
    for start, end in ((0, half), (half, len(results))):
        await ingest(store, stream, records(end - start), end=end == len(results))
    claims = await claim(store, job_id, len(results), max_bytes=1 << 30)
    for claimed in reversed(claims):
        texts = (orjson.dumps(results[row[0] - 1]).decode() for row in claimed.rows)
        done = [
            outcome_of(row, ItemStatus.DONE, result=text)
            for row, text in zip(claimed.rows, texts, strict=True)
        ]
        settlement = Settlement(claimed.lease, done, last=True)
        assert await store.outcomes.settle(job_id, "one", [settlement]) == []
    await store.outcomes.complete(job_id)
    return job_id


async def grid_of(
    client: httpx2.AsyncClient, job_id: int, **query: Any
) -> tuple[list[str], list[list[Any]]]:
    """All pages of the grid, as the API gives them."""
    columns: dict[str, None] = {}
    rows: list[dict[str, Any]] = []
    after: dict[str, str] = {}
    while True:
        params = {"pageSize": PAGE, **query, **after}
        page = (await client.get(f"/api/jobs/{job_id}/items", params=params)).json()
        columns |= dict.fromkeys(page["columns"])
        rows += [item["row"] for item in page["items"]]
        if page["next"] is None:
            return list(columns), [[row.get(name) for name in columns] for row in rows]
        after = {"after": page["next"]}


async def exported(
    store: Store, job_id: int, folder: Path, format: str, statuses: tuple[ItemStatus, ...] = ()
) -> Path:
    path = folder / f"parity.{format}"
    job = await store.reads.job(job_id)
    assert (
        await write_export(open_console(store), job, path, format, Chosen(ItemFilter(statuses)))
        == []
    )
    return path


def text_of(value: Any) -> str:
    """A value as text, computed independently of the product."""
    if value is None:
        return ""
    if isinstance(value, str):
        return value
    if isinstance(value, float):
        return repr(value)
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def same_text(found: str, value: Any) -> bool:
    """Nested values are compared as JSON, which may spell a float in more than one way."""
    if isinstance(value, dict | list):
        return bool(json.loads(found) == value)
    return found == text_of(value)


def without_marks(text: str) -> str:
    """Without the apostrophes that keep spreadsheets from finding a formula: at the start, and
    where other programs begin a cell."""
    return _MARKS.sub(r"\1", text)


def assert_csv_has(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open(encoding="utf-8", newline="") as file:
        header, *found = list(csv.reader(file))
    assert header == list(columns)
    for cells, values in zip(found, rows, strict=True):
        for cell, value in zip(cells, values, strict=True):
            assert same_text(cell, value) or without_marks(cell) == without_marks(text_of(value)), (
                cell,
                value,
            )


def assert_jsonl_has(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    with path.open(encoding="utf-8") as file:
        found = [json.loads(line) for line in file]
    for row, values in zip(found, rows, strict=True):
        assert list(row) == list(columns)
        assert repr(list(row.values())) == repr(list(values))


def assert_xlsx_has(path: Path, columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    header, *found = CalamineWorkbook.from_path(str(path)).get_sheet_by_index(0).to_python()
    assert header == list(columns)
    for cells, values in zip(found, rows, strict=True):
        for cell, value in zip(cells, values, strict=True):
            assert same_cell(cell, value), (cell, value)


def same_cell(cell: Any, value: Any) -> bool:
    """Booleans and exact numbers are such; everything else is text."""
    if isinstance(value, bool):
        return cell is value
    if isinstance(value, float) or (isinstance(value, int) and abs(value) < EXACT_INTEGERS):
        return isinstance(cell, int | float) and cell == value
    return isinstance(cell, str) and same_text(cell, value)


@settings(
    max_examples=25,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(results=ROWS, declared=st.booleans())
@example(results=[{"a": "\t=1", "b": ["x;=1"]}], declared=True)
@example(results=[{"a": 0.1 + 0.2, "b": "a\r\nb"}, {"a": -0.0, "b": 5e-324}], declared=True)
async def test_whatever_the_values_every_format_agrees_with_the_grid(
    server: ApiServer, results: list[Any], declared: bool
) -> None:
    ada = server.anybody(headers=await token_of(server))
    store = server.parts.store
    job_id = await job_with(store, results, declared)
    for statuses in ((), (ItemStatus.DONE,)):
        query = {"statuses": ",".join(statuses)} if statuses else {}
        columns, rows = await grid_of(ada, job_id, **query)
        if not statuses:
            shown = [dict(zip(columns, row, strict=True)) for row in rows]
            assert [{name: row[name] for name in COLUMNS} for row in shown] == results
        folder = server.folder
        assert_jsonl_has(await exported(store, job_id, folder, "jsonl", statuses), columns, rows)
        assert_csv_has(await exported(store, job_id, folder, "csv", statuses), columns, rows)
        assert_xlsx_has(await exported(store, job_id, folder, "xlsx", statuses), columns, rows)


async def token_of(server: ApiServer) -> dict[str, str]:
    """Of an admin, who is made at the first example."""
    accounts = server.parts.accounts
    if not await server.parts.console.people.users():
        await accounts.add_user("ada", "admin", None, "tester")
    token = await accounts.make_token("ada", "test", None, "tester")
    return {"Authorization": f"Bearer {token.value}"}


@pytest.mark.exhaustive
@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("database_url", ["postgres"], indirect=True)
async def test_more_links_than_a_sheet_may_have_are_all_exported(
    server: ApiServer,
) -> None:
    count = 66_000  # a spreadsheet allows 65,530 links; these are text
    results = [
        {"a": f"https://shop.example/{n}", "b": f"{n:07}" if n % 2 else n / 7} for n in range(count)
    ]
    ada = server.anybody(headers=await token_of(server))
    store = server.parts.store
    job_id = await job_with(store, results, declared=True)
    columns, rows = await grid_of(ada, job_id)
    assert [row[1] for row in rows] == [result["a"] for result in results]
    assert_jsonl_has(await exported(store, job_id, server.folder, "jsonl"), columns, rows)
    assert_csv_has(await exported(store, job_id, server.folder, "csv"), columns, rows)
    assert_xlsx_has(await exported(store, job_id, server.folder, "xlsx"), columns, rows)
