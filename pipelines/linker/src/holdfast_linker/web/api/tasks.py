"""Tasks: the entries of a project, their candidates, and people's decisions about them."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from fastapi import APIRouter, Path
from pydantic import Field

from holdfast.errors import UserError
from holdfast.features.bulk.for_extensions import decide_in_bulk
from holdfast.features.bulk.shapes import OperationShape
from holdfast.features.rulings.rules import NewRuling, decide
from holdfast.features.rulings.shapes import ruling_state
from holdfast.rulings import RulingKind
from holdfast.server.cursors import Cursors
from holdfast.server.dependencies import Parts
from holdfast.server.identity import Operator, PartsOf, Person, Someone
from holdfast.server.shapes import LARGEST_ID, Id, Shape, Text
from holdfast_linker.projects import Project
from holdfast_linker.proposing import BulkAction, Criteria
from holdfast_linker.reads import ReviewPosition, TaskFilter, position_of
from holdfast_linker.tasks import TaskState
from holdfast_linker.web.api.shapes import (
    After,
    CandidateShape,
    OwnProject,
    PageSize,
    Score,
    TaskDetail,
    TaskList,
    TaskShape,
    VisibleProject,
    reads_of,
)

router = APIRouter(prefix="/api/projects/{project_id}/tasks", tags=["linker"])

Seq = Annotated[int, Path(ge=1, le=LARGEST_ID)]

Action = Literal["accept", "none", "reject", "undo"]
_KINDS = {
    "accept": RulingKind.CHOOSE,
    "none": RulingKind.REJECT,
    "reject": RulingKind.EDIT,
    "undo": RulingKind.REVOKE,
}


class DecisionBody(Shape):
    action: Action = Field(
        description="accept an item, none of them, reject one candidate, or undo the decision."
    )
    item: Annotated[str, Field(max_length=250)] | None = Field(
        default=None, description="Of accept and reject; for accept, any item.", examples=["Q42"]
    )
    label: Text | None = Field(default=None, description="Of an item that was not a candidate.")
    reason: Text = ""
    version: int = Field(ge=0, le=2**31 - 1, description="As it was seen; 0: no decision yet.")


class TaskPlace(Shape):
    job_id: Id
    seq: Id


class TasksAgain(Shape):
    tasks: list[TaskPlace] = Field(min_length=1, max_length=1000)


class MatchedAgain(Shape):
    matched_again: int
    left_alone: int = Field(description="Those that people decided about, or that are not done.")


class BulkReview(Shape):
    action: BulkAction
    state: TaskState = TaskState.AWAITING_REVIEW
    low: float = Field(default=-1, ge=-1, le=100, description="Least score.")
    high: float = Field(default=1000, ge=-1, le=1000)
    dry_run: bool = Field(default=False, description="Only count them.")
    reason: Text = ""


class BulkStarted(Shape):
    count: int = Field(description="Tasks that match.")
    operation: OperationShape | None = Field(description="Null: nothing matched, or a dry run.")


@router.get("", summary="List the tasks of a project")
async def index(
    project: VisibleProject,
    person: Someone,
    parts: PartsOf,
    state: TaskState = TaskState.AWAITING_REVIEW,
    low: Score = -1,
    high: Score = 1000,
    page_size: PageSize = 50,
    after: After = None,
) -> TaskList:
    """Returns those in one state, the best score first."""
    bound = {"project": project.id, "state": state, "low": low, "high": high}
    cursors = Cursors(parts.secret, "linker tasks", person.name, bound)
    start = cursors.read(after)
    position = ReviewPosition() if start is None else ReviewPosition(*start)
    wanted = TaskFilter(state, low, high)
    tasks = await reads_of(parts).tasks(project.id, wanted, position, page_size + 1)
    last = position_of(tasks[page_size - 1]) if len(tasks) > page_size else None
    more = cursors.write([last.score, last.job_id, last.seq]) if last else None
    return TaskList(tasks=[TaskShape(**task) for task in tasks[:page_size]], next=more)


@router.get("/{job_id}/{seq}", summary="Show a task with its candidates")
async def show(project: VisibleProject, job_id: Id, seq: Seq, parts: PartsOf) -> TaskDetail:
    return await describe_task(project, job_id, seq, parts)


async def describe_task(project: Project, job_id: int, seq: int, parts: Parts) -> TaskDetail:
    reads = reads_of(parts)
    task = await reads.task(project.id, job_id, seq)
    candidates = [CandidateShape(**each) for each in await reads.candidates(job_id, seq)]
    job = await parts.console.jobs.job(job_id, None)
    version = (await ruling_state(job, seq, parts)).version
    return TaskDetail(**task, version=version, candidates=candidates)


@router.put("/{job_id}/{seq}/decision", summary="Decide about a task")
async def decision(
    project: OwnProject, job_id: Id, seq: Seq, body: DecisionBody, person: Operator, parts: PartsOf
) -> TaskDetail:
    """The decision is refused with 409 if another user has decided since that version: the response
    contains that decision."""
    await decide_task(project, job_id, seq, body, person, parts)
    return await describe_task(project, job_id, seq, parts)


async def decide_task(
    project: Project, job_id: int, seq: int, body: DecisionBody, person: Person, parts: Parts
) -> None:
    await reads_of(parts).task(project.id, job_id, seq)
    job = await parts.console.jobs.job(job_id, None)
    new = NewRuling(_KINDS[body.action], _value(body), body.reason, person.name, body.version)
    await decide(parts.console, parts.pipelines, job, seq, new)


def _value(body: DecisionBody) -> Any:
    if body.action == "accept":
        label = {"label": body.label} if body.label else {}
        return {"item": body.item, **label}
    if body.action == "reject":
        return {"reject": body.item}
    return None


@router.post("/match", status_code=202, summary="Match chosen tasks again")
async def match_again(
    project: OwnProject, body: TasksAgain, person: Operator, parts: PartsOf
) -> MatchedAgain:
    """Tasks that people decided about stay as they are."""
    by_job: dict[int, list[int]] = {}
    for task in body.tasks:
        by_job.setdefault(task.job_id, []).append(task.seq)
    again = 0
    for job_id, seqs in by_job.items():
        free = await reads_of(parts).rematchable(project.id, job_id, seqs)
        if free:
            again += await parts.control(person.name).reprocess_items(job_id, free)
    return MatchedAgain(matched_again=again, left_alone=len(body.tasks) - again)


@router.post("/review", status_code=202, summary="Decide about all tasks that match a filter")
async def review(
    project: OwnProject, body: BulkReview, person: Operator, parts: PartsOf
) -> BulkStarted:
    """Accepts the first candidate of each, or none, as an operation in the background: see `GET
    /api/operations/{operation_id}`. What others decide in the meantime stays."""
    if body.state not in (TaskState.AWAITING_REVIEW, TaskState.NO_CANDIDATES):
        raise UserError("only tasks without a decision can be decided in bulk")
    criteria = Criteria(project.id, body.action, str(body.state), body.low, body.high)
    counts = await criteria.count_by_job(parts.fetch)
    count = sum(counts.values())
    if body.dry_run or not count:
        return BulkStarted(count=count, operation=None)
    operation = await decide_in_bulk(criteria.to_json(), counts, body.reason, person, parts)
    return BulkStarted(count=count, operation=operation)
