"""Actions on a job; those that cannot be undone first show what they affect."""

from __future__ import annotations

from fastapi import APIRouter, Response

from holdfast.features.jobs.pages_job import JobPost, VisitedJob
from holdfast.server.formatting import item_count
from holdfast.server.forms import fields, whole_number

router = APIRouter(prefix="/jobs/{job_id}")

_KICKOFF_SECONDS = 3.0


@router.post("/pause")
async def pause(visited: JobPost) -> Response:
    visit, job = visited.visit, visited.job
    await visit.parts.control(visit.person.name).pause(job.id)
    note = "Paused. No further item starts; items in progress finish."
    return visit.go(f"/jobs/{job.id}", note, f"/jobs/{job.id}/resume")


@router.post("/resume")
async def resume(visited: JobPost) -> Response:
    visit, job = visited.visit, visited.job
    max_items = whole_number((await fields(visit.request)).get("max_items"))
    quota = visit.parts.console.quotas.of_jobs
    await visit.parts.control(visit.person.name).resume(job.id, max_items, quota=quota)
    return visit.go(f"/jobs/{job.id}", "Job resumed.")


@router.get("/caps")
async def caps_dialog(visited: VisitedJob) -> Response:
    return await visited.dialog("dialogs/caps.html")


@router.get("/cancel")
async def cancel_dialog(visited: VisitedJob) -> Response:
    return await visited.dialog("dialogs/cancel.html")


@router.post("/cancel")
async def cancel(visited: JobPost) -> Response:
    visit, job = visited.visit, visited.job
    await visit.parts.control(visit.person.name).cancel(job.id)
    counters = await visit.parts.store.reads.counters(job.id)
    note = f"Job cancelled; {counters.skipped:,} items were skipped."
    return visit.go(f"/jobs/{job.id}", note)


@router.post("/kickoff")
async def kickoff(visited: JobPost) -> Response:
    visit, job = visited.visit, visited.job
    worked = await visit.parts.kickoffs.run(job, visit.person.name, _KICKOFF_SECONDS)
    return visit.go(f"/jobs/{job.id}", f"{item_count(worked)} finished in the meantime.")
