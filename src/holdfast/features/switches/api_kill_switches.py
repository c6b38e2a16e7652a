"""Kill switches: stop everything, a pipeline or a source within two seconds, on every host."""

from __future__ import annotations

from datetime import datetime
from typing import Annotated

from fastapi import APIRouter, Path
from pydantic import Field

from holdfast.features.switches.kill_switches import LONGEST_SCOPE, SCOPE_PATTERN, switch
from holdfast.server.identity import Admin, PartsOf, Someone
from holdfast.server.shapes import Shape, Text

router = APIRouter(prefix="/api/kill-switches", tags=["kill switches"])

Scope = Annotated[
    str,
    Path(
        max_length=LONGEST_SCOPE,
        pattern=SCOPE_PATTERN,
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
    reason: Text = Field(default="", description="Shown to everyone, and stored in the audit log.")


@router.get("", summary="List the kill switches that are on")
async def index(person: Someone, parts: PartsOf) -> KillSwitchList:
    switches = await parts.store.reads.kill_switches()
    return KillSwitchList(kill_switches=[KillSwitchShape(**switch) for switch in switches])


@router.put("/{scope:path}", status_code=204, summary="Stop all work in a scope")
async def switch_on(scope: Scope, body: SwitchOn, person: Admin, parts: PartsOf) -> None:
    await switch(parts.control(person.name), scope, True, body.reason)


@router.delete("/{scope:path}", status_code=204, summary="Allow work in a scope again")
async def switch_off(scope: Scope, person: Admin, parts: PartsOf) -> None:
    await switch(parts.control(person.name), scope, False, "")
