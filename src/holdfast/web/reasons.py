"""Why something does not run, in the words of the pages, with a link to what blocks it."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote

from holdfast.api.shapes import Why
from holdfast.model import Job


@dataclass(frozen=True, slots=True)
class Told:
    kind: str
    text: str
    until: datetime | None
    link: str | None
    label: str | None


def told_why(job: Job, why: Why | None) -> Told | None:
    """Nothing for a job that workers hold: it runs."""
    if why is None or why.kind == "leased by":
        return None
    link, label = _where(job, why)
    text = why.text
    if why.kind == "paused":
        text = "Nothing starts until somebody resumes it."
    return Told(why.kind, text, why.until, link, label)


def _where(job: Job, why: Why) -> tuple[str | None, str | None]:
    of_job = f"/jobs/{job.id}"
    if why.kind == "gate closed until":
        name = why.text.partition(" ")[0].rstrip(":,")
        return f"/gates#{quote(name, safe='')}", "gate"
    places = {
        "kill switch": ("/settings#switches", "kill switches"),
        "discovery failed": (f"{of_job}/streams", "streams"),
        "cap reached": (f"{of_job}/streams", "streams"),
        "retry at": (f"{of_job}/pending", "pending"),
        "no live worker": ("/#workers", "workers"),
    }
    return places.get(why.kind, (None, None))
