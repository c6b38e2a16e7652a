"""Every transaction is stopped at every point: nothing is half done, and the next try does it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast.kernel import Store, open_store
from tests.store.all_scenarios import SCENARIOS, Scenario
from tests.store.checks import assert_all_sound
from tests.store.fault_points import fault_points

POINTS = fault_points()


class Stop(Exception):
    """The process was stopped here."""


class Fault:
    """Stops one verb at one of its points, once, and remembers which points it came to."""

    def __init__(self) -> None:
        self.verb = ""
        self.point: str | None = None
        self.passed: set[str] = set()

    def __call__(self, verb: str, query: str) -> None:
        if verb != self.verb:
            return
        self.passed.add(query)
        if query == self.point:
            self.point = None
            raise Stop(f"{verb} at {query}")


@pytest.fixture
def fault() -> Fault:
    return Fault()


@pytest.fixture
async def faulty_store(database_url: str, fault: Fault) -> AsyncIterator[Store]:
    opened = await open_store(database_url, fault=fault)
    yield opened
    await opened.close()


def test_points_are_read_from_the_source() -> None:
    assert {"settle", "claim", "ingest", "create", "cancel", "reprocess", "complete"} <= set(POINTS)
    assert POINTS["settle"] >= {
        "settle_part", "settle_rest", "copy outcomes", "replace_outcomes", "add_attempts",
        "add_range", "count", "add_decision", "commit", "committed",
    }  # fmt: skip
    assert POINTS["claim"] >= {
        "lease_ranges", "add_leased_range", "cut_range",
    }  # fmt: skip
    assert POINTS["lose"] >= {
        "free_range", "quarantine_item", "add_dead_letter", "count", "drop_range",
        "drop_streams_of_worker", "free_exports_of", "drop_duties",
    }  # fmt: skip
    assert POINTS["ingest"] >= {
        "advance_stream", "add_stream_page", "copy items", "add_range", "add_keys", "move_keys",
        "count", "discover_job",
    }  # fmt: skip
    assert sum(map(len, POINTS.values())) > 100


def test_every_verb_has_a_scenario() -> None:
    assert {scenario.verb for scenario in SCENARIOS} == set(POINTS)


@pytest.mark.exhaustive(keep=16)
@pytest.mark.parametrize("verb", sorted(POINTS))
async def test_verb_that_is_stopped_anywhere_is_done_by_the_next_try(
    store: Store, faulty_store: Store, fault: Fault, verb: str
) -> None:
    unreached = set(POINTS[verb])
    for scenario in SCENARIOS:
        if scenario.verb == verb:
            points = await _points_of(store, faulty_store, fault, scenario)
            for point in sorted(points):
                await _stop_at(store, faulty_store, fault, scenario, point)
            unreached -= points
    assert not unreached, "no scenario comes to these points"


async def _points_of(
    store: Store, faulty_store: Store, fault: Fault, scenario: Scenario
) -> set[str]:
    state = await scenario.prepare(store)
    fault.verb, fault.point, fault.passed = scenario.verb, None, set()
    await scenario.act(faulty_store, state)
    await scenario.check(store, state)
    return fault.passed


async def _stop_at(
    store: Store, faulty_store: Store, fault: Fault, scenario: Scenario, point: str
) -> None:
    state = await scenario.prepare(store)
    fault.verb, fault.point = scenario.verb, point
    with pytest.raises(Stop):
        await scenario.act(faulty_store, state)
    if scenario.verb not in ("cancel", "drop_ranges"):
        await assert_all_sound(store)
    await scenario.act(store, state)
    await scenario.check(store, state)
    await assert_all_sound(store)
