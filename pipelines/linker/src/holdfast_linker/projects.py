"""Projects and their datasets: the changes that people make to them, each in one transaction."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from holdfast.errors import NotThere, UnfitState, UserError
from holdfast.orders import Act, Planned
from holdfast.pipeline import Row, Tx
from holdfast_linker.entries import ColumnMapping
from holdfast_linker.names import clean
from holdfast_linker.options import WIKIDATA, checked_provider, mapping_text
from holdfast_linker.scoring import Thresholds

Change = Callable[[Tx], Awaitable[Planned]]
_NAME_CHARACTERS = 200
_LANGUAGE_CHARACTERS = 20
_CHUNK = 500


@dataclass(frozen=True, slots=True)
class ProjectRules:
    """The rules of a project for matching; its jobs are started with them."""

    provider: str = WIKIDATA
    language: str = "en"
    candidates: int = 10
    auto_accept: float = Thresholds().auto_accept
    lead: float = Thresholds().lead

    def checked(self) -> ProjectRules:
        checked_provider(self.provider)
        code = self.language.replace("-", "")
        if not (code.isascii() and code.isalnum() and len(self.language) <= _LANGUAGE_CHARACTERS):
            raise UserError(
                f"{self.language[:50]!r} is not the code of a language", "One is `en`, or `de`."
            )
        if not 1 <= self.candidates <= 50:
            raise UserError("a project keeps 1 to 50 candidates of an entry")
        if not 50 <= self.auto_accept <= 101 or not 0 <= self.lead <= 100:
            raise UserError(
                "the thresholds are out of bounds",
                "auto_accept is from 50 to 101 (never), lead from 0 to 100.",
            )
        return self


@dataclass(frozen=True, slots=True)
class Project:
    id: int
    owner_id: str
    name: str
    rules: ProjectRules
    created_at: Any

    @classmethod
    def of(cls, row: Row) -> Project:
        rules = ProjectRules(**{name: row[name] for name in ProjectRules.__dataclass_fields__})
        return cls(row["id"], row["owner_id"], row["name"], rules, row["created_at"])

    def job_options(self, mapping: str, dataset_id: int) -> dict[str, Any]:
        return {
            "project": self.id,
            "dataset": dataset_id,
            "mapping": mapping,
            **asdict(self.rules),
        }


def topic_of(project_id: int) -> str:
    """Returns the topic of the standing job that has the entries of messages; it is deleted with
    the project."""
    return f"project {project_id}"


def checked_name(name: str) -> str:
    cleaned = clean(name)
    if not cleaned or len(cleaned) > _NAME_CHARACTERS:
        raise UserError(f"a name has 1 to {_NAME_CHARACTERS} characters")
    return cleaned


def add_project(owner: str, name: str, rules: ProjectRules, most: int | None = None) -> Change:
    """Adds a project; refused if the owner would have more than `most`."""
    name = checked_name(name)

    async def change(tx: Tx) -> Planned:
        if most is not None:
            await _require_room(tx, owner, most)
        if await tx.fetch("linker_project_by_name", {"owner_id": owner, "name": name}):
            raise UnfitState(f"there is a project {name!r} already", "Choose another name.")
        return await _added(tx, owner, name, rules)

    return change


async def _require_room(tx: Tx, owner: str, most: int) -> None:
    """Makes requests of the owner take turns, so that two do not both take the last place."""
    await tx.fetch("linker_hold_projects", {"owner_id": owner})
    count = (await tx.fetch("linker_project_count", {"owner_id": owner}))[0]["projects"]
    if count >= most:
        raise UnfitState(
            f"that would be {count + 1:,} projects; the limit per owner is {most:,}",
            "Delete one, or ask an admin; HOLDFAST_LINKER_QUOTA_PROJECTS sets the limit.",
        )


def find_or_add_project(
    owner: str, name: str, given: dict[str, Any], check_provider: Callable[[str], None]
) -> Change:
    """Returns the project of that name, created if there is none.

    The given values must not contradict it, and its provider is checked before anything is
    created."""

    async def change(tx: Tx) -> Planned:
        rows = await tx.fetch("linker_project_by_name", {"owner_id": owner, "name": name})
        if not rows:
            rules = replace(ProjectRules(), **given).checked()
            check_provider(rules.provider)
            return await _added(tx, owner, name, rules)
        project = Project.of(rows[0])
        for option, value in given.items():
            own = getattr(project.rules, option)
            if own != value:
                raise UserError(
                    f"--{option.replace('_', '-')} of the project {name!r} is {own}, not {value}",
                    "Leave the option out, or choose another project with --project.",
                )
        check_provider(project.rules.provider)
        return Planned(answer=project)

    return change


async def _added(tx: Tx, owner: str, name: str, rules: ProjectRules) -> Planned:
    values = asdict(rules.checked()) | {"owner_id": owner, "name": checked_name(name)}
    project_id = (await tx.take("linker_add_project", values))[0]["id"]
    rows = await tx.fetch("linker_project", {"id": project_id})
    act = Act("linker.project_added", str(project_id), {"name": name, "provider": rules.provider})
    return Planned(answer=Project.of(rows[0]), acts=[act])


def change_project(project: Project, name: str, rules: ProjectRules) -> Change:
    async def change(tx: Tx) -> Planned:
        same = {"owner_id": project.owner_id, "name": checked_name(name)}
        for row in await tx.fetch("linker_project_by_name", same):
            if row["id"] != project.id:
                raise UnfitState(f"there is a project {name!r} already", "Choose another name.")
        values = {
            "id": project.id,
            "name": checked_name(name),
            "candidates": rules.checked().candidates,
            "auto_accept": rules.auto_accept,
            "lead": rules.lead,
        }
        await tx.take("linker_change_project", values)
        return Planned(acts=[Act("linker.project_changed", str(project.id), values)])

    return change


def hide_project(project: Project) -> Change:
    """Hides a project, the first step of its deletion: no one sees it and no entry is added to it
    any more."""

    async def change(tx: Tx) -> Planned:
        await tx.take("linker_hide_project", {"id": project.id})
        act = Act("linker.project_deleted", str(project.id), {"name": project.name})
        return Planned(acts=[act])

    return change


def drop_dataset(dataset_id: int) -> Change:
    """Removes the dataset of a deleted project, after its job and file."""

    async def change(tx: Tx) -> Planned:
        await tx.take("linker_drop_dataset", {"id": dataset_id})
        return Planned()

    return change


def drop_entries(project: Project) -> Change:
    """Removes a chunk of what is left of its entries; answers whether there may be more."""

    async def change(tx: Tx) -> Planned:
        chunk = {"id": project.id, "limit": _CHUNK}
        for rows in ("candidates", "tasks"):
            if await tx.take(f"linker_drop_project_{rows}", chunk):
                return Planned(answer=True)
        return Planned(answer=False)

    return change


def drop_project(project: Project) -> Change:
    """Removes the project, the last step, after its jobs, files and entries."""

    async def change(tx: Tx) -> Planned:
        for table in ("readers", "tokens", "datasets"):
            await tx.take(f"linker_drop_project_{table}", {"id": project.id})
        await tx.take("linker_drop_project", {"id": project.id})
        return Planned()

    return change


def set_reader(project: Project, user_name: str, invited: bool) -> Change:
    async def change(tx: Tx) -> Planned:
        query = "linker_add_reader" if invited else "linker_drop_reader"
        await tx.take(query, {"project_id": project.id, "user_name": user_name})
        action = "linker.reader_added" if invited else "linker.reader_removed"
        return Planned(acts=[Act(action, str(project.id), {"user": user_name})])

    return change


def add_token(project: Project, hash: str, shown: str, by: str, seconds: float | None) -> Change:
    async def change(tx: Tx) -> Planned:
        values = {
            "project_id": project.id,
            "hash": hash,
            "shown": shown,
            "created_by": by,
            "seconds": seconds,
        }
        token_id = (await tx.take("linker_add_token", values))[0]["id"]
        detail = {"project": project.id, "shown": shown}
        return Planned(answer=token_id, acts=[Act("linker.token_added", str(token_id), detail)])

    return change


def revoke_token(project: Project, token_id: int) -> Change:
    async def change(tx: Tx) -> Planned:
        key = {"id": token_id, "project_id": project.id}
        if not await tx.take("linker_revoke_token", key):
            raise NotThere(f"project {project.id} has no token {token_id} that can be revoked")
        return Planned(acts=[Act("linker.token_revoked", str(token_id), {"project": project.id})])

    return change


def claim_dataset(dataset_id: int) -> Change:
    """Claims a dataset; answers whether this request is the one that may start its job."""

    async def change(tx: Tx) -> Planned:
        return Planned(answer=bool(await tx.take("linker_claim_dataset", {"id": dataset_id})))

    return change


def release_dataset(dataset_id: int) -> Change:
    async def change(tx: Tx) -> Planned:
        await tx.take("linker_release_dataset", {"id": dataset_id})
        return Planned()

    return change


def link_dataset(project: Project, dataset_id: int, job_id: int) -> Change:
    """Notes the job of a dataset; answers whether the project still exists."""

    async def change(tx: Tx) -> Planned:
        link = {"id": dataset_id, "project_id": project.id, "job_id": job_id}
        await tx.take("linker_link_dataset", link)
        return Planned(answer=bool(await tx.fetch("linker_project", {"id": project.id})))

    return change


def add_dataset(project: Project, name: str, file_id: int | None, mapping: ColumnMapping) -> Change:
    async def change(tx: Tx) -> Planned:
        params = {
            "project_id": project.id,
            "name": checked_name(name),
            "file_id": file_id,
            "mapping": mapping_text(mapping),
        }
        rows = await tx.take("linker_add_dataset", params)
        if not rows:
            raise NotThere(f"there is no project {project.id}")
        detail = {"project": project.id, "name": name}
        return Planned(
            answer=rows[0]["id"], acts=[Act("linker.dataset_added", str(rows[0]["id"]), detail)]
        )

    return change


def find_or_add_dataset(
    project: Project, name: str, mapping: ColumnMapping, input_key: str, *, new: bool
) -> Change:
    """Returns the dataset of a file that a command reads.

    A dataset has one job: other content is another dataset."""

    async def change(tx: Tx) -> Planned:
        params = {"project_id": project.id, "name": checked_name(name)}
        rows = await tx.fetch("linker_dataset_by_name", params)
        mapped = [row for row in rows if row["mapping"] == mapping_text(mapping)]
        same = [row for row in mapped if row["input_key"] == input_key and not new]
        for row in [*same, *(row for row in mapped if row["job_id"] is None)]:
            return Planned(answer=row["id"])
        return await add_dataset(project, name, None, mapping)(tx)

    return change
