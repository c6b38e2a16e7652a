"""Quality: the goals are met on labelled sets of several seeds, and the report is right."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from bench.quality.linker.measuring import (
    Judgement,
    LabelledEntry,
    Report,
    read_labelled,
    render,
    rows_of,
)
from holdfast.errors import InputError
from holdfast_linker.entries import Entry
from pipelines.linker.tests.entity_world import make_world
from pipelines.linker.tests.labelled import AGENT, HAND_MADE, MAPPING, make_labelled, measure_seed
from pipelines.linker.tests.wikidata_server import WikidataServer
from tests.quality.command import measured


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
async def test_goals_are_met_on_a_labelled_set(seed: int) -> None:
    report, _calls = await measure_seed(seed)
    assert len(report.judgements) >= 500
    assert report.accepted_count >= 200
    assert report.good, render(report)


def test_labelled_set_is_the_same_for_the_same_seed() -> None:
    lines = make_labelled(make_world(3), 3, 40)
    assert lines == make_labelled(make_world(3), 3, 40)
    assert lines != make_labelled(make_world(4), 4, 40)


def _judged(expected: str | None, ranked: str, accepted: str | None, case: str = "a") -> Judgement:
    labelled = LabelledEntry(Entry("1", "Some Name"), expected, case)
    return Judgement(labelled, tuple(ranked.split()), accepted, "because")


def test_report_counts_precision_recall_and_confusion() -> None:
    report = Report(
        (
            _judged("Q1", "Q1 Q2", "Q1"),
            _judged("Q1", "Q2 Q1", "Q2"),
            _judged(None, "Q2", "Q2", "b"),
            _judged("Q3", "Q1 Q2", None),
            _judged(None, "", None, "b"),
            _judged("Q1", "Q2 Q1", None),
        )
    )
    assert report.accepted_count == 3
    assert report.precision == pytest.approx(1 / 3)
    assert report.recall == pytest.approx(3 / 4)
    assert not report.good
    text = render(report)
    assert "precision of accepted       0.3333  (at least 0.99: TOO LOW)" in text
    assert "accepted wrongly: 'Some Name' (b) is none, not Q2: because" in text
    assert "for review, right one missing: 'Some Name' (a) is Q3, not Q1, Q2" in text


def test_empty_report_is_good() -> None:
    assert Report(()).good


def test_hand_made_cases_can_be_read() -> None:
    labelled = read_labelled(HAND_MADE.read_text().splitlines(), MAPPING)
    assert len(labelled) > 35


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("nonsense", "line 2 of the labelled set is not JSON"),
        ("[]", "line 2 of the labelled set has no row"),
        ('{"row": {}}', "line 2 of the labelled set does not say what is right"),
        ('{"row": {}, "expected": 42}', "line 2 of the labelled set does not say what is right"),
    ],
)
def test_line_that_is_not_labelled_is_named(line: str, complaint: str) -> None:
    lines = ['{"row": {"name": "x"}, "expected": null}', line]
    with pytest.raises(InputError, match=complaint):
        read_labelled(lines, MAPPING)
    with pytest.raises(InputError, match=complaint):
        rows_of(lines)


async def test_command_measures_entries_of_ones_own(sqlite_url: str, tmp_path: Path) -> None:
    world = make_world(1)
    (tmp_path / "labelled.jsonl").write_text("\n".join(make_labelled(world, 1, 40)[:40]))
    (tmp_path / "mapping.json").write_text(json.dumps(MAPPING.to_json()))
    words = ("linker", tmp_path / "labelled.jsonl", "--mapping", tmp_path / "mapping.json")
    async with WikidataServer(world) as wikidata:
        settings = {
            "HOLDFAST_DATABASE_URL": sqlite_url,
            "HOLDFAST_DATA_DIR": str(tmp_path / ".holdfast"),
            "HOLDFAST_LINKER_WIKIDATA_URL": wikidata.url,
            "HOLDFAST_LINKER_SPACING_SECONDS": "0",
            "HOLDFAST_LINKER_BATCH_WAIT_SECONDS": "0.005",
            "HOLDFAST_LINKER_CONCURRENCY": "20",
            "HOLDFAST_HTTP_USER_AGENT": AGENT,
            "HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "true",
            "HOLDFAST_WORKERS": "1",
        }
        finished = await asyncio.to_thread(measured, *words, settings=settings)
    assert finished.returncode == 0, finished.stderr + finished.stdout
    assert "precision of accepted       1.0000  (at least 0.99: good)" in finished.stdout
    assert "entries                         40" in finished.stdout
