"""The shapes of requests and responses, and who may see and change a project."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from fastapi import Depends, Query
from pydantic import Field

from holdfast.errors import NotAllowed
from holdfast.server.dependencies import Parts
from holdfast.server.identity import Operator, PartsOf, Person, Someone
from holdfast.server.shapes import Id, Name, Shape, Text
from holdfast_linker.pipeline import Linker
from holdfast_linker.projects import Project
from holdfast_linker.reads import LinkerReads
from holdfast_linker.tasks import TaskState

PageSize = Annotated[int, Query(alias="pageSize", ge=1, le=200)]
After = Annotated[str | None, Query(max_length=2000)]
Score = Annotated[float, Query(ge=-1, le=1000)]


class RulesShape(Shape):
    provider: str = Field(examples=["wikidata"])
    language: str = Field(examples=["en"])
    candidates: int
    auto_accept: float = Field(description="101: nothing is accepted without a person.")
    lead: float


class NewProject(Shape):
    name: Name = Field(examples=["People of the archive"])
    provider: Text = "wikidata"
    language: Annotated[str, Field(max_length=20)] = "en"
    candidates: Annotated[int, Field(ge=1, le=50)] = 10
    auto_accept: Annotated[float, Field(ge=50, le=101)] = 95.0
    lead: Annotated[float, Field(ge=0, le=100)] = 10.0


class ProjectChange(Shape):
    name: Name | None = None
    candidates: Annotated[int, Field(ge=1, le=50)] | None = None
    auto_accept: Annotated[float, Field(ge=50, le=101)] | None = None
    lead: Annotated[float, Field(ge=0, le=100)] | None = None


class DatasetShape(Shape):
    id: int
    name: str
    file_id: int | None
    job_id: int | None = Field(description="Null: it is not matched yet.")
    job_state: str | None
    open: int = Field(description="Entries that are not matched yet.")
    mapping: dict[str, Any]


class Figures(Shape):
    """How many entries of a project have each result."""

    states: dict[str, int] = Field(examples=[{"auto_confirmed": 812, "awaiting_review": 140}])
    open: int = Field(description="Entries that are not matched yet.")
    queue_age_seconds: float | None = Field(description="How long the oldest of them waits.")
    calls_per_entry: float | None
    acceptance: float | None = Field(description="Share of decided entries that were linked.")
    dead_letters: float | None = Field(description="Share of entries that ended as dead letters.")


class ProjectShape(Shape):
    id: int
    owner_id: str
    name: str
    state: str = Field(examples=["review_ready"])
    rules: RulesShape
    readers: list[str]
    datasets: list[DatasetShape]
    figures: Figures
    created_at: datetime | None


class ProjectLine(Shape):
    id: int
    owner_id: str
    name: str
    provider: str
    states: dict[str, int]


class ProjectList(Shape):
    projects: list[ProjectLine]
    next: str | None


class NewDataset(Shape):
    file_id: Id = Field(description="A stored file: POST /api/files.")
    name: Name | None = None
    mapping: dict[str, Any] | None = Field(
        default=None,
        description="Which column says what. Default: guessed from the names of the columns.",
        examples=[{"name": "Full name", "dates": {"Born": "P569"}}],
    )


class Started(Shape):
    jobs: list[int] = Field(description="Jobs that were started.")
    matched_again: int = Field(description="Entries that had failed and are tried again.")


class CandidateShape(Shape):
    item: str
    label: str
    description: str
    score: float | None
    position: int
    fields: list[dict[str, Any]] = Field(description="The score, explained field by field.")
    matched: list[str]
    source: str
    status: str
    reviewer: str | None


class TaskShape(Shape):
    task_id: int = Field(description="One number for it, as messages name it.")
    job_id: int
    seq: int
    key: str
    name: str
    state: TaskState
    score: float | None
    item: str | None
    reason: str
    entry: dict[str, Any]
    reviewer: str | None
    reviewed_at: datetime | None


class TaskDetail(TaskShape):
    version: int = Field(description="Send it with the next decision; 0: there was none.")
    candidates: list[CandidateShape]


class TaskList(Shape):
    tasks: list[TaskShape]
    next: str | None


def reads_of(parts: Parts) -> LinkerReads:
    return LinkerReads(parts.fetch)


def pipeline_of(parts: Parts) -> Linker:
    pipeline = parts.pipelines["linker"]
    assert isinstance(pipeline, Linker)
    return pipeline


def may_change(project: Project, person: Person) -> bool:
    return person.may_change and (person.is_admin or person.name == project.owner_id)


async def visible_project(project_id: Id, person: Someone, parts: PartsOf) -> Project:
    return await reads_of(parts).project(project_id, person.scope)


async def own_project(project_id: Id, person: Operator, parts: PartsOf) -> Project:
    project = await reads_of(parts).project(project_id, person.scope)
    if not may_change(project, person):
        raise NotAllowed(f"{person.name} may only read this project", "Ask its owner.")
    return project


VisibleProject = Annotated[Project, Depends(visible_project)]
OwnProject = Annotated[Project, Depends(own_project)]
