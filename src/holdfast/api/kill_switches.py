"""Kill switches: everything, a pipeline or a source stops within one slice, on every host."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from holdfast.api.identity import Admin, PartsOf, Someone
from holdfast.api.shapes import Shape, Text

router = APIRouter(prefix="/api/kill-switches", tags=["kill switches"])

Scope = Annotated[
    str,
    Path(
        max_length=300,
        pattern=r"^(all|pipeline:[^\x00/]+|source:[^\x00/]+)$",
        description="`all`, `pipeline:NAME` or `source:NAME`.",
        examples=["pipeline:prices"],
    ),
]


class KillSwitchShape(Shape):
    scope: str
    actor: str
    reason: str
    since: datetime | None


class KillSwitchList(Shape):
    kill_switches: list[KillSwitchShape]


class SwitchOn(Shape):
    reason: Text = Field(default="", description="For the audit and for those who wonder.")


@router.get("", summary="List the kill switches that are on")
async def index(person: Someone, parts: PartsOf) -> KillSwitchList:
    found = await parts.store.reads.kill_switches()
    return KillSwitchList(kill_switches=[KillSwitchShape(**each) for each in found])


@router.put("/{scope}", status_code=204, summary="Switch off all work in a scope")
async def switch_on(scope: Scope, body: SwitchOn, person: Admin, parts: PartsOf) -> None:
    await parts.control(person.name).switch(scope, True, body.reason)


@router.delete("/{scope}", status_code=204, summary="Let a scope work again")
async def switch_off(scope: Scope, person: Admin, parts: PartsOf) -> None:
    await parts.control(person.name).switch(scope, False, "")
