"""The towns of the demo: what their sites answer, and that a backfill of one is complete."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from holdfast.configuration import load_settings
from holdfast.demo.part import Ask, Sample
from holdfast.extension import installed
from holdfast.kernel import Store
from holdfast_meetings.demo import DEMO, TOWNS
from pipelines.meetings.tests.town import Town
from tests.without_messages import no_messages

NOW = datetime(2026, 3, 4, tzinfo=UTC)


async def _no_upload(name: str, text: str, options: Mapping[str, Any]) -> int:
    raise AssertionError("the towns bring no files")


def ask(path: str, **query: str) -> tuple[int, object]:
    reply = DEMO.answer(Ask(path, query, NOW, 0.0))
    return reply.status, reply.body


def test_sites_answer_as_datasette_does() -> None:
    status, body = ask("sites/oakmere.wa/meetings/minutes.json", _size="10")
    assert status == 200 and isinstance(body, dict)
    assert len(body["rows"]) == 10 and body["filtered_table_rows_count"] > 100
    image = body["rows"][0]["page_image"]
    status, drawing = ask(f"images/oakmere.wa{image}")
    assert status == 200 and str(drawing).startswith("<svg")


def test_what_is_not_there_is_not_found() -> None:
    for path in ("", "sites", "sites/nowhere/meetings/minutes.json", "sites/oakmere.wa/x/y.json",
                 "images/oakmere.wa/nothing.svg", "other/oakmere.wa/minutes.json"):  # fmt: skip
        assert ask(path)[0] == 404, path


async def test_fill_registers_the_towns_once(store: Store) -> None:
    settings = DEMO.environment("http://127.0.0.1:1/meetings")
    pipeline = installed()["meetings"].make(load_settings(settings).of("meetings"))
    town = Town(store, "")
    for _ in range(2):
        await DEMO.fill(Sample(town.control, pipeline, store.fetch, _no_upload, no_messages))
    rows = await town.fetch("select subdomain, url from meetings_municipalities order by subdomain")
    assert rows == [(name, f"http://localhost:1/meetings/sites/{name}") for name in sorted(TOWNS)]
    assert len(await town.jobs()) == 2 * len(TOWNS)
