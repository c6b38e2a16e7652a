"""Explains why something is not running, for pages: with a link to what blocks it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from holdfast.model import Job
from holdfast.server.shapes import Why


@dataclass(frozen=True, slots=True)
class ShownReason:
    kind: str
    text: str
    until: datetime | None
    link: str | None
    label: str | None


def shown_reason(job: Job, why: Why | None) -> ShownReason | None:
    """Returns the reason; None for a job that workers hold: it is running."""
    if why is None or why.kind == "leased by":
        return None
    link, label = _link(job, why)
    text = "Nothing starts until someone resumes it." if why.kind == "paused" else why.text
    return ShownReason(why.kind, text, why.until, link, label)


def _link(job: Job, why: Why) -> tuple[str | None, str | None]:
    """Returns a path and its label."""
    job_path = f"/jobs/{job.id}"
    if why.kind == "gate closed until":
        name = why.text.partition(" ")[0].rstrip(":,")
        return f"/gates#{quote(name, safe='')}", "gate"
    links = {
        "kill switch": ("/settings#switches", "kill switches"),
        "discovery failed": (f"{job_path}/streams", "streams"),
        "cap reached": (f"{job_path}/streams", "streams"),
        "waiting until": (f"{job_path}/streams", "streams"),
        "retry at": (f"{job_path}/pending", "pending"),
        "due at": (f"{job_path}/pending", "pending"),
        "no live worker": ("/#workers", "workers"),
    }
    return links.get(why.kind, (None, None))
