"""Deletes files, exports, and everything that belongs to one person."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import orjson

from holdfast.errors import UnfitState, UserError
from holdfast.features.accounts.person import Person
from holdfast.features.deletion.deleter import Deleter
from holdfast.features.deletion.job_rows import mark_file
from holdfast.features.exports.exports import Export
from holdfast.features.library.files import StoredFile
from holdfast.features.library.images import is_archive, is_image
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Transaction
from holdfast.kernel.jobs.audit import add_audit

if TYPE_CHECKING:
    from holdfast.features.console import Console

_ADAPTERS = ("hold_adapters_of_user", "delete_adapter_files_of_user", "delete_adapters_of_user")
_OF_USER = (
    *_ADAPTERS,
    "delete_sessions_of_user",
    "delete_links_of_user",
    "delete_tokens_of_user",
    "delete_second_factor_of_user",
    "delete_recovery_codes_of_user",
    "delete_keys_of_user",
    "delete_operations_of_user",
    "delete_user",
)
_PAGE = 100


class DeletionRows:
    """The rows of deletions.

    Bytes go before the row that names them, so that an interrupted deletion can be repeated."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @verb("mark_file")
    async def mark_file(
        self, tx: Transaction, file: StoredFile, actor: str, even_used: bool = False
    ) -> None:
        """Commits to deleting the file, unless a job may still read it."""
        await tx.fetch("lock_file", {"id": file.id})
        job_id = None if even_used else await _job_using(tx, file)
        if job_id is not None:
            raise UnfitState(
                f"job {job_id} may still read file {file.id}",
                "Cancel or delete the job first, or wait until it is done.",
            )
        detail = {"name": file.name, "size": file.size, "owner": file.owner_id}
        await mark_file(tx, file.id, actor, detail)

    @verb
    async def delete_file(self, tx: Transaction, file: StoredFile) -> None:
        """Removes the file's row, after its bytes."""
        await tx.run("delete_file", {"id": file.id})

    @verb
    async def delete_export(self, tx: Transaction, export: Export, actor: str) -> None:
        if await tx.take("delete_export", {"id": export.id}):
            detail = {"format": export.format, "owner": export.owner_id}
            await add_audit(tx, actor, "export.deleted", export.job_id, str(export.id), detail)

    @verb
    async def mark_user(self, tx: Transaction, name: str, actor: str) -> None:
        if await tx.take("mark_user", {"name": name}):
            for query in _ADAPTERS:  # first, because they would start further jobs
                await tx.run(query, {"name": name})
            await add_audit(tx, actor, "user.deleting", None, name)

    async def deleting_users(self) -> list[str]:
        return [row[0] for row in await self._database.fetch("deleting_users")]

    async def jobs_of(self, owner: str) -> list[int]:
        params = {"owner": owner, "limit": _PAGE}
        return [row[0] for row in await self._database.fetch("jobs_of_owner", params)]

    @verb
    async def delete_user(self, tx: Transaction, name: str, actor: str) -> bool:
        """Deletes the account, everything that lets its owner in, and what extensions keep about
        the person: their queries PIPELINE_delete_user and those that begin with it and a `_`, in
        alphabetical order. Audit entries keep the name. Returns False if another process has
        deleted it."""
        if not await tx.fetch("hold_deleting_user", {"name": name}):
            return False
        # An extension that was never used has no tables here.
        used = tuple(f"{row['branch']}_delete_user" for row in await tx.fetch("schema_versions"))
        own = sorted(query for query in self._database.driver.queries if query.startswith(used))
        for query in (*own, *_OF_USER):
            await tx.run(query, {"name": name})
        await add_audit(tx, actor, "user.deleted", None, name)
        return True


class Deletions:
    def __init__(self, console: Console, deleter: Deleter, log: Any) -> None:
        self._console = console
        self._rows = DeletionRows(console.store.database)
        self.jobs = deleter
        self._log = log

    async def delete_file(self, file_id: int, scope: str | None, actor: str) -> None:
        file = await self._console.files.file(file_id, scope)
        await self._rows.mark_file(file, actor)
        await self._delete_file(file)

    async def delete_export(self, export_id: int, scope: str | None, actor: str) -> None:
        await self._delete_export(await self._console.exports.export(export_id, scope), actor)

    async def begin_other(self, name: str, person: Person) -> None:
        """Begins to delete the account of somebody else."""
        if name == person.name:
            raise UserError("you cannot delete your own account", "Ask another admin.")
        await self.begin_user(name, person.name)

    async def begin_user(self, name: str, actor: str) -> None:
        """Locks the person out and commits to deleting everything of theirs; `look` does it."""
        await self._console.people.user(name)
        await self._console.people.change_user(name, actor, disabled=True)
        await self._rows.mark_user(name, actor)
        self._log.info("user.deleting", user=name, by=actor)

    async def look(self) -> None:
        """Deletes what people asked to delete: jobs, and everything of deleted accounts."""
        await self.jobs.look()
        for name in await self._rows.deleting_users():
            await self.delete_user(name, "engine")

    async def delete_user(self, name: str, actor: str) -> None:
        if name not in await self._rows.deleting_users():
            return
        while job_ids := await self._rows.jobs_of(name):
            for job_id in job_ids:
                await self.jobs.begin(job_id, actor)
                await self.jobs.delete(job_id)
        while exports := await self._console.exports.page(name, _PAGE):
            for export in exports:
                await self._delete_export(export, actor)
        while files := await self._console.files.page(name, _PAGE):
            for file in files:
                await self._rows.mark_file(file, actor, even_used=True)
                await self._delete_file(file)
        await self._delete_drafts(name)
        if await self._rows.delete_user(name, actor):
            self._log.info("user.deleted", user=name)

    async def _delete_drafts(self, name: str) -> None:
        """Deletes the files of requests that were not answered yet."""
        while drafts := await self._console.files.old_drafts(0.0, _PAGE, name):
            for key in await self._console.files.drop_drafts(drafts):
                await self.jobs.remove(key)

    async def _delete_file(self, file: StoredFile) -> None:
        await self.jobs.remove(file.key)
        await self._rows.delete_file(file)

    async def _delete_export(self, export: Export, actor: str) -> None:
        if export.key is not None:
            await self.jobs.remove(export.key)
        await self._rows.delete_export(export, actor)


async def _job_using(tx: Transaction, file: StoredFile) -> int | None:
    """Returns a job that may still read the file: its table, its list of images, or an image or a
    zip that its list names."""
    for row in await tx.fetch("job_using_file", {"file_id": file.id}):
        return int(row["id"])
    if not (is_image(file) or is_archive(file)):
        return None
    for row in await tx.fetch("image_jobs_after", {"file_id": file.id}):
        named = orjson.loads(row["detected"]).get("files")
        if file.id in named if named is not None else row["owner_id"] == file.owner_id:
            return int(row["id"])
    return None
