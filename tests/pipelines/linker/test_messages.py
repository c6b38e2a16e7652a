"""The message type entity.match: rows of other programs, and document 002's own form."""

from __future__ import annotations

import copy
from functools import partial
from typing import Any

import orjson
import pytest
import structlog

from holdfast.cli.broker_composition import accepting
from holdfast.consumers import BadMessage, Incoming, QueueConsumer
from holdfast.pipelines.linker.consuming import take
from holdfast.pipelines.linker.tasks import task_id
from holdfast.settings import load_settings
from tests.pipelines.linker.scene import OWNER, LinkerScene
from tests.pipelines.linker.test_envelope import EXAMPLE
from tests.store.checks import execute


def _incoming(content: Any, message_id: str = "m1") -> Incoming:
    return Incoming("linker.match", orjson.dumps(content), {}, message_id)


def _ours(**body: Any) -> dict[str, Any]:
    return {"header": {"type": "entity.match", "version": 1}, "body": body}


async def _accept(scene: LinkerScene, content: Any, message_id: str = "m1") -> bool:
    await scene.control.open(scene.pipeline, {})
    settings = load_settings({"HOLDFAST_OWNER": OWNER})
    log = structlog.get_logger()
    own = partial(take, owner=OWNER)
    spec = QueueConsumer("linker.match", own)
    accept = accepting(settings, scene.store, scene.pipeline, spec, log)
    message = _incoming(content, message_id)
    return bool(await accept(message_id, "linker.match", lambda tx: own(tx, message)))


async def test_row_of_a_message_is_matched_once_in_its_project(scene: LinkerScene) -> None:
    project = await scene.project(auto_accept=101.0)
    message = _ours(project_id=project.id, row={"id": "A-17", "name": "Douglas Adams"})
    assert await _accept(scene, message)
    assert not await _accept(scene, message), "a second delivery does nothing"
    await scene.work()
    assert await scene.fetch("select project_id, key, name, state from linker_tasks") == [
        (project.id, "A-17", "Douglas Adams", "awaiting_review")
    ]


async def test_document_message_tries_a_failed_task_again(scene: LinkerScene) -> None:
    project = await scene.project()
    rows = [{"name": "Douglas Adams", "born": "1952-03-11", "type": "Q5"}, {"born": "1952"}]
    job = await scene.matched(rows, project=project.id)

    def message(seq: int, project_id: int = project.id) -> dict[str, Any]:
        asked = copy.deepcopy(EXAMPLE)
        asked["body"] |= {"project_id": project_id, "task_id": task_id(job.id, seq)}
        return asked

    for number, seq in enumerate((1, 99)):
        assert await _accept(scene, message(seq), f"done {number}")
    assert await scene.fetch("select count(*) from items") == [(2,)], "done or gone: left alone"
    assert await _accept(scene, message(2), "failed")
    await scene.work()
    states = await scene.fetch("select state from linker_tasks order by job_id, seq")
    assert states == [("auto_confirmed",), ("failed",)], "it failed again, in one task"
    with pytest.raises(BadMessage, match="there is no project 999"):
        await _accept(scene, message(2, 999), "nowhere")


async def test_message_does_nothing_to_a_project_of_another_owner(scene: LinkerScene) -> None:
    """They are not signed. A failed task of somebody else was dropped, and its entry lost."""
    project = await scene.project()
    job = await scene.matched([{"born": "1952"}], project=project.id)
    await execute(scene.store, "update linker_projects set owner_id = 'somebody'")
    asked = copy.deepcopy(EXAMPLE)
    asked["body"] |= {"project_id": project.id, "task_id": task_id(job.id, 1)}
    row = _ours(project_id=project.id, row={"name": "Douglas Adams"})
    for number, content in enumerate((asked, row)):
        with pytest.raises(BadMessage, match="there is no project"):
            await _accept(scene, content, f"foreign {number}")
    states = await scene.fetch("select project_id, state from linker_tasks")
    assert states == [(project.id, "failed")]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_messages_that_cannot_be_right_become_dead_letters(scene: LinkerScene) -> None:
    project = await scene.project()
    wrong = [
        ([], "MALFORMED"),
        ({"header": {"type": "entity.match", "version": 2}, "body": {}}, "UNKNOWN_VERSION"),
        ({"header": {"type": "entity.forget", "version": 1}, "body": {}}, "UNKNOWN_TYPE"),
        (_ours(project_id="3", row={"name": "x"}), "BAD_BODY"),
        (_ours(project_id=project.id, row={}), "BAD_BODY"),
        (_ours(project_id=project.id, row={"born": "1952"}), "BAD_BODY"),
        (_ours(project_id=project.id, row={"name": "x"}, colour="red"), "BAD_BODY"),
        ({**EXAMPLE, "header": {**EXAMPLE["header"], "version": "2.0"}}, "UNKNOWN_VERSION"),
    ]
    for number, (content, code) in enumerate(wrong):
        with pytest.raises(BadMessage) as bad:
            await _accept(scene, content, f"wrong {number}")
        assert bad.value.code == code, content
