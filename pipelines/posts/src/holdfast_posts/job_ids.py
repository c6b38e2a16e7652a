"""Finds the project in a job id: `{project}-brand-{n}`, `{project}-{competitor}-{n}`,
`{uuid}-competitor-{name}-{n}`; a bare UUID is a dry run.

Competitors may contain hyphens, so that the project cannot always be read from the job id. The
payload's own project is used if the job id begins with it.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

DRY_RUN = "dryrun:"
_UUID_GROUPS = (8, 4, 4, 4, 12)
_UUID_CHARACTERS = 36
_HEX = frozenset("0123456789abcdefABCDEF")


class Method(StrEnum):
    """How the project of a job was found."""

    PAYLOAD = "payload"  # the event names it, and the job id begins with it
    UUID = "uuid"  # the UUID at the beginning of the job id
    SPLIT = "split"  # the job id without its last two parts
    STATED = "stated"  # the event names it; the job id does not confirm it
    DRY_RUN = "dry_run"  # the job id is a bare UUID
    NONE = "none"


@dataclass(frozen=True, slots=True)
class Attribution:
    project_id: str | None
    method: Method
    disagrees: bool = False  # the event names another project

    def scope(self, job_id: str | None) -> str:
        """Returns the scope in which posts are unique: a project, or one dry run."""
        return self.project_id or f"{DRY_RUN}{job_id or ''}"


NOT_ATTRIBUTED = Attribution(None, Method.NONE)


def attribute(job_id: str | None, stated: str | None = None) -> Attribution:
    """Returns the project of a job id, given what the event states."""
    stated = _folded(stated) if stated and not stated.startswith(DRY_RUN) else None
    if not job_id:
        return Attribution(stated, Method.STATED if stated else Method.NONE)
    if stated and _begins_with(job_id, stated):
        return Attribution(stated, Method.PAYLOAD)
    if is_uuid(job_id):
        return Attribution(None, Method.DRY_RUN, stated is not None)
    project, method = _from_job_id(job_id)
    if project is None and stated:
        return Attribution(stated, Method.STATED, True)
    return Attribution(project, method, stated is not None)


def _begins_with(job_id: str, project_id: str) -> bool:
    return _folded(job_id[: len(project_id)]) == project_id and job_id[len(project_id) :][:1] == "-"


def _from_job_id(job_id: str) -> tuple[str | None, Method]:
    if is_uuid(job_id[:_UUID_CHARACTERS]) and job_id[_UUID_CHARACTERS] == "-":
        return _folded(job_id[:_UUID_CHARACTERS]), Method.UUID
    parts = job_id.rsplit("-", 2)
    # A project that is named like the scope of a dry run would be mixed with it.
    is_named = len(parts) == 3 and all(parts) and not job_id.startswith(DRY_RUN)
    if is_named and parts[2].isascii() and parts[2].isdigit():
        return parts[0], Method.SPLIT
    return None, Method.NONE


def is_uuid(text: str) -> bool:
    groups = text.split("-")
    return tuple(map(len, groups)) == _UUID_GROUPS and _HEX.issuperset("".join(groups))


def _folded(project_id: str) -> str:
    """Returns the id; a UUID is the same in upper and lower case, other ids are kept as they
    are."""
    return project_id.lower() if is_uuid(project_id) else project_id
