"""Retry-After binds every process: seen from the log of the server that said it."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from tests.chaos import polite
from tests.chaos.children import Child
from tests.chaos.scene import Scene, finish
from tests.world import Answer, Request, World

POLITE = Path(polite.__file__)
ITEMS = 120
REFUSES_EACH = 40
WAIT_SECONDS = 2
#: For what was on the wire when the reply was read, and for the commit that tells the others.
ON_THE_WIRE_SECONDS = 0.25
SETTINGS = {
    "HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "true",
    "HOLDFAST_HTTP_SPACING_SECONDS": "0.02",
    "HOLDFAST_CLAIM_MAX": "20",
}


@pytest.mark.parametrize("status", [429, 503])
async def test_no_process_asks_a_server_that_told_one_of_them_to_wait(
    scene: Scene, status: int
) -> None:
    answered = 0

    def answer(_request: Request) -> Answer:
        nonlocal answered
        answered += 1
        if answered % REFUSES_EACH:
            return Answer(200, b"fine")
        return Answer(status, b"not now", {"Retry-After": str(WAIT_SECONDS)})

    async with World() as world:
        world.on("/page", answer)
        await asyncio.to_thread(_ask_for_all, scene, world.url("/page"))
        refusals = [visit for visit in world.visits if _status(visit.answer) == status]
        assert len(refusals) >= ITEMS // REFUSES_EACH
        early = [
            round(visit.started_at - refusal.finished_at, 3)
            for refusal in refusals
            for visit in world.visits
            if refusal.finished_at is not None
            if ON_THE_WIRE_SECONDS < visit.started_at - refusal.finished_at < WAIT_SECONDS
        ]
        assert early == []


def _status(answer: object) -> int | None:
    return answer.status if isinstance(answer, Answer) else None


def _ask_for_all(scene: Scene, url: str) -> None:
    table = scene.table([url] * ITEMS)
    taken = scene.run("run", POLITE, table, "--no-work", "--new")
    found = re.search(r"Job (\d+)", taken.said())
    assert found, taken.said()
    if scene.is_fleet:
        scene.start("relay")
    only = [] if scene.is_fleet else ["--job", found[1]]
    workers: list[Child] = [
        scene.start("work", POLITE, *only, "--until-idle", **SETTINGS) for _ in range(2)
    ]
    for worker in workers:
        finish(worker)
    scene.assert_exact(int(found[1]), done=ITEMS)
