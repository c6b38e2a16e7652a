"""Writes pages and their documents, in the transaction that settles their rows.

A page is identified by its position: collection, meeting, date and number. The upstream id is a
hash of its content, so a page that the site scanned again has a new one. Which row a page shows:

- the first row for its position;
- a row with another id from a later job replaces it, and the old content becomes history;
- of two rows for one position in the same job, the one with the greater id, whatever their order;
  the other is stored as a duplicate, and later jobs ignore it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from holdfast.model import ItemStatus
from holdfast.pipeline import Settled, Tx
from holdfast_meetings import searching
from holdfast_meetings.documents import (
    Document,
    DocumentKey,
    KnownDocuments,
    Witness,
)
from holdfast_meetings.options import Collection
from holdfast_meetings.rows import Content, PagePosition

SUPERSEDED, DUPLICATE = "SUPERSEDED", "DUPLICATE"
_Key = tuple[int, int]  # document, number
_PAGE_COLUMNS = ("document_id", "municipality_id", "document_type", "number", "upstream_id",
                 "content_hash", "text", "page_image", "extra", "job_id")  # fmt: skip


class _Row(NamedTuple):
    """One upstream row before it becomes a page. Rows sort by id, then by arrival."""

    upstream_id: str
    seq: int
    position: PagePosition
    content: Content
    hash: str


class _Stored(NamedTuple):
    """A page as it is stored."""

    id: int
    document_id: int
    number: int
    upstream_id: str
    content_hash: str
    job_id: int
    vanished: int


@dataclass(slots=True)
class _Counts:
    documents_created: int = 0
    documents_updated: int = 0
    documents_seen: int = 0  # of those that existed before
    pages_created: int = 0
    pages_updated: int = 0
    pages_unchanged: int = 0
    pages_rejected: int = 0


@dataclass(slots=True)
class _Changes:
    """What the rows of a batch change, besides new pages."""

    replaced: list[tuple[_Stored, _Row, str | None]] = field(default_factory=list)
    duplicates: list[tuple[_Stored, _Row]] = field(default_factory=list)
    unchanged: int = 0


async def save(tx: Tx, settled: Sequence[Settled], known: KnownDocuments) -> None:
    """Writes the rows, which all belong to one job, and so to one collection."""
    job = settled[0].job
    saving = Saving(tx, Collection.of(job.options), job.id, known)
    await saving.reject(item for item in settled if item.status is not ItemStatus.DONE)
    await saving.store([_row(item) for item in settled if item.status is ItemStatus.DONE])
    await saving.finish()


def _row(item: Settled) -> _Row:
    upstream_id, position, content, content_hash = item.effects
    return _Row(upstream_id, item.seq, position, content, content_hash)


class Saving:
    def __init__(self, tx: Tx, collection: Collection, job_id: int, known: KnownDocuments) -> None:
        self._tx = tx
        self._job_id = job_id
        self._known = known
        self._collection = (collection.municipality_id, collection.document_type.value)
        self._counts = _Counts()
        self._touched: list[str] = []
        self._changed: set[int] = set()  # documents

    async def reject(self, settled: Iterable[Settled]) -> None:
        """Rejects rows; each stays in the job's item with its number."""
        rows = sorted(
            (*self._collection, item.row["id"], self._job_id, item.seq) for item in settled
        )
        self._counts.pages_rejected = len(rows)
        if rows:
            await self._tx.take_many("meetings_add_rejects", rows)

    async def store(self, rows: Sequence[_Row]) -> None:
        if not rows:
            return
        await self._tx.fetch("meetings_hold_collection", {"collection": repr(self._collection)})
        documents = await self._documents(rows)
        by_key: dict[_Key, list[_Row]] = {}
        for row in self._latest(rows):
            meeting, day, number = row.position
            by_key.setdefault((documents[meeting, day].id, number), []).append(row)
        known = await self._find(by_key)
        new = {key: max(group) for key, group in by_key.items() if key not in known}
        await self._add(new)
        left = {
            key: [row for row in group if row is not new.get(key)]
            for key, group in by_key.items()
            if key in known or len(group) > 1
        }
        known |= await self._find(key for key in left if key not in known)
        await self._update(left, known)
        await self._count_documents(documents)

    async def _count_documents(self, documents: Mapping[DocumentKey, Document]) -> None:
        """Counts each document once for the job, though its pages come in several batches, and
        maybe to several workers."""
        job_id = self._job_id
        seen, changed = {}, {}
        for key, document in documents.items():
            if document.seen_job_id < job_id:
                seen[key] = document._replace(seen_job_id=job_id)
            if document.changed_job_id < job_id and document.id in self._changed:
                changed[key] = seen.get(key, document)._replace(changed_job_id=job_id)
        self._counts.documents_seen += await self._note("meetings_see_documents", seen)
        self._counts.documents_updated += await self._note(
            "meetings_note_changed_documents", changed
        )
        self._learn(seen | changed, None)

    async def _note(self, query: str, documents: Mapping[DocumentKey, Document]) -> int:
        ids = sorted(document.id for document in documents.values())
        return len(await self._tx.take_many(query, [(id_, self._job_id) for id_ in ids]))

    def _latest(self, rows: Sequence[_Row]) -> list[_Row]:
        """Returns the latest of each row: a walk reads the rows of these months twice, and the last
        one is the current one."""
        if len({row.upstream_id for row in rows}) == len(rows):
            return list(rows)
        latest = {(row.upstream_id, row.position): row for row in sorted(rows)}
        self._counts.pages_unchanged += len(rows) - len(latest)
        return list(latest.values())

    async def finish(self) -> None:
        counts = {name: getattr(self._counts, name) for name in _Counts.__slots__}
        await self._tx.take("meetings_add_counts", {"job_id": self._job_id, **counts})
        await searching.enqueue(self._tx, self._collection, self._touched)

    async def _documents(self, rows: Sequence[_Row]) -> Mapping[DocumentKey, Document]:
        await self._check_known()
        known = self._known.of(self._collection)
        wanted = {row.position[:2] for row in rows}
        documents = {key: known[key] for key in wanted if key in known}
        unknown = [(*self._collection, *key) for key in sorted(wanted - documents.keys())]
        documents |= await self._look_up("meetings_find_documents", unknown)
        missing = [(*key, self._job_id) for key in unknown if key[2:] not in documents]
        documents |= await self._look_up("meetings_add_documents", missing)
        self._counts.documents_created += len(missing)
        return documents

    async def _check_known(self) -> None:
        newest = self._known.newest(self._collection)
        if newest is None:
            return
        found = await self._tx.fetch("meetings_document_created", {"id": newest.id})
        if not found or found[0][0] != newest.created_at:
            self._known.forget(self._collection)

    async def _look_up(
        self, query: str, keys: Sequence[tuple[Any, ...]]
    ) -> dict[DocumentKey, Document]:
        rows = await self._tx.take_many(query, keys)
        documents = {(meeting, day): Document(*rest) for meeting, day, *rest, _ in rows}
        self._learn(documents, max((Witness(row[2], row[5]) for row in rows), default=None))
        return documents

    def _learn(self, documents: Mapping[DocumentKey, Document], newest: Witness | None) -> None:
        if documents:
            self._tx.after_commit(partial(self._known.add, self._collection, documents, newest))

    async def _find(self, keys: Iterable[_Key]) -> dict[_Key, _Stored]:
        rows = await self._tx.take_many("meetings_find_pages", sorted(keys))
        pages = [_Stored(*row) for row in rows]
        return {(page.document_id, page.number): page for page in pages}

    async def _add(self, new: dict[_Key, _Row]) -> None:
        municipality_id, document_type = self._collection
        rows = []
        for key in sorted(new):
            upstream_id, _, _, content, content_hash = new[key]
            text, page_image, extra = content
            rows.append(
                (key[0], municipality_id, document_type, key[1], upstream_id, content_hash, text,
                 page_image, extra, self._job_id)
            )  # fmt: skip
        if rows:
            await self._tx.copy("meetings_pages", _PAGE_COLUMNS, rows)
        self._touched += [row.upstream_id for row in new.values()]
        self._changed.update(document_id for document_id, _ in new)
        self._counts.pages_created += len(rows)

    async def _update(self, rows: dict[_Key, list[_Row]], known: dict[_Key, _Stored]) -> None:
        changing = {key: group for key, group in rows.items() if _differs(known[key], group)}
        self._counts.pages_unchanged += sum(
            len(group) for key, group in rows.items() if key not in changing
        )
        if not changing:
            return
        held = {key: known[key] for key in changing}
        duplicates = await self._duplicates(changing.values())
        changes = _Changes()
        for key, group in sorted(changing.items()):
            for row in sorted(group):
                self._judge(held, key, row, duplicates, changes)
        await self._write(changes)

    async def _duplicates(self, rows: Iterable[Sequence[_Row]]) -> set[tuple[str, int]]:
        ids = sorted({row.upstream_id for group in rows for row in group})
        keys = [(*self._collection, upstream_id) for upstream_id in ids]
        rows = await self._tx.take_many("meetings_find_versions", keys)
        return {(row[0], row[1]) for row in rows if row[2] == DUPLICATE}

    def _judge(
        self,
        held: dict[_Key, _Stored],
        key: _Key,
        row: _Row,
        duplicates: set[tuple[str, int]],
        changes: _Changes,
    ) -> None:
        page = held[key]
        newer = page.job_id > self._job_id and not page.vanished
        if newer or not _differs(page, [row]):
            changes.unchanged += 1
        elif row.upstream_id == page.upstream_id:
            # The same row, back after it vanished, or changed by a site that keeps its ids.
            state = SUPERSEDED if row.hash != page.content_hash else None
            self._replace(held, key, row, state, changes)
        elif page.job_id == self._job_id and row.upstream_id < page.upstream_id:
            changes.duplicates.append((page, row))
        elif page.job_id < self._job_id and (row.upstream_id, page.id) in duplicates:
            changes.unchanged += 1
        else:
            state = DUPLICATE if page.job_id == self._job_id else SUPERSEDED
            self._replace(held, key, row, state, changes)

    def _replace(
        self,
        held: dict[_Key, _Stored],
        key: _Key,
        row: _Row,
        state: str | None,
        changes: _Changes,
    ) -> None:
        changes.replaced.append((held[key], row, state))
        held[key] = held[key]._replace(
            upstream_id=row.upstream_id, content_hash=row.hash, job_id=self._job_id, vanished=0
        )

    async def _write(self, changes: _Changes) -> None:
        """Writes changes, one after the other if a page changes twice in a batch, which is rare."""
        self._counts.pages_unchanged += changes.unchanged + len(changes.duplicates)
        self._counts.pages_updated += len(changes.replaced)
        self._touched += [row.upstream_id for _, row, _ in changes.replaced]
        self._changed.update(page.document_id for page, _, _ in changes.replaced)
        while changes.replaced:
            now: dict[int, tuple[_Stored, _Row, str | None]] = {}
            later = []
            for change in changes.replaced:
                if now.setdefault(change[0].id, change) is not change:
                    later.append(change)
            await self._replace_pages(list(now.values()))
            changes.replaced = later
        municipality_id, document_type = self._collection
        versions = [
            {
                "municipality_id": municipality_id,
                "document_type": document_type,
                "upstream_id": row.upstream_id,
                "page_id": page.id,
                "state": DUPLICATE,
                "content_hash": row.hash,
                **row.content._asdict(),
                "job_id": self._job_id,
            }
            for page, row in changes.duplicates
        ]
        await self._tx.take_many("meetings_add_versions", versions)

    async def _replace_pages(self, changes: Sequence[tuple[_Stored, _Row, str | None]]) -> None:
        versions = [(state, page.id) for page, _, state in changes if state is not None]
        municipality_id, document_type = self._collection
        shown = {
            "municipality_id": municipality_id,
            "document_type": document_type,
            "ids": [row.upstream_id for _, row, _ in changes],
        }
        await self._tx.take("meetings_forget_versions", shown)
        await self._tx.take_many("meetings_keep_versions", versions)
        rows = [
            {
                "upstream_id": row.upstream_id,
                "content_hash": row.hash,
                **row.content._asdict(),
                "job_id": self._job_id,
                "id": page.id,
            }
            for page, row, _ in changes
        ]
        await self._tx.take_many("meetings_change_pages", rows)


def _differs(page: _Stored, rows: Sequence[_Row]) -> bool:
    return bool(page.vanished) or any(
        row.upstream_id != page.upstream_id or row.hash != page.content_hash for row in rows
    )
