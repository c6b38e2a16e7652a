"""Projects that are cancelled or deleted while workers match their entries.

`make chaos` runs every seed on both databases: 4,000 jobs and 320 projects.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
import structlog

from holdfast.cli.composition import file_access
from holdfast.configuration import load_settings
from holdfast.errors import UnfitState
from holdfast.features.deletion.deleter import Deleter
from holdfast.model import JobState
from pipelines.linker.tests.entity_world import EntityWorld
from pipelines.linker.tests.linker_site import LinkerSite
from pipelines.linker.tests.scene import HASTE, LinkerScene
from tests.engine.one_worker import working
from tests.store.checks import fetch

ROUNDS = 10
NAMES = ("Douglas Adams", "Marie Curie", "Albert Einstein", "William Shakespeare", "Xq Zzyx")
PROJECTS = 4
PROJECT_TABLES = (
    "linker_projects", "linker_datasets", "linker_tasks", "linker_candidates", "linker_calls",
    "jobs", "items", "outcomes", "ranges", "files",
)  # fmt: skip
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


@pytest.fixture
def linker(database_url: str, tmp_path: Path, entity_world: EntityWorld) -> Iterator[LinkerSite]:
    with LinkerSite(database_url, tmp_path, entity_world) as linker:
        yield linker


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("seed", range(40))
def test_nothing_is_left_of_projects_that_were_deleted_while_they_were_matched(
    linker: LinkerSite, seed: int
) -> None:
    rng = random.Random(seed)
    ann = linker.person("ann")
    for number in range(PROJECTS):
        made = ann.post("/api/projects", json={"name": f"project {number}"}).json()
        at = f"/api/projects/{made['id']}"
        rows = [{"name": rng.choice(NAMES), "born": str(1900 + n)} for n in range(20)]
        linker.dataset(ann, made["id"], rows)
        ann.post(f"{at}/match")
        for _ in range(rng.randrange(6)):
            ann.get(at)
        if rng.random() < 0.3:
            ann.post(f"{at}/cancel")
        assert ann.delete(at).status_code == 202
        assert ann.post(f"{at}/match").status_code == 404

    async def rows_left() -> int:
        store = linker.site.parts.store
        queries = [f"select count(*) from {table}" for table in PROJECT_TABLES]
        return sum([(await fetch(store, query))[0][0] for query in queries])

    linker.eventually(lambda: linker.site.run(rows_left()) == 0)


@pytest.mark.exhaustive(keep=2)
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
                with suppress(UnfitState):  # it ended at that moment
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
