"""Projects, errors, batches and messages of posts."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Query, Response

from holdfast.errors import NotThere
from holdfast.server.context import Visit, Visitor
from holdfast.server.forms import OperatorPost, fields
from holdfast.server.shapes import Id
from holdfast_posts.reads import PERIODS, RISKS, SENTIMENTS, PostsReads, now_in_utc
from holdfast_posts.releasing import release

router = APIRouter(prefix="/posts")

_PAGE_SIZE = 100
_STATES = ("PARKED", "WAITING", "DEAD", "TAKEN", "REPEATED")
_ASIDE = frozenset(_STATES[:3])
Text = Annotated[str, Query(max_length=800)]
Days = Annotated[int, Query(ge=1, le=366)]


def _reads(visit: Visit) -> PostsReads:
    return PostsReads(visit.parts.fetch, now_in_utc(visit.parts.clock.now()))


async def _page(visit: Visit, template: str, **context: Any) -> Response:
    counts = await _reads(visit).message_counts()
    aside = sum(count for state, count in counts.items() if state in _ASIDE)
    return await visit.page(f"posts/{template}", here="posts", aside=aside, **context)


@router.get("")
async def projects(visit: Visitor) -> Response:
    return await _page(visit, "projects.html", projects=await _reads(visit).projects())


@router.get("/project")
async def project(visit: Visitor, scope: Text, days: Days = 30) -> Response:
    reads = _reads(visit)
    context = {
        "scope": scope,
        "days": days,
        "periods": PERIODS,
        "overview": await reads.overview(scope, days),
        "top": await reads.top(scope, days),
        "batches": await reads.batches(scope, None, None, 10),
        "errors": (await reads.errors_by_day(scope, days))["lines"],
        "sentiments": SENTIMENTS,
        "risks": RISKS,
    }
    return await _page(visit, "project.html", **context)


@router.get("/errors")
async def errors(visit: Visitor, scope: Text = "", code: Text = "", days: Days = 14) -> Response:
    reads = _reads(visit)
    context = {
        "scope": scope,
        "code": code,
        "days": days,
        "table": await reads.errors_by_day(scope or None, days),
        "recent": await reads.recent_errors(scope or None, code or None),
    }
    return await _page(visit, "errors.html", **context)


@router.get("/batches")
async def batches(
    visit: Visitor, scope: Text = "", word: Text = "", before: Id | None = None
) -> Response:
    rows = await _reads(visit).batches(scope or None, word.strip() or None, before, _PAGE_SIZE + 1)
    more = rows[_PAGE_SIZE - 1]["id"] if len(rows) > _PAGE_SIZE else None
    context = {"batches": rows[:_PAGE_SIZE], "scope": scope, "word": word, "next": more}
    return await _page(visit, "batches.html", **context)


@router.get("/batches/{batch_id}")
async def batch(batch_id: Id, visit: Visitor) -> Response:
    reads = _reads(visit)
    found = await reads.batch(batch_id)
    if found is None:
        raise NotThere(f"there is no batch {batch_id}")
    return await _page(visit, "batch.html", batch=found, items=await reads.items(batch_id))


@router.get("/messages")
async def messages(visit: Visitor, state: Text = "", word: Text = "") -> Response:
    wanted = state if state in _STATES else ""
    reads = _reads(visit)
    context = {
        "messages": await reads.messages(wanted or None, word.strip() or None),
        "counts": await reads.message_counts(),
        "state": wanted,
        "states": _STATES,
        "word": word,
    }
    return await _page(visit, "messages.html", **context)


@router.post("/messages/release")
async def release_messages(visit: OperatorPost) -> Response:
    """Releases one message, or all of a state."""
    form = await fields(visit.request)
    key, state = form.get("key") or None, form.get("state") or None
    if state not in _ASIDE:
        state = None
    if key is None and state is None:
        raise NotThere("no message was chosen")
    count = await release(visit.parts.store, state, key, visit.person.name)
    said = "1 message" if count == 1 else f"{count:,} messages"
    return visit.go("/posts/messages", f"{said} will be tried again within seconds.")
