"""Delays that are longer than an item waits for a gate, as those of the real sources are: after
every request the walk gives its place up, and still comes forward."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from holdfast.kernel import Store
from holdfast.model import JobState
from pipelines.regulations.tests.desk import OPEN_GATES, Desk, hasty_sources
from pipelines.regulations.tests.world import (
    GAZETTE,
    TAX,
    TAX_PAGES,
    RegulatoryWorld,
    answered_twice,
)
from tests.world import redirect

pytestmark = pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
GATE = "[source.gate]\nmin_delay_seconds = 0.04\nmax_delay_seconds = 0.05\nconcurrency = 1\n"


@pytest.fixture
async def small_world() -> AsyncIterator[RegulatoryWorld]:
    async with RegulatoryWorld(issues=2, acts=1) as made:
        yield made


@pytest.fixture
async def slow_desk(store: Store, small_world: RegulatoryWorld, tmp_path: Path) -> Desk:
    made = Desk(store, small_world, tmp_path, sources=hasty_sources().replace(OPEN_GATES, GATE))
    await made.switch(True)
    return made


async def test_walk_that_waits_after_every_request_reads_each_sitemap_once(slow_desk: Desk) -> None:
    world = slow_desk.world
    world.replaced[world.issues[0].eli(1)] = redirect(
        f"http://{GAZETTE}{world.issues[0].legacy(1)}"
    )
    (job_id,) = await slow_desk.order()
    await slow_desk.work(gate_wait=0.0)
    assert (await slow_desk.store.reads.job(job_id)).state is JobState.DONE
    assert (await slow_desk.counters(job_id)).done == 2
    assert answered_twice(world.visits) == []
    assert await slow_desk.fetch("select count(*) from regulations_indexes") == [(0,)]
    counts = await slow_desk.counts(job_id)
    assert (counts["sitemaps.known"], counts["sitemaps_left_out.NOT_WANTED"]) == (3, 1)


async def test_listing_that_waits_after_every_page_is_read_once(slow_desk: Desk) -> None:
    (job_id,) = await slow_desk.order("tax", date_from="2024-01-01")
    await slow_desk.work(gate_wait=0.0)
    assert (await slow_desk.store.reads.job(job_id)).state is JobState.DONE
    targets = [visit.request.target for visit in slow_desk.world.visits_to(TAX)]
    assert len(targets) == len(set(targets)) == 2 + TAX_PAGES  # robots.txt, and one page too many
