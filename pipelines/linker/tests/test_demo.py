"""The demo's Wikidata answers as the real one, and its list can be matched with it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from holdfast.demo.part import Ask, Sample
from holdfast_linker.demo import DEMO, people, sample_table
from holdfast_linker.entities import parse_entities
from holdfast_linker.wikidata import parse_hits, parse_titles
from pipelines.linker.tests.scene import LinkerScene
from tests.without_messages import no_messages

NOW = datetime(2026, 3, 4, tzinfo=UTC)


def _ask(uptime: float = 0.0, **query: str) -> Any:
    return DEMO.answer(Ask("w/api.php", query, NOW, uptime))


def test_it_speaks_the_action_api() -> None:
    hits = parse_hits(_ask(action="wbsearchentities", search="DOUGLAS ad", limit="5").body).hits
    assert [hit.id for hit in hits] == ["Q42"]
    entities = parse_entities(_ask(action="wbgetentities", ids="Q42|Q1|Q5").body, ["Q42", "Q1"])
    assert entities["Q1"] is None
    adams = entities["Q42"]
    assert adams is not None and adams.best("P569")[0].text == "1952"
    assert parse_titles(_ask(action="query", list="search", srsearch="adams~ douglas~").body) == [
        "Q42"
    ]
    assert "error" in _ask(action="nothing").body
    assert DEMO.answer(Ask("other", {}, NOW, 0.0)).status == 404
    assert 429 in {_ask(moment / 50).status for moment in range(1000)}


def test_there_are_namesakes() -> None:
    names = [name for name, _, _ in people().values()]
    assert len(names) > len(set(names)) + 20


async def test_fill_makes_one_project_with_a_job(scene: LinkerScene) -> None:
    uploads: list[str] = []

    async def upload(name: str, text: str, options: Mapping[str, Any]) -> int:
        uploads.append(text)
        assert options["project"] == 1
        return 7

    for _ in range(2):
        await DEMO.fill(
            Sample(scene.control, scene.pipeline, scene.store.fetch, upload, no_messages)
        )
    assert uploads == [sample_table()]
    assert await scene.fetch("select name, job_id from linker_datasets") == [
        ("harbour-archive.csv", 7)
    ]
