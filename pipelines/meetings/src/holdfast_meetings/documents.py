"""Remembers the documents that this process found or made: each is looked up once, not for every
batch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

#: Maximum over all collections together. Beyond it, all are looked up again.
_MOST = 50_000

#: Municipality and document type.
CollectionKey = tuple[int, str]
#: Meeting and date: a document within its collection.
DocumentKey = tuple[str, str]


class Document(NamedTuple):
    """A document as it is stored, and the latest jobs that saw it and that changed it."""

    id: int
    seen_job_id: int
    changed_job_id: int


class Witness(NamedTuple):
    """The newest document that was known."""

    id: int
    created_at: Any


class KnownDocuments:
    """Only what was committed. No document is ever deleted, and those of a collection are committed
    in the order of their ids: while the newest one is there, all are. If it is not, the database
    was restored. The jobs that saw and changed a document may have become later ones."""

    def __init__(self) -> None:
        self._documents: dict[CollectionKey, dict[DocumentKey, Document]] = {}
        self._newest: dict[CollectionKey, Witness] = {}

    def of(self, collection: CollectionKey) -> Mapping[DocumentKey, Document]:
        return self._documents.get(collection, {})

    def newest(self, collection: CollectionKey) -> Witness | None:
        return self._newest.get(collection)

    def add(
        self,
        collection: CollectionKey,
        documents: Mapping[DocumentKey, Document],
        newest: Witness | None,
    ) -> None:
        if len(documents) + sum(map(len, self._documents.values())) > _MOST:
            self._documents.clear()
            self._newest.clear()
        known = self._newest.get(collection)
        newest = max(filter(None, (known, newest)), default=None)
        if newest is not None:
            self._documents.setdefault(collection, {}).update(documents)
            self._newest[collection] = newest

    def forget(self, collection: CollectionKey) -> None:
        self._documents.pop(collection, None)
        self._newest.pop(collection, None)
