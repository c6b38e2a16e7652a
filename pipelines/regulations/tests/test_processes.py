"""Worker processes on real hosts of the loopback network: the world's own log proves that they are
polite, and that a killed one fetches nothing twice."""

from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest

from pipelines.regulations.tests.world import (
    FINA,
    GAZETTE,
    TAX,
    RegulatoryWorld,
    answered_twice,
    assert_never_asked,
    assert_polite,
    gaps,
)
from tests.command import HoldfastCommand

T = TypeVar("T")
SPACING = 0.6
#: The gate spaces the moments at which requests start; the log has those at which they were read.
#: Between the two are a connection, two processes and their turns on the processor: on a busy
#: machine one request may be almost half a second longer on its way than the next. Most are not, so
#: for most the tolerance is that of an idle machine; and however many are looked at together, they
#: are never ahead by more than one was late. Processes that did not share a gate would come four
#: times as close.
TOLERANCE, MOSTLY = 0.45, 0.05
GATE = f"""
[source.gate]
min_delay_seconds = {SPACING}
max_delay_seconds = {SPACING + 0.1}
concurrency = 1
"""
LANES = """
[[source]]
slug = "gazette-daily"
name = "Narodne novine"
hosts = ["narodne-novine.nn.hr"]
verified = 2026-01-11
mode = "archive"
include = ['/dnevno/']
[source.archive]
first_year = 2000
empty_years = 100
year_url = "http://narodne-novine.nn.hr/dnevno/{year}"
"""


class Office:
    """A world in a thread of its own, and commands on one database."""

    def __init__(self, url: str, folder: Path, world: RegulatoryWorld) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever)
        self._thread.start()
        self.world = world
        self.run(world.__aenter__())
        self.sources = folder / "sources.toml"
        self.sources.write_text(self._sources())
        settings = {
            "HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "true",
            "HOLDFAST_REGULATIONS_SOURCES": str(self.sources),
            "HOLDFAST_SWEEP_SECONDS": "0.5",
            "HOLDFAST_FLUSH_SECONDS": "0.02",
            "HOLDFAST_LOCK_FLOOR_MS": "3000",
            "HOLDFAST_LOCK_CAP_MS": "3000",
        }
        self.command = HoldfastCommand(url, folder, settings)

    def _sources(self) -> str:
        from pipelines.regulations.tests.world import SOURCES

        head, *tables = (SOURCES + LANES).split("[[source]]")
        return self.world.sources(head + "".join(f"[[source]]{each}\n{GATE}" for each in tables))

    def run(self, task: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(task, self._loop).result(60)

    def holdfast(self, *words: str) -> str:
        done = self.command.run(*words, timeout=90)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def close(self) -> None:
        self.command.close()
        self.run(self.world.__aexit__(None, None, None))
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def until(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        async def wait() -> None:
            async with asyncio.timeout(seconds):
                while not condition():
                    await asyncio.sleep(0.02)

        self.run(wait())


@pytest.fixture
def office(database_url: str, tmp_path: Path) -> Iterator[Office]:
    made = Office(database_url, tmp_path, RegulatoryWorld(issues=5, acts=2, addresses=True))
    made.world.retry_after = 1
    made.holdfast("flag", "set", "regulations_enabled", "on")
    yield made
    made.close()


def daily(world: RegulatoryWorld) -> None:
    """An archive on the gazette's own host, for the daily lane."""
    from tests.world import text_answer

    links = "".join(f'<a href="/dnevno/akt-{n}">n</a>' for n in range(6))
    world.daily = text_answer(f"<html><body>{links}</body></html>", 200, "text/html")


def _most_ahead(between: list[float]) -> float:
    """How many seconds a run of requests, of any length, takes less than its distances allow."""
    ahead = most = 0.0
    for gap in between:
        ahead = max(0.0, ahead + SPACING - gap)
        most = max(most, ahead)
    return most


def test_four_processes_and_both_lanes_are_polite(office: Office) -> None:
    world = office.world
    world.refusals[world.issues[1].legacy(2)] = 1
    daily(world)
    for words in (
        ("--source", "gazette"),
        ("--source", "tax", "--max-urls", "8"),
        ("--source", "fina", "--mode", "pagination", "--max-urls", "6"),
        ("--source", "gazette-daily", "--sentinel"),
    ):
        office.holdfast("regulations", "backfill", "--no-work", *words)
    office.holdfast("work", "regulations", "--processes", "4", "--until-idle")
    for name in (GAZETTE, TAX, FINA):
        visits = world.visits_to(name)
        assert_polite(visits, spacing=SPACING, at_once=1, tolerance=TOLERANCE)
        close = [gap for gap in gaps(visits) if gap < SPACING - MOSTLY]
        assert len(close) <= len(visits) // 4, close
        assert _most_ahead(gaps(visits)) <= TOLERANCE, gaps(visits)
    assert_never_asked(world.visits_to(GAZETTE), lambda path: path.startswith("/oglasi"))
    assert_never_asked(world.visits_to(FINA), lambda path: path.startswith("/media"))
    gazette = [visit.request.path for visit in world.visits_to(GAZETTE)]
    places = [at for at, path in enumerate(gazette) if path.startswith("/dnevno/akt-")]
    assert len(places) == 6
    backfill = [at for at, path in enumerate(gazette) if path.startswith(("/eli/", "/clanci/"))]
    assert len(backfill) == 11  # ten acts, one of which was refused once
    # Not the first of all: it was made last, and its pages have to be found first.
    assert sum(places) / len(places) < sum(backfill) / len(backfill)
    # Also not the index, where the walk gave way to the other lane.
    assert answered_twice(world.visits) == []


def test_killed_process_fetches_nothing_twice_and_caps_hold(office: Office) -> None:
    world = office.world
    office.holdfast(
        "regulations", "backfill", "--no-work", "--source", "gazette", "--max-urls", "8"
    )
    first = office.command.start("work", "regulations", "--until-idle")
    office.until(lambda: len(acts(world)) >= 3)
    first.send_signal(signal.SIGKILL)
    first.wait(20)
    before = acts(world)
    office.holdfast("work", "regulations", "--processes", "2", "--until-idle")
    fetched = acts(world)
    # What was in flight or not yet settled when the process died may come again; nothing else.
    again = [path for path in set(fetched) if fetched.count(path) > 1]
    assert len(set(fetched)) == 8
    assert set(again) <= set(before[-2:])
    out = office.holdfast("jobs", "--json")
    assert '"DONE"' in out


def acts(world: RegulatoryWorld) -> list[str]:
    paths = [visit.request.path for visit in world.visits_to(GAZETTE)]
    return [path for path in paths if path.startswith(("/eli/", "/clanci/"))]


def test_dry_run_prints_its_counts_and_stores_nothing(office: Office) -> None:
    words = ("--source", "tax", "--mode", "pagination", "--max-urls", "500", "--dry-run")
    out = office.holdfast("regulations", "backfill", *words)
    assert out.splitlines() == [
        "[backfill] DRY RUN - no jobs will be queued",
        "[backfill] Discovered 60 URLs from tax",
        "[backfill] Would queue 60 new items (0 already exist)",
    ]
    assert office.holdfast("jobs", "--json").strip() == "[]"
    assert_polite(office.world.visits_to(TAX), spacing=SPACING, at_once=1, tolerance=TOLERANCE)
