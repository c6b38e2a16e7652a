"""Takes messages of the type `entity.match`: another program asks for a match.

With a row:    {"header": {"type": "entity.match", "version": 1},
                "body": {"project_id": 3, "row": {"name": "Douglas Adams"}}}
With a task:   {"header": {…, "version": "1.0"}, "body": {"project_id": 3, "task_id": 17, …}}

The row, or the entry of a task that failed, is added to the standing job of the project and matched
by the rules of the project. A task that has a result or a decision stays as it is, and one that is
gone is obsolete: in both cases the message is accepted and nothing happens.

A signed message is accepted for any project; an unsigned one for those of the owner of the
workers.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from holdfast.consumers import (
    BadMessage,
    Binding,
    ConsumerTools,
    Incoming,
    QueueConsumer,
    Topic,
)
from holdfast.errors import BadEnvelope
from holdfast.model import Json, Record
from holdfast.pipeline import Tx
from holdfast_linker.entries import ColumnMapping
from holdfast_linker.envelope import TYPE, is_task_form, to_envelope
from holdfast_linker.guessing import guess_mapping
from holdfast_linker.options import mapping_text
from holdfast_linker.projects import Project, topic_of
from holdfast_linker.saving import OF_MESSAGE
from holdfast_linker.tasks import TaskState, split_task_id

_VERSION = 1
_LARGEST_ID = 2**63 - 1
_MOST_COLUMNS = 200


@dataclass(frozen=True, slots=True)
class Taking:
    """Takes messages for the workers of one owner."""

    tools: ConsumerTools

    async def __call__(self, tx: Tx, message: Incoming) -> Topic | None:
        content = message.json()
        if not isinstance(content, dict):
            raise BadMessage("the message is not an object", "MALFORMED")
        if is_task_form(content):
            try:
                body = to_envelope(content)["body"]
            except BadEnvelope as bad:
                raise BadMessage(bad.reason, bad.code) from None
            project = await self._project(tx, message, content["header"], body)
            records = await _task(tx, project, body)
        else:
            body = _body_of(content)
            project = await self._project(tx, message, content["header"], body)
            records = _row(project, body)
        return Topic(topic_of(project.id), records, project.owner_id)

    async def _project(
        self, tx: Tx, message: Incoming, header: Mapping[str, Any], body: Mapping[str, Any]
    ) -> Project:
        """Returns the project of the message, if its sender may add to it."""
        signature, owner = _text(header, "signature"), _text(body, "owner")
        self.tools.trust(message, signature, owner, _instant(header.get("created_at")))
        named = header.get("message_id", header.get("job_id"))
        if signature is not None and (not named or named != message.message_id):
            # A copy under another id would be accepted again.
            raise BadMessage("its message id is not the one that was signed", "NOT_ALLOWED")
        project = await _project(tx, body.get("project_id"))
        if owner not in (None, project.owner_id):
            raise BadMessage(f"project {project.id} is not {owner[:50]}'s", "NOT_ALLOWED")
        if signature is None and project.owner_id != self.tools.owner:
            raise BadMessage(
                f"only a signed message may add to project {project.id}, which is another owner's",
                "NOT_ALLOWED",
            )
        return project


def _text(part: Mapping[str, Any], name: str) -> str | None:
    value = part.get(name)
    if value is not None and not isinstance(value, str):
        raise BadMessage(f"{name} is not a text", "MALFORMED")
    return value


def _instant(text: Any) -> datetime | None:
    try:
        instant = datetime.fromisoformat(text) if isinstance(text, str) else None
    except ValueError:
        return None
    return instant if instant is None or instant.tzinfo else instant.replace(tzinfo=UTC)


def _body_of(content: Mapping[str, Any]) -> Mapping[str, Any]:
    header, body = content.get("header"), content.get("body")
    if not isinstance(header, dict) or not isinstance(body, dict):
        raise BadMessage("the message needs a header and a body", "MALFORMED")
    if header.get("type") != TYPE:
        raise BadMessage(f"there is no type {str(header.get('type'))[:50]!r}", "UNKNOWN_TYPE")
    if header.get("version") != _VERSION:
        version = str(header.get("version"))[:50]
        raise BadMessage(f"{TYPE} has no version {version}; known: 1", "UNKNOWN_VERSION")
    unknown = sorted(set(body) - {"project_id", "row", "owner"})
    if unknown:
        raise BadMessage(f"body has the unknown field {unknown[0][:50]!r}", "BAD_BODY")
    return body


async def _project(tx: Tx, given: Any) -> Project:
    if isinstance(given, bool) or not isinstance(given, int) or not 0 < given <= _LARGEST_ID:
        raise BadMessage("body.project_id is not an id", "BAD_BODY")
    rows = await tx.fetch("linker_project", {"id": given})
    # Locked: otherwise its deletion would miss what is added now.
    if not rows or not await tx.fetch(
        "linker_own_project", {"id": given, "owner_id": rows[0]["owner_id"]}
    ):
        raise BadMessage(f"there is no project {given}", "NO_PROJECT")
    return Project.of(rows[0])


def _row(project: Project, body: Mapping[str, Any]) -> Sequence[Record]:
    row = body.get("row")
    if not isinstance(row, dict) or not 0 < len(row) <= _MOST_COLUMNS:
        raise BadMessage("body.row is not an object with columns", "BAD_BODY")
    mapping = guess_mapping(list(row))
    if mapping is None:
        raise BadMessage("body.row has neither a name nor an identifier", "BAD_BODY")
    return [_record(project, row, mapping)]


async def _task(tx: Tx, project: Project, body: Mapping[str, Any]) -> Sequence[Record]:
    """Moves the entry of a failed task to the standing job, so that it has one task."""
    job_id, seq = split_task_id(body["task_id"])
    key = {"project_id": project.id, "job_id": job_id, "seq": seq}
    for row in await tx.fetch("linker_task_of", key):
        if row["state"] != TaskState.FAILED:
            continue
        if not await tx.take("linker_move_task", {"job_id": job_id, "seq": seq}):
            continue  # a person has decided about it
        values, mapping = _row_of(orjson.loads(row["entry"]), row["key"])
        return [_record(project, values, mapping)]
    return []


def _record(project: Project, row: Json, mapping: ColumnMapping) -> Record:
    return Record({**row, OF_MESSAGE: project.job_options(mapping_text(mapping), 0)})


def _row_of(entry: Json, key: str) -> tuple[Json, ColumnMapping]:
    """Returns the row that an entry came from, as far as it was used, and what its columns say."""
    row: Json = {"id": key, "name": entry["name"], "aliases": entry["aliases"]}
    columns: dict[str, dict[str, str]] = {}
    for part in ("dates", "identifiers", "properties"):
        columns[part] = {}
        for property_id, text in entry[part]:
            columns[part][property_id] = property_id
            row.setdefault(property_id, []).append(text)
    for property_id in columns["dates"]:
        row[property_id] = row[property_id][0]
    mapping = ColumnMapping(
        id="id",
        name="name",
        aliases=("aliases",),
        all_of_type=entry["type"],
        dates=columns["dates"],
        identifiers=columns["identifiers"],
        properties=columns["properties"],
    )
    return row, mapping


def consumers(tools: ConsumerTools) -> Sequence[QueueConsumer]:
    return [QueueConsumer("linker.match", Taking(tools), [Binding("linker", TYPE, "topic")])]
