"""`holdfast items`: the items of a job, and what happened to each."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import aclosing
from datetime import datetime
from typing import Any, NamedTuple

import orjson
import typer

from holdfast.cli.arguments import JOB, JSON, STATUS, parse_statuses
from holdfast.cli.opening import opened_store, ready_settings, run_async
from holdfast.cli.output import (
    JsonArray,
    cell,
    console,
    errors,
    instant,
    print_json,
    print_table,
    text_cell,
)
from holdfast.features.console import open_console
from holdfast.features.items.grid import grid_of
from holdfast.features.items.items import ItemFilter, ItemView
from holdfast.features.rulings.rules import no_item
from holdfast.kernel import Store
from holdfast.model import ItemStatus, Job
from holdfast.tables.writers import plain_text

_SUMMARY_CHARACTERS = 60


def register(app: typer.Typer) -> None:
    app.command("items")(items)


def items(
    job_id: int = JOB,
    status: str | None = STATUS,
    item: int | None = typer.Option(None, "--item", help="Show one item with its full history."),
    limit: int = typer.Option(50, "--limit", min=0, help="Maximum number of items; 0 for all."),
    as_json: bool = JSON,
) -> None:
    """List the items of a job with their results, or one item with its full history."""
    settings = ready_settings()
    statuses = parse_statuses(status)

    async def main() -> None:
        async with opened_store(settings) as store:
            job = await store.reads.job(job_id)
            if item is not None:
                _print_item(await _item_details(store, job, item), as_json)
                return
            pages = _pages(store, job, ItemFilter(tuple(statuses)), limit)
            more = await (_print_as_json(pages) if as_json else _print_pages(job, pages))
        if more and not as_json:
            errors.print(f"Only the first {limit} are shown; --limit 0 shows all.")

    run_async(main())


class _Page(NamedTuple):
    views: list[ItemView]
    more: bool = False  # whether more items follow that were left out


async def _pages(store: Store, job: Job, filter: ItemFilter, limit: int) -> AsyncIterator[_Page]:
    """Yields up to `limit` items, or all if it is 0; never more than a page of them in memory."""
    left = limit
    async with aclosing(open_console(store).items.every(job, filter)) as pages:
        async for views in pages:
            if limit and len(views) > left:
                yield _Page(views[:left], more=True)
                return
            left -= len(views)
            yield _Page(views)


async def _print_as_json(pages: AsyncIterator[_Page]) -> bool:
    array, more = JsonArray(), False
    async for page in pages:
        more = page.more
        for view in page.views:
            array.add(_item_json(view))
    array.end()
    return more


async def _print_pages(job: Job, pages: AsyncIterator[_Page]) -> bool:
    printed = more = False
    async for page in pages:
        more = page.more
        if page.views:
            _print_items(job, page.views)
            printed = True
    if not printed:
        console.print("No items.")
    return more


def _item_json(view: ItemView) -> dict[str, Any]:
    result = None if view.result is None else orjson.loads(view.result)
    return view._asdict() | {"input": orjson.loads(view.input), "result": result}


def _print_items(job: Job, views: list[ItemView]) -> None:
    """Prints items; rows without a result show which record they are."""
    grid = grid_of(job, views, ruled=any(view.ruling for view in views))
    columns = grid.columns
    rows = [[row.get(name) for name in columns] for row in map(grid.row, views)]
    if any(view.status is not ItemStatus.DONE for view in views):
        columns = [*columns, "input"]
        for row, view in zip(rows, views, strict=True):
            row.append(None if view.status is ItemStatus.DONE else _summary(view))
    print_table(columns, rows, "No items.", shown=lambda value: text_cell(plain_text(value)))


def _summary(view: ItemView) -> str:
    values = [str(value) for value in orjson.loads(view.input).values() if value]
    text = ", ".join(values[:3])
    return text if len(text) <= _SUMMARY_CHARACTERS else text[: _SUMMARY_CHARACTERS - 1] + "…"


async def _item_details(store: Store, job: Job, seq: int) -> dict[str, Any]:
    details = await open_console(store).items.item(job.id, seq)
    if details is None:
        raise no_item(job, seq, f"List its items with: holdfast items {job.id}")
    for name in ("input", "normalized", "result"):
        details[name] = None if details[name] is None else orjson.loads(details[name])
    details["status"] = details["status"] or ItemStatus.PENDING
    details["tries_before"] = await open_console(store).items.attempts(job.id, seq)
    return details


def _print_item(details: dict[str, Any], as_json: bool) -> None:
    if as_json:
        print_json(details)
        return
    for name, value in details.items():
        if name != "tries_before" and value is not None:
            text = cell(value) if isinstance(value, datetime) else text_cell(plain_text(value))
            console.print(f"[bold]{name}[/] {text}", soft_wrap=True)
    for attempt in details["tries_before"]:
        console.print(
            f"  attempt {attempt['number']} at {instant(attempt['at'])}: {attempt['status']} "
            f"{cell(attempt['error_code'])} {cell(attempt['error_message'])}",
            soft_wrap=True,
        )
