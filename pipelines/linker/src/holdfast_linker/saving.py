"""Writes tasks, candidates and entities, in the transaction that settles the entries."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import orjson

from holdfast.model import ItemStatus, Job, Json
from holdfast.pipeline import Settled, Tx
from holdfast_linker.entries import Entry, read_entry
from holdfast_linker.guessing import guess_mapping
from holdfast_linker.knowing import search_keys
from holdfast_linker.names import fold
from holdfast_linker.options import Rules, rules_of
from holdfast_linker.scoring import NAME, TYPE, Ranking, ScoredCandidate
from holdfast_linker.stored_forms import candidate_form, entry_form, field_form
from holdfast_linker.tasks import MOVED, CandidateStatus, TaskState

_MOST_NAMES = 100  # how many names of an entity it can be found by
#: The options of an entry that came as a message: its job is shared by projects.
OF_MESSAGE = "_linker"


@dataclass(frozen=True, slots=True)
class Matched:
    """What `save` needs about an entry besides its result."""

    entry: Entry
    ranking: Ranking
    calls: int


def rules_for(job: Job, row: Mapping[str, Any]) -> Rules:
    return rules_of({**job.options, **(row[OF_MESSAGE] if is_of_message(job, row) else {})})


def is_of_message(job: Job, row: Mapping[str, Any]) -> bool:
    """Whether the row came as a message.

    Only rows of a standing job have options: columns of a file may have any name."""
    return job.standing and isinstance(row.get(OF_MESSAGE), dict)


def entry_of(row: Mapping[str, Any], rules: Rules, seq: int) -> Entry:
    mapping = rules.mapping or guess_mapping(list(row))
    if mapping is None:
        return Entry(key=f"row {seq}", name="")
    return read_entry(dict(row), mapping, seq)


def result_of(entry: Entry, ranking: Ranking, most: int) -> dict[str, Any]:
    """Returns the values of the columns."""
    kept, accepted = ranking.candidates[:most], ranking.accepted
    first = accepted or (kept[0] if kept else None)
    return {
        "id": entry.key,
        "name": entry.name or next(iter(entry.names), ""),
        "state": str(state_of(ranking)),
        "item": accepted.candidate.id if accepted else None,
        "label": accepted.candidate.label if accepted else None,
        "description": accepted.candidate.description if accepted else None,
        "score": first.score if first else None,
        "candidates": "; ".join(f"{c.candidate.id} {c.score:g}" for c in kept),
        "reason": ranking.reason,
    }


def state_of(ranking: Ranking) -> TaskState:
    if ranking.accepted is not None:
        return TaskState.AUTO_CONFIRMED
    return TaskState.AWAITING_REVIEW if ranking.candidates else TaskState.NO_CANDIDATES


async def save(tx: Tx, settled: Sequence[Settled]) -> None:
    """Saves entries, which all belong to one job; those of a standing job may belong to several
    projects."""
    by_rules: dict[Rules, list[Settled]] = {}
    for item in settled:
        by_rules.setdefault(rules_for(item.job, item.row), []).append(item)
    for rules, items in by_rules.items():
        await _save(tx, items, rules)
    calls = sum(item.effects.calls for item in settled if item.effects is not None)
    counts = {"job_id": settled[0].job.id, "entries": len(settled), "calls": calls}
    await tx.take("linker_add_calls", counts)


async def _save(tx: Tx, settled: Sequence[Settled], rules: Rules) -> None:
    job = settled[0].job
    project_id = await _project_id(tx, job, rules)
    if project_id is None and is_of_message(job, settled[0].row):
        return  # its project was deleted; the standing job has entries of other projects
    seqs = [item.seq for item in settled]
    rows = await tx.fetch("linker_reviewed", {"job_id": job.id, "seqs": seqs})
    closed = {row["seq"] for row in rows if row["reviewed_at"] or row["state"] == MOVED}
    rejected = await _rejected(tx, job, [row["seq"] for row in rows])
    tasks = [_task(item, rules, project_id, rejected) for item in settled]
    await tx.take_many("linker_save_tasks", tasks)
    await _save_candidates(tx, [s for s in settled if s.seq not in closed], rules, project_id)
    await _save_entities(tx, settled, rules)
    if project_id is not None and rules.dataset:
        link = {"id": rules.dataset, "project_id": project_id, "job_id": job.id}
        await tx.take("linker_link_dataset", link)


async def _rejected(tx: Tx, job: Job, seqs: Sequence[int]) -> set[tuple[int, str]]:
    """Returns the candidates of these entries that people have rejected."""
    if not seqs:
        return set()
    rows = await tx.fetch("linker_rejected", {"job_id": job.id, "seqs": list(seqs)})
    return {(row["seq"], row["item"]) for row in rows}


async def _project_id(tx: Tx, job: Job, rules: Rules) -> int | None:
    """Returns the job's project.

    A job may name any project; it counts only if it is the owner's."""
    if not rules.project:
        return None
    params = {"id": rules.project, "owner_id": job.owner_id}
    return rules.project if await tx.fetch("linker_own_project", params) else None


