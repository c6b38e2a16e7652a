"""A process is killed with SIGKILL right before every write of the store, before and after every
commit; the next process finds nothing half done, and does it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from holdfast.kernel import Store, open_store
from tests.chaos.children import Children
from tests.chaos.doomed import act
from tests.chaos.scene import PATIENCE_SECONDS
from tests.store.all_scenarios import SCENARIOS, Scenario
from tests.store.checks import assert_all_sound
from tests.store.fault_points import fault_points

POINTS = fault_points()
KILLED = -9

#: On PostgreSQL the verbs that move items and jobs; what is one row of a small table is the same
#: statement there, and tests/store stops it at every point on both.
ON_POSTGRES = {"ingest", "claim", "settle", "complete", "reprocess", "cancel", "drop_ranges"}
EACH = [("sqlite", verb) for verb in sorted(POINTS)] + [
    pytest.param("postgres", verb, marks=pytest.mark.postgres) for verb in sorted(ON_POSTGRES)
]


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize(("database_url", "verb"), EACH, indirect=["database_url"])
async def test_process_killed_at_any_write_leaves_nothing_half_done(
    database_url: str, children: Children, verb: str
) -> None:
    left = set(POINTS[verb])
    for number, scenario in enumerate(SCENARIOS):
        if scenario.verb == verb and left:
            for point in sorted(left & await _reached(database_url, scenario)):
                await _kill_at(database_url, children, number, f"{verb}/{point}")
                left.discard(point)
    assert not left, "no process was killed at these points"


async def _reached(url: str, scenario: Scenario) -> set[str]:
    """The points that an undisturbed process passes."""
    passed: set[str] = set()

    def note(verb: str, query: str) -> None:
        if verb == scenario.verb:
            passed.add(query)

    store = await open_store(url)
    watched = await open_store(url, fault=note)
    try:
        state = await scenario.prepare(store)
        await scenario.act(watched, state)
        await scenario.check(store, state)
    finally:
        await store.close()
        await watched.close()
    return passed


async def _kill_at(url: str, children: Children, number: int, point: str) -> None:
    scenario = SCENARIOS[number]
    store = await open_store(url)
    try:
        state = await scenario.prepare(store)
        settings = {"HOLDFAST_DATABASE_URL": url, "HOLDFAST_FAULT": point}
        doomed = children.call(act, number, state, env=settings)
        assert await asyncio.to_thread(doomed.wait, PATIENCE_SECONDS) == KILLED, doomed.said()
        await _take_over(store, scenario, state)
    finally:
        await store.close()


async def _take_over(store: Store, scenario: Scenario, state: Any) -> None:
    if scenario.verb not in ("cancel", "drop_ranges"):
        await assert_all_sound(store)
    await scenario.act(store, state)
    await scenario.check(store, state)
    await assert_all_sound(store)
