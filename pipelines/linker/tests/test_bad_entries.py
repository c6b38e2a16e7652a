"""Entries as nobody should write them: each ends in a state, and harms no other."""

from __future__ import annotations

import pytest

from pipelines.linker.tests.scene import LinkerScene
from pipelines.linker.tests.wikidata_server import WikidataServer, html

ADAMS = {"name": "Douglas Adams", "born": "1952-03-11", "type": "Q5"}
BAD = [
    {"born": "1952"},
    {"name": "   ", "born": "1952"},
    {"name": "A" * 10_000},
    {"name": "ab̈" * 4_000},
    {"name": "\u202eDouglas\u202c \u200fAdams\u0007", "born": "1952-03-11"},
    {"name": "محمود درويش"},
    {"name": "Douglas Adams", "born": "1952-02-30", "type": "Q5"},
    {"name": "Douglas Adams", "born": "yesterday or so"},
    {"name": "Douglas Adams", "type": "a man"},
    {"name": '"; drop table linker_tasks; --'},
    {"name": "haswbstatement:P31=Q5 | ~ * ?"},
    {"name": "Q42"},
    {"name": "x", "viaf": "1" * 5_000},
    {"name": "x", "also": ";".join(f"name {n}" for n in range(200))},
    {"name": "\U0001f600\U0001f600"},
]


async def test_every_bad_entry_ends_in_a_state(scene: LinkerScene) -> None:
    project = await scene.project()
    job = await scene.matched([ADAMS, *BAD, ADAMS], project=project.id)
    assert job.state == "DONE"
    states = [state for _, state, _, _ in await scene.states(job)]
    assert len(states) == len(BAD) + 2
    assert states[0] == states[-1] == "auto_confirmed"
    assert states[1:3] == ["failed", "failed"]
    assert "failed" not in states[3:]
    accepted = await scene.fetch(
        "select seq, item from linker_tasks where state = 'auto_confirmed' order by seq"
    )
    marks, no_such_day = 6, 8  # direction marks do not matter; of 30 February the year counts
    assert accepted == [(seq, "Q42") for seq in (1, marks, no_such_day, len(BAD) + 2)]
    codes = await scene.fetch("select distinct error_code from outcomes where status = 'ERROR'")
    assert codes == [("NAME_MISSING",)]


async def test_entries_with_the_same_id_are_linked_on_their_own(scene: LinkerScene) -> None:
    rows = [{"id": "7", "name": "Douglas Adams"}, {"id": "7", "name": "Marie Curie"}]
    mapping = '{"id": "id", "name": "name"}'
    project = await scene.project()
    job = await scene.matched(rows, project=project.id, mapping=mapping)
    assert await scene.fetch("select key, name from linker_tasks order by seq") == [
        ("7", "Douglas Adams"),
        ("7", "Marie Curie"),
    ]
    assert (await scene.store.reads.counters(job.id)).done == 2


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_provider_that_answers_html_is_waited_for(
    scene: LinkerScene, wikidata: WikidataServer
) -> None:
    """The gate closes for all, jobs wait, and go on by themselves."""
    troubles = [html(200, {"Retry-After": "1"})]
    wikidata.trouble = lambda params, number: troubles.pop() if troubles else None
    job = await scene.matched([ADAMS, {"name": "Marie Curie"}])
    assert [state for _, state, _, _ in await scene.states(job)] == [
        "auto_confirmed",
        "awaiting_review",
    ]
    assert {row[0] for row in await scene.fetch("select attempts from outcomes")} == {1}
    reasons = await scene.fetch("select reason from gates")
    assert reasons and "HTML" in str(reasons)
