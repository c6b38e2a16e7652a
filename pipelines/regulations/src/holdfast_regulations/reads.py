"""Reads for the pages, routes and commands of regulations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import orjson

from holdfast.clock import Clock
from holdfast.model import Json
from holdfast.pipeline import Fetch, ItemEvidence
from holdfast.text_search import search_query, snippet_parts
from holdfast_regulations.content import Ages, Staleness, staleness

_INSTANTS = frozenset(
    {
        "first_seen_at", "changed_at", "last_verified_at", "unavailable_since", "captured_at",
        "fetched_at", "read_at", "last_capture_at",
    }
)  # fmt: skip
_LAST_ID = 2**62


def row_of(row: Any) -> Json:
    """Returns the row by column name, with parsed instants on both databases."""
    names = list(row.keys())
    return {name: _value(name, row[name]) for name in names}


def _value(name: str, value: Any) -> Any:
    if name in _INSTANTS and isinstance(value, str):
        return datetime.fromisoformat(value)
    return value


@dataclass(frozen=True, slots=True)
class DocumentFilter:
    source: str | None = None
    staleness: Staleness | None = None


class RegulationsReads:
    def __init__(self, fetch: Fetch, ages: Ages, clock: Clock) -> None:
        self._fetch = fetch
        self._ages = ages
        self._clock = clock

    async def health(self) -> dict[str, Json]:
        """Counts documents by source, in all and of each staleness."""
        rows = await self._fetch("regulations_health", self._limits())
        return {row["source"]: row_of(row) for row in rows}

    async def documents(self, wanted: DocumentFilter, before: int | None, limit: int) -> list[Json]:
        """Lists documents, the newest first."""
        params = {
            **self._limits(),
            "source": wanted.source,
            "staleness": wanted.staleness and wanted.staleness.value,
            "before": before or _LAST_ID,
            "limit": limit,
        }
        rows = await self._fetch("regulations_documents_page", params)
        return [self._document(row) for row in rows]

    async def document(self, document_id: int) -> Json | None:
        rows = await self._fetch("regulations_document", {"id": document_id})
        return self._document(rows[0]) if rows else None

    async def captures(self, key: str, limit: int) -> list[Json]:
        """Lists a document's captures, the latest first."""
        rows = await self._fetch("regulations_captures_of", {"key": key, "limit": limit})
        return [row_of(row) for row in rows]

    async def versions(self, key: str, limit: int) -> list[Json]:
        """Lists each text that a document had, the latest first, with when it was seen first."""
        rows = await self._fetch("regulations_versions_of", {"key": key, "limit": limit})
        return [row_of(row) for row in rows]

    async def text(self, sha256: str) -> str:
        rows = await self._fetch("regulations_text", {"sha256": sha256})
        return str(rows[0]["text"]) if rows else ""

    async def evidence(self, evidence_id: int) -> Json | None:
        rows = await self._fetch("regulations_evidence_row", {"id": evidence_id})
        return row_of(rows[0]) if rows else None

    async def run_counts(self, job_id: int) -> dict[str, dict[str, int]]:
        """Returns what a run left out, by source and reason."""
        counts: dict[str, dict[str, int]] = {}
        for row in await self._fetch("regulations_run_counts", {"job_id": job_id}):
            counts.setdefault(row["source"], {})[row["reason"]] = int(row["count"])
        return counts

    async def run_reasons(self, job_id: int) -> dict[str, dict[str, int]]:
        """Returns what its captures added, by source and reason."""
        counts: dict[str, dict[str, int]] = {}
        for row in await self._fetch("regulations_run_reasons", {"job_id": job_id}):
            counts.setdefault(row["source"], {})[row["reason"]] = int(row["count"])
        return counts

    async def search(
        self, words: str, source: str | None, before: int | None, limit: int
    ) -> list[Json]:
        query = search_query(words)
        if not query:
            return []
        params = {
            "words": query,
            "source": source,
            "before": before or _LAST_ID,
            "limit": limit,
        }
        rows = await self._fetch("regulations_search", params)
        return [row_of(row) | {"snippet": snippet_parts(row["snippet"] or "")} for row in rows]

    def _document(self, row: Any) -> Json:
        document = row_of(row)
        verified = document["last_verified_at"] or document["first_seen_at"]
        now = self._clock.now()
        state = staleness(now, verified, document["unavailable_since"], self._ages)
        return document | {"staleness": state}

    def _limits(self) -> Mapping[str, datetime]:
        now = self._clock.now()
        return {
            "aging": now - self._ages.aging,
            "stale": now - self._ages.stale,
            "expired": now - self._ages.expired,
        }


async def evidence_of_item(fetch: Fetch, job_id: int, seq: int) -> Sequence[ItemEvidence]:
    rows = await fetch("regulations_captures_of_item", {"job_id": job_id, "seq": seq})
    return [_shown(row_of(row)) for row in rows]


def _shown(row: Json) -> ItemEvidence:
    return ItemEvidence(
        f"{row['reason']}: {row['url']}",
        row["captured_at"],
        {"status": row["status"], "SHA-256": row["sha256"], "bytes": row["size"]},
        f"/regulations/documents/{row['document_id']}",
    )


def headers_of(stored: Any) -> list[tuple[str, str]]:
    pairs = orjson.loads(stored) if isinstance(stored, str | bytes) else stored
    return [(name, value) for name, value in pairs]
