"""Verifies evidence: every body and text is hashed again, every capture must have its body."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from holdfast.errors import GateWait
from holdfast.model import Json
from holdfast.pipeline import Fetch
from holdfast.stored_files import PipelineFiles
from holdfast_regulations import bodies
from holdfast_regulations.extract import text_hash

_AT_ONCE = 50
_MOST_ORPHANS = 1000


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a body, a text or a capture."""

    kind: str
    name: str
    problem: str


@dataclass(slots=True)
class Report:
    bodies: int = 0
    bytes: int = 0
    texts: int = 0
    faults: list[Fault] = field(default_factory=list)

    def as_json(self) -> Json:
        faults = [
            {"kind": fault.kind, "name": fault.name, "problem": fault.problem}
            for fault in self.faults
        ]
        return {
            "bodies": self.bodies, "bytes": self.bytes, "texts": self.texts, "faults": faults,
        }  # fmt: skip


async def verify(
    fetch: Fetch, files: PipelineFiles, sources: Sequence[str] | None = None
) -> Report:
    """Verifies what was captured of these sources, by their slugs; or everything."""
    report = Report()
    chosen = choice(sources)
    async for row in _rows(fetch, "regulations_bodies_page", chosen):
        report.bodies += 1
        report.bytes += int(row["size"])
        problem = await _problem(row, files)
        if problem is not None:
            report.faults.append(Fault("body", row["sha256"], problem))
    async for row in _rows(fetch, "regulations_texts_page", chosen):
        report.texts += 1
        if text_hash(row["text"]) != row["sha256"]:
            report.faults.append(Fault("text", row["sha256"], "its words have another hash"))
    orphans = await fetch("regulations_orphans", {"limit": _MOST_ORPHANS, **chosen})
    report.faults += _orphans(orphans)
    return report


def choice(sources: Sequence[str] | None) -> Json:
    """Returns the parameters of a query that reads some sources, or all."""
    return {"every": int(sources is None), "sources": list(sources or ())}


async def _rows(fetch: Fetch, query: str, chosen: Json) -> AsyncIterator[Any]:
    after = ""
    while rows := await fetch(query, {"after": after, "limit": _AT_ONCE, **chosen}):
        for row in rows:
            yield row
        after = rows[-1]["sha256"]


async def _problem(row: Any, files: PipelineFiles) -> str | None:
    try:
        await bodies.load(row, files)
    except bodies.DamagedBody as error:
        return str(error)
    except GateWait as gone:  # the file store does not answer
        return str(gone)
    return None


def _orphans(rows: list[Any]) -> Iterator[Fault]:
    for row in rows:
        problem = f"{row['url']}: its body, evidence or document is missing"
        yield Fault("capture", str(row["id"]), problem)
