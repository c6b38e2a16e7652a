"""Carries out a person's decision about an entry, in the transaction that writes it.

choose "Q42"             the entry is Q42, a candidate or not
reject                   it is none of them, and no item that exists
edit {"reject": "Q42"}   it is not Q42; the entry still waits for a decision
revoke                   what matching found counts again
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from holdfast.errors import UserError
from holdfast.pipeline import Row, Tx
from holdfast.rulings import Ruled, RulingKind
from holdfast_linker.entries import item_of
from holdfast_linker.options import WIKIDATA, rules_of
from holdfast_linker.tasks import CandidateStatus, TaskState

_ID_CHARACTERS = 200
_NOTHING: dict[str, Any] = {"item": None, "label": None, "description": None, "score": None}


async def decide(tx: Tx, ruled: Ruled) -> Mapping[str, Any]:
    """Returns the values of columns that take precedence over what matching found."""
    key = {"job_id": ruled.job.id, "seq": ruled.seq}
    tasks = await tx.fetch("linker_task", key)
    if not tasks:
        raise UserError(
            f"entry {ruled.seq} has not been matched yet", "Decide about it when it has."
        )
    match ruled.kind:
        case RulingKind.CHOOSE:
            return await _accept(tx, ruled, key, await _provider(tx, ruled, tasks[0]))
        case RulingKind.REJECT:
            return await _none(tx, ruled, key)
        case RulingKind.EDIT:
            return await _reject(tx, ruled, key)
    return await _revoke(tx, ruled, key)


async def _provider(tx: Tx, ruled: Ruled, task: Row) -> str:
    """Returns the project's provider: a standing job has entries of several projects."""
    for project in await tx.fetch("linker_project", {"id": task["project_id"] or 0}):
        return str(project["provider"])
    return rules_of(ruled.job.options).provider


async def _accept(tx: Tx, ruled: Ruled, key: dict[str, Any], provider: str) -> Mapping[str, Any]:
    item_id = checked_item(_item_in(ruled.value, "item"), provider)
    await _know(tx, ruled, key, provider, item_id)
    candidate = await _candidate(tx, key, item_id)
    await _mark(tx, ruled, key, item_id, CandidateStatus.ACCEPTED, CandidateStatus.REJECTED)
    changes = {
        "item": item_id,
        "label": candidate["label"],
        "description": candidate["description"],
        "score": candidate["score"],
    }
    await _review(tx, ruled, key, item_id, candidate["score"])
    return {"state": str(TaskState.REVIEWED), **changes}


async def _none(tx: Tx, ruled: Ruled, key: dict[str, Any]) -> Mapping[str, Any]:
    await _mark(tx, ruled, key, "", CandidateStatus.REJECTED, CandidateStatus.REJECTED)
    await _review(tx, ruled, key, None, None)
    return {"state": str(TaskState.REVIEWED), **_NOTHING}


async def _reject(tx: Tx, ruled: Ruled, key: dict[str, Any]) -> Mapping[str, Any]:
    item_id = _item_in(ruled.value, "reject")
    await _candidate(tx, key, item_id)
    await _mark(tx, ruled, key, item_id, CandidateStatus.REJECTED, None)
    state = {"state": str(TaskState.AWAITING_REVIEW), "item": None, "score": None}
    await tx.take("linker_reopen_task", key | state)
    return {"state": str(TaskState.AWAITING_REVIEW), **_NOTHING}


async def _revoke(tx: Tx, ruled: Ruled, key: dict[str, Any]) -> Mapping[str, Any]:
    result = ruled.result if isinstance(ruled.result, dict) else {}
    item_id = result.get("item")
    suggested = CandidateStatus.SUGGESTED
    await _mark(tx, ruled, key, item_id or "", CandidateStatus.ACCEPTED, suggested)
    state = {
        "state": result.get("state", str(TaskState.FAILED)),
        "item": item_id,
        "score": result.get("score"),
    }
    await tx.take("linker_reopen_task", key | state)
    return {}


async def _review(
    tx: Tx, ruled: Ruled, key: dict[str, Any], item_id: str | None, score: float | None
) -> None:
    state = {"state": str(TaskState.REVIEWED), "item": item_id, "score": score}
    await tx.take("linker_review_task", key | state | {"reviewer": ruled.author})


async def _know(tx: Tx, ruled: Ruled, key: dict[str, Any], provider: str, item_id: str) -> None:
    """Makes an item that was added by hand a candidate, with its label if that is known."""
    known = await tx.fetch("linker_entity", {"space": provider, "id": item_id})
    label, description = (known[0]["label"], known[0]["description"]) if known else (item_id, "")
    given = ruled.value.get("label") if isinstance(ruled.value, dict) else None
    await tx.take(
        "linker_add_candidate",
        key
        | {
            "item": item_id,
            "label": label if known or not given else str(given)[:250],
            "description": description,
            "reviewer": ruled.author,
        },
    )


async def _mark(
    tx: Tx,
    ruled: Ruled,
    key: dict[str, Any],
    item_id: str,
    status: CandidateStatus,
    others: CandidateStatus | None,
) -> None:
    marks = {
        "item": item_id,
        "status": str(status),
        "others": None if others is None else str(others),
        "reviewer": None if ruled.kind is RulingKind.REVOKE else ruled.author,
    }
    await tx.take("linker_mark_candidates", key | marks)


async def _candidate(tx: Tx, key: dict[str, Any], item_id: str) -> Row:
    for row in await tx.fetch("linker_candidates_of", key):
        if row["item"] == item_id:
            return row
    raise UserError(f"{item_id} is not a candidate of entry {key['seq']}")


def _item_in(value: Any, name: str) -> str:
    """Parses an item from `"Q42"` or `{"item": "Q42"}`."""
    item_id = value.get(name) if isinstance(value, dict) else value
    if not isinstance(item_id, str) or not item_id.strip():
        raise UserError("the decision names no item", f'Give it as {{"{name}": "Q42"}}.')
    return item_id.strip()


def checked_item(text: str, provider: str) -> str:
    """Returns the id of an item; Wikidata's may be given as an address."""
    item_id = item_of(text) if provider == WIKIDATA else text
    if item_id is None or not item_id.isprintable() or len(item_id) > _ID_CHARACTERS:
        raise UserError(f"{text[:50]!r} is not an item id", "One is a Q and a number, such as Q42.")
    return item_id