def _task(
    item: Settled, rules: Rules, project_id: int | None, rejected: set[tuple[int, str]]
) -> Json:
    if item.status is ItemStatus.DONE:
        entry, ranking = item.effects.entry, item.effects.ranking
        state, reason = str(state_of(ranking)), ranking.reason
        score, linked = item.result["score"], item.result["item"]
        if (item.seq, linked) in rejected:
            state, linked = str(TaskState.AWAITING_REVIEW), None
    else:
        entry, state, score, linked = entry_of(item.row, rules, item.seq), "failed", None, None
        reason = f"{item.code}: {item.message}" if item.code else item.message or str(item.status)
    name = entry.name or next(iter(entry.names), "")
    return {
        "job_id": item.job.id,
        "seq": item.seq,
        "project_id": project_id,
        "key": entry.key,
        "name": name,
        "folded": fold(name),
        "state": state,
        "score": score,
        "item": linked,
        "entry": orjson.dumps(entry_form(entry)).decode(),
        "reason": reason,
    }


async def _save_candidates(
    tx: Tx, settled: Sequence[Settled], rules: Rules, project_id: int | None
) -> None:
    if not settled:
        return
    job_id, seqs = settled[0].job.id, [item.seq for item in settled]
    await tx.take("linker_drop_suggestions", {"job_id": job_id, "seqs": seqs})
    rows: list[Json] = []
    for item in settled:
        if item.effects is None:
            continue
        ranking = item.effects.ranking
        for position, scored in enumerate(ranking.candidates[: rules.candidates], 1):
            accepted = scored is ranking.accepted
            status = CandidateStatus.ACCEPTED if accepted else CandidateStatus.SUGGESTED
            rows.append(
                {
                    "job_id": job_id,
                    "seq": item.seq,
                    "project_id": project_id,
                    "position": position,
                    "status": str(status),
                    **_candidate(scored, rules),
                }
            )
    if rows:
        await tx.take_many("linker_save_candidates", rows)


def _candidate(scored: ScoredCandidate, rules: Rules) -> Json:
    candidate = scored.candidate
    matched = [f for f in scored.matched(rules.thresholds) if f not in (NAME, TYPE)]
    return {
        "item": candidate.id,
        "label": candidate.label,
        "description": candidate.description,
        "score": scored.score,
        "fields": orjson.dumps([field_form(field) for field in scored.fields]).decode(),
        "matched": orjson.dumps(matched).decode(),
    }


async def _save_entities(tx: Tx, settled: Sequence[Settled], rules: Rules) -> None:
    """Saves entities in one order, so that two workers do not wait for each other's rows in a
    circle."""
    candidates = {
        scored.candidate.id: scored.candidate
        for item in settled
        if item.effects is not None
        for scored in item.effects.ranking.candidates[: rules.candidates]
    }
    entities, names = [], set()
    for entity_id, candidate in sorted(candidates.items()):
        data = orjson.dumps(candidate_form(candidate), option=orjson.OPT_SORT_KEYS).decode()
        entities.append((rules.provider, entity_id, candidate.label, candidate.description, data))
        keys = search_keys(candidate, _MOST_NAMES)
        names |= {(rules.provider, key, entity_id) for key in keys}
    if entities:
        await tx.take_many("linker_save_entities", entities)
    if names:
        await tx.take_many("linker_save_entity_names", sorted(names))
