"""The message type entity.match: rows of other programs, and the task form."""

from __future__ import annotations

import copy
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest
import structlog

from holdfast.cli.broker_composition import accepting, trusting
from holdfast.clock import SystemClock
from holdfast.configuration import load_settings
from holdfast.consumers import BadMessage, ConsumerTools, Incoming
from holdfast.messaging.signing import ZEROS, sign
from holdfast.model import ItemStatus
from holdfast.pipelines import linker
from holdfast.pipelines.linker.consuming import consumers
from holdfast.pipelines.linker.projects import ProjectRules, add_project
from holdfast.pipelines.linker.tasks import task_id
from tests.pipelines.linker.scene import OWNER, LinkerScene
from tests.pipelines.linker.test_envelope import EXAMPLE

PAGE = (Path(linker.__file__).parent / "docs" / "messages.md").read_text()
KEY = "a key that is long enough to be one"


def ours(**body: Any) -> dict[str, Any]:
    return {"header": {"type": "entity.match", "version": 1}, "body": body}


async def _accept(scene: LinkerScene, content: Any, message_id: str = "m1") -> bool:
    """Accepts it with no key set."""
    return await accept_bytes(scene, orjson.dumps(content), message_id, key="")


async def accept_bytes(scene: Any, payload: bytes, message_id: str, key: str = KEY) -> bool:
    settings = load_settings({"HOLDFAST_OWNER": OWNER, "HOLDFAST_MESSAGE_KEY": key})
    log, clock = structlog.get_logger(), SystemClock()
    tools = ConsumerTools(
        scene.pipeline, _no_flag, _no_file, clock, log, OWNER, trusting(settings, clock)
    )
    (consumer,) = consumers(tools)
    accept = accepting(settings, scene.store, scene.pipeline, consumer, log)
    message = Incoming("linker.match", payload, {}, message_id)
    return bool(await accept(message_id, "linker.match", lambda tx: consumer.take(tx, message)))


async def _no_flag(name: str) -> Any:
    raise AssertionError(name)


async def _no_file(bucket: str, key: str) -> AsyncIterator[bytes]:
    raise AssertionError(key)
    yield b""


def signed(content: dict[str, Any], key: str, message_id: str) -> bytes:
    header = {"created_at": SystemClock().now().isoformat(), **content["header"]}
    header.setdefault("job_id" if isinstance(header["version"], str) else "message_id", message_id)
    return sign(orjson.dumps({**content, "header": {**header, "signature": ZEROS}}), key)


async def test_signed_message_adds_to_the_project_of_any_owner(scene: LinkerScene) -> None:
    project = await scene.control.change(add_project("ann", "hers", ProjectRules(auto_accept=101)))
    message = ours(project_id=project.id, owner="ann", row={"name": "Douglas Adams"})
    payload = signed(message, KEY, "signed")
    assert await accept_bytes(scene, payload, "signed")
    assert not await accept_bytes(scene, payload, "signed"), "a second delivery does nothing"
    late = copy.deepcopy(message)
    late["header"]["created_at"] = "2020-01-01T00:00:00Z"
    unsigned = ours(project_id=project.id, row={"name": "Douglas Adams"})
    refused = [
        signed(message, "another key, of enough characters", "refused 0"),
        signed(late, KEY, "refused 1"),
        orjson.dumps(message),
        orjson.dumps(unsigned),
        signed(ours(project_id=project.id, owner="ben", row={"name": "x"}), KEY, "refused 4"),
        payload,  # a copy under another id
    ]
    for number, content in enumerate(refused):
        with pytest.raises(BadMessage) as bad:
            await accept_bytes(scene, content, f"refused {number}")
        assert bad.value.code == "NOT_ALLOWED", content
    await scene.work()
    assert await scene.fetch("select project_id, state from linker_tasks") == [
        (project.id, "awaiting_review")
    ]
    assert await scene.fetch("select owner_id from jobs where standing = 1") == [("ann",)]


async def test_row_of_a_message_is_matched_once_in_its_project(scene: LinkerScene) -> None:
    project = await scene.project(auto_accept=101.0)
    message = ours(project_id=project.id, row={"id": "A-17", "name": "Douglas Adams"})
    assert await _accept(scene, message)
    assert not await _accept(scene, message), "a second delivery does nothing"
    await scene.work()
    assert await scene.fetch("select project_id, key, name, state from linker_tasks") == [
        (project.id, "A-17", "Douglas Adams", "awaiting_review")
    ]


async def test_documented_messages_are_accepted(scene: LinkerScene) -> None:
    row, unsigned, task = map(orjson.loads, re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL))
    mine = await scene.project(auto_accept=101.0)
    hers = await scene.control.change(add_project("ann", "hers", ProjectRules(auto_accept=101)))
    job = await scene.matched([{"born": "1952"}], project=mine.id)
    row["body"]["project_id"] = mine.id
    assert await _accept(scene, row, "row")
    unsigned["body"]["project_id"] = hers.id
    unsigned["header"]["created_at"] = SystemClock().now().isoformat()
    payload = sign(orjson.dumps(unsigned), KEY)
    assert await accept_bytes(scene, payload, unsigned["header"]["message_id"])
    task["body"] |= {"project_id": mine.id, "task_id": task_id(job.id, 1)}
    assert await _accept(scene, task, "task")
    await scene.work()
    assert sorted(
        await scene.fetch("select project_id, state from linker_tasks where project_id is not null")
    ) == sorted([(mine.id, "awaiting_review"), (mine.id, "failed"), (hers.id, "awaiting_review")])


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
    shown = "select state from linker_tasks where project_id is not null order by job_id, seq"
    states = [("auto_confirmed",), ("failed",)]
    assert await scene.fetch(shown) == states, "it failed again, in one task"
    await scene.control.reprocess(job.id, [ItemStatus.ERROR])
    await scene.work()
    assert await scene.fetch(shown) == states, "the job that it came from makes no second one"
    with pytest.raises(BadMessage, match="there is no project 999"):
        await _accept(scene, message(2, 999), "nowhere")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_messages_that_cannot_be_right_become_dead_letters(scene: LinkerScene) -> None:
    project = await scene.project()
    wrong = [
        ([], "MALFORMED"),
        ({"header": {"type": "entity.match", "version": 2}, "body": {}}, "UNKNOWN_VERSION"),
        ({"header": {"type": "entity.forget", "version": 1}, "body": {}}, "UNKNOWN_TYPE"),
        (ours(project_id="3", row={"name": "x"}), "BAD_BODY"),
        (ours(project_id=project.id, row={}), "BAD_BODY"),
        (ours(project_id=project.id, row={"born": "1952"}), "BAD_BODY"),
        (ours(project_id=project.id, row={"name": "x"}, colour="red"), "BAD_BODY"),
        ({**EXAMPLE, "header": {**EXAMPLE["header"], "version": "2.0"}}, "UNKNOWN_VERSION"),
    ]
    for number, (content, code) in enumerate(wrong):
        with pytest.raises(BadMessage) as bad:
            await _accept(scene, content, f"wrong {number}")
        assert bad.value.code == code, content
