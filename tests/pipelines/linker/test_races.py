"""Projects that are cancelled or deleted while workers match their entries."""

from __future__ import annotations

import asyncio
import random

import pytest
import structlog

from holdfast.cli.composition import file_access
from holdfast.engine.deletion import Deleter
from holdfast.model import JobState
from holdfast.settings import load_settings
from tests.engine.one_worker import working
from tests.pipelines.linker.scene import HASTE, LinkerScene

ROUNDS = 10
NAMES = ("Douglas Adams", "Marie Curie", "Albert Einstein", "William Shakespeare", "Xq Zzyx")
TABLES = ("linker_tasks", "linker_candidates", "linker_calls", "items", "outcomes", "ranges")


async def _counts(scene: LinkerScene, job_id: int) -> dict[str, int]:
    counts = {}
    for table in TABLES:
        query = f"select count(*) from {table} where job_id = :job"
        counts[table] = (await scene.fetch(query, job=job_id))[0][0]
    return counts


async def _somewhere(rng: random.Random) -> None:
    """Some turns of the loop later: at no place in particular."""
    for _ in range(rng.randrange(400)):
        await asyncio.sleep(0)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("seed", range(200))
async def test_nothing_is_left_of_what_was_deleted_or_cancelled(
    scene: LinkerScene, seed: int
) -> None:
    rng = random.Random(seed)
    project = await scene.project()
    files = file_access(load_settings(HASTE))
    deleter = Deleter(scene.store, files.store.delete, structlog.get_logger())
    async with working(scene.store, scene.pipeline, **HASTE):
        for _ in range(ROUNDS):
            rows = [{"name": rng.choice(NAMES), "born": str(1900 + n)} for n in range(40)]
            job_id = await scene.upload(rows, project=project.id)
            await _somewhere(rng)
            if rng.random() < 0.5:
                await deleter.begin(job_id, "tester")
                await deleter.delete(job_id)
                assert set((await _counts(scene, job_id)).values()) == {0}
            elif (await scene.store.reads.job(job_id)).state is JobState.RUNNING:
                await scene.control.cancel(job_id)
                await _assert_nothing_follows(scene, job_id, rng)
    for (job_id,) in await scene.fetch("select distinct job_id from linker_tasks"):
        counts = await _counts(scene, job_id)
        assert counts["items"], "a task without its entry"
        assert counts["linker_tasks"] == counts["outcomes"], counts


async def _assert_nothing_follows(scene: LinkerScene, job_id: int, rng: random.Random) -> None:
    at_cancel = await _counts(scene, job_id)
    await _somewhere(rng)
    assert await _counts(scene, job_id) == at_cancel, "a result after the cancel"
