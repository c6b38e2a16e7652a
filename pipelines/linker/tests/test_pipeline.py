"""A job of linker: entries in, tasks and candidates out, and people's decisions about them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from holdfast.clock import SystemClock
from holdfast.errors import UserError
from holdfast.kernel import Store
from holdfast.pipeline import Settled, Tx
from holdfast.rulings import OutdatedRuling
from holdfast_linker.linking import statement_lines
from holdfast_linker.options import LinkerOptions
from holdfast_linker.projects import find_or_add_dataset
from holdfast_linker.quickstatements import Style
from pipelines.linker.tests.labelled import AGENT, MAPPING
from pipelines.linker.tests.reconciliation_server import ReconciliationServer
from pipelines.linker.tests.scene import HASTE, LinkerScene, read_csv
from pipelines.linker.tests.wikidata_server import WikidataServer, html
from tests.command import HoldfastCommand
from tests.engine.one_worker import until, working
from tests.store.checks import execute

ADAMS = {"name": "Douglas Adams", "born": "1952-03-11", "type": "Q5"}
NAMESAKE = {"name": "Douglas Adams"}
NOBODY = {"name": "Xq Zzyx Wvuts"}


class LaterClock(SystemClock):
    """In which an hour can pass, here and in the database."""

    def __init__(self) -> None:
        self._ahead = 0.0

    def monotonic(self) -> float:  # type: ignore[override]
        return time.monotonic() + self._ahead

    async def pass_hour(self, store: Store) -> None:
        self._ahead += 3600.0
        await execute(store, "update gates set closed_until = @now where closed_until > @now")
        await execute(store, "update ranges set available_at = @now where available_at > @now")


async def test_entries_end_as_tasks_with_candidates(scene: LinkerScene) -> None:
    project = await scene.project()
    job = await scene.matched([ADAMS, NAMESAKE, NOBODY, {"born": "1952"}], project=project.id)
    assert job.state == "DONE"
    assert await scene.states(job) == [
        (1, "auto_confirmed", "Q42", None),
        (2, "awaiting_review", None, None),
        (3, "no_candidates_found", None, None),
        (4, "failed", None, None),
    ]
    assert (await scene.candidates(job, 1))["Q42"] == "accepted"
    assert (await scene.candidates(job, 2))["Q42"] == "suggested"
    assert await scene.candidates(job, 3) == {}
    assert (await scene.store.reads.counters(job.id)).error == 1
    (fields,) = (
        await scene.fetch("select fields from linker_candidates where seq = 1 and item = 'Q42'")
    )[0]
    assert '"field":"P569"' in fields and "the same name" in fields


async def test_repeated_names_are_looked_up_once(
    scene: LinkerScene, wikidata: WikidataServer
) -> None:
    await scene.matched([ADAMS] * 20)
    assert len(wikidata.calls("wbsearchentities")) == 1
    calls = len(wikidata.log)
    assert calls <= 6
    ((entries, counted),) = await scene.fetch("select sum(entries), sum(calls) from linker_calls")
    assert (entries, counted) == (20, calls)
    await scene.matched([ADAMS, *[NAMESAKE] * 2])
    assert len(wikidata.log) == calls, "a later job uses the cache"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_throttling_closes_the_gate_and_uses_up_no_attempt(
    scene: LinkerScene, wikidata: WikidataServer
) -> None:
    troubles = [html(429, {"Retry-After": "1"})]
    wikidata.trouble = lambda params, number: troubles.pop() if troubles else None
    job = await scene.matched([ADAMS])
    assert (await scene.states(job))[0][1:3] == ("auto_confirmed", "Q42")
    rows = await scene.fetch("select attempts, tries from outcomes")
    assert rows == [(1, 1)], "the entry waited in its place"


async def test_throttle_lowers_the_rate_and_the_gate_shows_it(store: Store) -> None:
    options = LinkerOptions(wikidata_url="http://wikidata.test/w/api.php")
    gate = options.wikidata_gate
    assert (gate.name, gate.spacing, gate.concurrency) == ("wikidata.test", 0.2, 2)
    assert gate.requests / gate.period == 5.0, "the budget allows what the spacing does"
    await store.gates.declare(gate)
    await store.gates.close(gate.name, 0.0, "HTTP 429")
    (shown,) = await store.gates.all()
    assert shown["share"] < 1.0 and shown["requests_now"] < gate.requests
    assert replace(options, spacing_seconds=0.0).wikidata_gate.requests == 0


async def test_provider_that_is_down_for_an_hour_is_waited_for(
    scene: LinkerScene, wikidata: WikidataServer
) -> None:
    down = True
    wikidata.trouble = lambda *_: html(503, {"Retry-After": "3600"}) if down else None
    job_id = await scene.upload([ADAMS, NAMESAKE])
    clock = LaterClock()

    async def waits() -> bool:
        rows = await scene.fetch("select waiting_for, worker from ranges")
        return bool(rows) and all(row[0] and row[1] is None for row in rows)

    async def is_done() -> bool:
        return (await scene.store.reads.job(job_id)).state == "DONE"

    async with working(scene.store, scene.pipeline, clock=clock, **HASTE):
        await until(waits)
        ((seconds,),) = await scene.fetch(
            "select @seconds_until(closed_until) from gates where name = :host", host=wikidata.host
        )
        assert 3000 < seconds <= 3600
        asked, down = len(wikidata.log), False
        await clock.pass_hour(scene.store)
        await until(is_done)
    assert asked <= 4, "nothing is asked while the gate is closed"
    rows = await scene.fetch("select attempts from outcomes")
    assert rows == [(1,), (1,)], "waiting used up no attempt"


async def test_decisions_are_kept_beside_the_result(scene: LinkerScene) -> None:
    project = await scene.project()
    job = await scene.matched([ADAMS, NAMESAKE, NAMESAKE], project=project.id)
    ruling = await scene.decide(job, 2, "choose", "Q42")
    assert ruling.changes["item"] == "Q42" and ruling.changes["state"] == "reviewed"
    await scene.decide(job, 1, "reject")
    await scene.decide(job, 3, "choose", "https://www.wikidata.org/wiki/Q937")
    assert await scene.states(job) == [
        (1, "reviewed", None, "ann"),
        (2, "reviewed", "Q42", "ann"),
        (3, "reviewed", "Q937", "ann"),
    ]
    assert set((await scene.candidates(job, 1)).values()) == {"rejected"}
    assert (await scene.candidates(job, 3))["Q937"] == "accepted"
    with pytest.raises(OutdatedRuling, match="ann has decided"):
        await scene.decide(job, 2, "reject", by="ben")
    assert (await scene.states(job))[1] == (2, "reviewed", "Q42", "ann")


async def test_decision_is_revoked_and_survives_another_match(scene: LinkerScene) -> None:
    job = await scene.matched([ADAMS, NAMESAKE])
    await scene.decide(job, 1, "reject")
    await scene.decide(job, 2, "choose", "Q937")
    await scene.control.reprocess_items(job.id, [1, 2])
    await scene.work()
    assert [state[:3] for state in await scene.states(job)] == [
        (1, "reviewed", None),
        (2, "reviewed", "Q937"),
    ]
    await scene.decide(job, 1, "revoke", version=1)
    await scene.decide(job, 2, "revoke", version=1)
    assert [state[:3] for state in await scene.states(job)] == [
        (1, "auto_confirmed", "Q42"),
        (2, "awaiting_review", None),
    ]
    assert (await scene.candidates(job, 1))["Q42"] == "accepted"


async def test_one_candidate_is_rejected_and_the_entry_still_waits(scene: LinkerScene) -> None:
    job = await scene.matched([ADAMS])
    await scene.decide(job, 1, "edit", {"reject": "Q42"})
    assert (await scene.states(job))[0][1:3] == ("awaiting_review", None)
    assert (await scene.candidates(job, 1))["Q42"] == "rejected"
    await scene.control.reprocess_items(job.id, [1])
    await scene.work()
    assert (await scene.states(job))[0][1:3] == ("awaiting_review", None), "not accepted again"
    assert (await scene.candidates(job, 1))["Q42"] == "rejected"
    await scene.decide(job, 1, "revoke", version=1)
    assert (await scene.states(job))[0][1:3] == ("auto_confirmed", "Q42")


async def test_decision_made_while_the_entry_is_matched_again_marks_its_candidates(
    scene: LinkerScene,
) -> None:
    """The worker replaces the candidates; the person's decision waits for it, or it for that."""
    job = await scene.matched([NAMESAKE])
    await scene.control.reprocess_items(job.id, [1])
    saved, decided = asyncio.Event(), asyncio.Event()
    save = scene.pipeline.save

    async def slow_save(tx: Tx, settled: Sequence[Settled]) -> None:
        await save(tx, settled)
        saved.set()
        with suppress(TimeoutError):  # SQLite has one writer
            await asyncio.wait_for(decided.wait(), 0.3)

    scene.pipeline.save = slow_save  # type: ignore[method-assign]

    async def decide() -> None:
        await saved.wait()
        await scene.decide(job, 1, "reject")
        decided.set()

    await asyncio.gather(scene.work(), decide())
    assert (await scene.states(job))[0][:3] == (1, "reviewed", None)
    assert set((await scene.candidates(job, 1)).values()) == {"rejected"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_rows_of_a_file_have_no_options(scene: LinkerScene) -> None:
    """Such as another provider: whoever wrote the file would choose where its rows are sent."""
    own = {"provider": "http://elsewhere.example/", "candidates": "x"}
    job = await scene.matched([ADAMS | {"_linker": own}])  # type: ignore[dict-item]
    assert (await scene.states(job))[0][1:3] == ("auto_confirmed", "Q42")


async def test_decision_for_something_that_is_not_an_item_is_refused(scene: LinkerScene) -> None:
    job = await scene.matched([ADAMS])
    for value in (None, "", "P31", "42", {"item": 3}, "Q0"):
        with pytest.raises(UserError):
            await scene.decide(job, 1, "choose", value)


async def test_text_is_not_written_for_a_property_that_takes_items(scene: LinkerScene) -> None:
    project = await scene.project()
    job = await scene.matched([{**ADAMS, "occupation": "poet laureate"}], project=project.id)
    await scene.decide(job, 1, "choose", "Q42")
    lines = [line async for line in statement_lines(scene.store.fetch, project, Style())]
    assert lines == ["Q42\tP569\t+1952-03-11T00:00:00Z/11\n"]


async def test_job_of_somebody_else_adds_nothing_to_a_project(scene: LinkerScene) -> None:
    job = await scene.matched([ADAMS], project=999)
    assert await scene.fetch(
        "select project_id from linker_tasks where job_id = :job", job=job.id
    ) == [(None,)]


async def test_file_with_other_content_is_another_dataset(scene: LinkerScene) -> None:
    """One dataset has one job: a second one would be missed by exports and deletions."""
    project = await scene.project()

    async def dataset(key: str, new: bool = False) -> Any:
        change = find_or_add_dataset(project, "people.csv", MAPPING, key, new=new)
        return await scene.control.change(change)

    first = await dataset("a")
    assert await dataset("a") == first, "nothing was read yet"
    job = await scene.matched([ADAMS], project=project.id, dataset=first)
    key = str(job.input_key)
    assert await dataset(key) == first
    second = await dataset("b")
    assert second != first and await dataset(key) == first
    await scene.matched([NAMESAKE], project=project.id, dataset=second)
    assert await dataset(key, new=True) not in (first, second)


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_command_matches_a_file_and_continues_it(
    holdfast_command: HoldfastCommand, wikidata: WikidataServer, tmp_path: Path
) -> None:
    (tmp_path / "people.csv").write_text(
        "id,name,born,type\n1,Douglas Adams,1952-03-11,Q5\n2,Douglas Adams,,\n3,Xq Zzyx,,\n"
    )
    env = {
        "HOLDFAST_LINKER_WIKIDATA_URL": wikidata.url,
        "HOLDFAST_LINKER_SPACING_SECONDS": "0",
        "HOLDFAST_LINKER_BATCH_WAIT_SECONDS": "0.005",
        "HOLDFAST_HTTP_USER_AGENT": AGENT,
        "HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "true",
        "HOLDFAST_WORKERS": "1",
    }
    words = ("linker", "match", "people.csv", "--out", "links.csv")
    finished = await asyncio.to_thread(holdfast_command.run, *words, env=env, cwd=tmp_path)
    assert finished.returncode == 0, finished.stderr
    assert "date P569: born" in finished.stderr
    assert "1 awaiting review, 1 auto confirmed, 1 no candidates found" in finished.stderr
    rows = read_csv(tmp_path / "links.csv")
    assert [(row["id"], row["state"], row["item"]) for row in rows] == [
        ("1", "auto_confirmed", "Q42"),
        ("2", "awaiting_review", ""),
        ("3", "no_candidates_found", ""),
    ]
    calls = len(wikidata.log)
    again = await asyncio.to_thread(holdfast_command.run, *words, env=env, cwd=tmp_path)
    assert again.returncode == 0 and "already done" in again.stderr
    assert len(wikidata.log) == calls
    words = ("linker", "quickstatements", "people", "--out", "links.qs")
    written = await asyncio.to_thread(holdfast_command.run, *words, env=env, cwd=tmp_path)
    assert written.returncode == 0, written.stderr
    assert (tmp_path / "links.qs").read_text() == "Q42\tP569\t+1952-03-11T00:00:00Z/11\n"
    words = ("linker", "match", "people.csv", "--project", "other", "--out", "links.pdf")
    refused = await asyncio.to_thread(holdfast_command.run, *words, env=env, cwd=tmp_path)
    assert refused.returncode == 1 and "Project" not in refused.stderr, "nothing was made"


async def test_entries_are_matched_with_a_reconciliation_service(
    scene: LinkerScene, service: ReconciliationServer
) -> None:
    rows = [ADAMS, NAMESAKE, NOBODY] * 5
    project = await scene.project(provider=service.url)
    job = await scene.matched(rows, provider=service.url, project=project.id)
    states = [(state, item) for _, state, item, _ in await scene.states(job)]
    assert states[:3] == [
        ("auto_confirmed", "Q42"),
        ("awaiting_review", None),
        ("no_candidates_found", None),
    ]
    assert states[3:] == states[:3] * 4
    ((calls,),) = await scene.fetch("select sum(calls) from linker_calls")
    assert calls <= 6, "the manifest, batches of queries, and the values of candidates"


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_refusal_of_a_service_lowers_its_rate_and_not_that_of_others(
    store: Store, tmp_path: Path, wikidata: WikidataServer, service: ReconciliationServer
) -> None:
    scene = LinkerScene(store, tmp_path, wikidata.url, spacing_seconds=0.02)
    troubles = [html(429, {"Retry-After": "1"})]
    service.trouble = lambda batch, number: troubles.pop() if troubles else None
    job = await scene.matched([ADAMS], provider=service.url)
    assert (await scene.states(job))[0][1:3] == ("auto_confirmed", "Q42")
    assert await scene.fetch("select attempts, tries from outcomes") == [(1, 1)]
    gates = {gate["name"]: gate for gate in await store.gates.all()}
    own = gates[f"linker: {service.host}"]
    assert (own["spacing"], own["requests"] / own["period"]) == (0.02, 50.0)
    assert own["share"] < 1.0
    assert (gates[service.host]["spacing"], gates[service.host]["requests"]) == (0.0, 0)
    assert gates[wikidata.host]["share"] == 1.0
