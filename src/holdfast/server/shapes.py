"""Request and response models: camel case in JSON, snake case in Python."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, StringConstraints
from pydantic.alias_generators import to_camel

LARGEST_ID = 2**53 - 1

#: Row ids; larger numbers do not fit every database and client.
Id = Annotated[int, Field(ge=1, le=LARGEST_ID)]
#: Text that every database can store.
Text = Annotated[str, StringConstraints(max_length=1000, pattern=r"^[^\x00]*$")]
Name = Annotated[str, StringConstraints(min_length=1, max_length=200, pattern=r"^[^\x00-\x1f]+$")]


class Shape(BaseModel):
    model_config = ConfigDict(
        alias_generator=to_camel, populate_by_name=True, extra="forbid", from_attributes=True
    )


class Counts(Shape):
    accepted: int
    done: int
    not_found: int
    skipped: int
    error: int
    open: int
    retried: int
    throttled: int
    known: int


class Why(Shape):
    kind: str
    text: str
    until: datetime | None = None


class JobShape(Shape):
    model_config = ConfigDict(
        json_schema_extra={
            "example": {
                "id": 12,
                "jobId": 12,
                "pipeline": "prices",
                "jobType": "CSV",
                "name": "products.csv",
                "state": "RUNNING",
                "standing": False,
                "idle": False,
                "ownerId": "ada",
                "lane": "UPLOAD",
                "mode": None,
                "fileId": 3,
                "ip": "127.0.0.1",
                "columns": ["title", "price", "shop"],
                "options": {},
                "readAs": ["CSV, utf-8, delimiter ',', header in row 1, 4 columns"],
                "maxItems": None,
                "error": None,
                "createdAt": "2026-11-15T09:12:00Z",
                "startedAt": "2026-11-15T09:12:00Z",
                "finishedAt": None,
                "updatedAt": "2026-11-15T09:12:40Z",
                "discoveredAt": "2026-11-15T09:12:02Z",
                "heartbeatAt": "2026-11-15T09:12:40Z",
                "counters": {
                    "accepted": 52000, "done": 36102, "notFound": 1870, "skipped": 0,
                    "error": 448, "open": 13580, "retried": 90, "throttled": 12, "known": 0,
                },
                "removed": {},
                "ratePerSecond": 412.0,
                "etaSeconds": 33.0,
                "why": None,
            }
        }
    )  # fmt: skip

    id: int
    job_id: int = Field(description="The same, as other shapes call it.")
    pipeline: str
    job_type: str | None = Field(
        description="`CSV` for a job over a table, `IMAGE` over images; null for other sources."
    )
    name: str
    state: str
    standing: bool = Field(description="Accepts records at any time and does not end.")
    idle: bool = Field(description="A standing job that is running and has no open items.")
    owner_id: str
    lane: str
    mode: str | None
    file_id: int | None
    ip: str | None
    columns: list[str]
    options: dict[str, Any]
    read_as: list[str] = Field(
        default=[], description="What was detected and assumed about its file, for people."
    )
    max_items: int | None
    error: str | None
    created_at: datetime | None
    started_at: datetime | None
    finished_at: datetime | None
    updated_at: datetime | None
    discovered_at: datetime | None
    heartbeat_at: datetime | None
    counters: Counts
    removed: dict[str, int] = Field(
        default={},
        description="Of a standing job: finished items that retention removed, by status. The "
        "counters include them.",
    )
    rate_per_second: float | None = None
    eta_seconds: float | None = None
    why: Why | None = None


class JobList(Shape):
    jobs: list[JobShape]
    next: str | None = Field(description="Send it as `after` to get the next page.")
