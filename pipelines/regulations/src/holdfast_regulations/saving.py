"""Writes captures, in the transaction that settles their items: evidence is only ever added."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC
from typing import Any

import orjson

from holdfast.errors import RetryClass, error_code
from holdfast.model import ItemStatus, Job, Json
from holdfast.pipeline import Settled, Tx
from holdfast.text_search import TextIndex
from holdfast_regulations.canonical import item_id
from holdfast_regulations.extract import Extract
from holdfast_regulations.fetching import Capture, Reason
from holdfast_regulations.sources import Mode

SEARCH = TextIndex("regulations_search")
_LONGEST_REASON = 500
_NEW_VERSIONS = frozenset({Reason.NEW, Reason.COPY, Reason.CHANGED, Reason.SAME_TEXT})


async def save(tx: Tx, settled: Sequence[Settled]) -> None:
    done = [item for item in settled if item.status is ItemStatus.DONE]
    ids: list[int] = []
    for batch in _distinct(done):
        ids += await _save_captures(tx, batch)
    if ids:
        await SEARCH.enqueue(tx, {"ids": ids})
    missing = [item for item in settled if _is_missing(item)]
    for item in sorted(missing, key=lambda item: item.seq):
        await _mark_unavailable(tx, item)
    await _forget_sitemaps(tx, settled)


async def _forget_sitemaps(tx: Tx, settled: Sequence[Settled]) -> None:
    """Forgets sitemaps that list a URL which failed for a reason that may pass: the next run reads
    them again, and takes it again."""
    failed = [item for item in settled if _may_pass(item) and _is_from_sitemap(item)]
    listed = {(item.row["source"], item.row["listed_on"], item.job.id) for item in failed}
    for source, url, job_id in sorted(listed):
        params = {"source": source, "url": url, "job_id": job_id}
        await tx.take("regulations_forget_sitemap", params)


def _may_pass(item: Settled) -> bool:
    if item.status is not ItemStatus.ERROR or item.code is None:
        return False
    return error_code(item.code).retry is not RetryClass.NEVER


def _is_from_sitemap(item: Settled) -> bool:
    job, source = item.job, item.row["source"]
    mode: str = job.options.get("mode") or job.reading.plan["sources"][source]["mode"]
    return mode == Mode.SITEMAP


def _distinct(items: Sequence[Settled]) -> Iterator[list[Settled]]:
    """Yields batches without repeated documents: one statement changes a row only once."""
    batch: dict[str, Settled] = {}
    for item in items:
        if item.effects.key in batch:
            yield list(batch.values())
            batch = {}
        batch[item.effects.key] = item
    if batch:
        yield list(batch.values())


async def _save_captures(tx: Tx, items: list[Settled]) -> list[int]:
    """Saves captures; returns the ids of the documents."""
    await _save_content(tx, [item.effects for item in items])
    # In the order of their keys, so that two workers that save the same do not wait for each other
    # in turn.
    items.sort(key=lambda item: item.effects.key)
    rows = await tx.take_many("regulations_save_documents", [_document(item) for item in items])
    evidence = await _evidence_ids(tx, [item.effects for item in items])
    await tx.take_many(
        "regulations_add_captures",
        [_capture(item, evidence[_place(item.effects)]) for item in items],
    )
    return [int(row["id"]) for row in rows]


async def _save_content(tx: Tx, captures: Sequence[Capture]) -> None:
    bodies = {capture.sha256: capture.body for capture in captures if capture.body is not None}
    await tx.take_many(
        "regulations_add_bodies",
        [
            (sha256, body.size, body.packed_size, body.place.value, body.packed)
            for sha256, body in sorted(bodies.items())
        ],
    )
    extracts = [capture.extract for capture in captures if capture.extract is not None]
    texts = {
        extracted.text_hash: extracted.text for extracted in extracts if extracted.text is not None
    }
    await tx.take_many("regulations_add_texts", sorted(texts.items()))


def _place(capture: Capture) -> tuple[str, str]:
    """Returns what identifies evidence."""
    return capture.url, capture.sha256


async def _evidence_ids(tx: Tx, captures: Sequence[Capture]) -> dict[tuple[str, str], int]:
    """Returns the rows of these URLs and contents, each of which is added once and verified from
    then on."""
    by_place = {_place(capture): capture for capture in captures}
    ids = await _verified(tx, by_place, by_place)
    new = sorted(by_place.keys() - ids.keys())
    added = await tx.take_many(
        "regulations_add_evidence", [_evidence(by_place[place]) for place in new]
    )
    ids |= _ids(added)
    raced = sorted(by_place.keys() - ids.keys())  # another worker added them since
    return ids | await _verified(tx, raced, by_place)


async def _verified(
    tx: Tx, places: Iterable[tuple[str, str]], captures: Mapping[tuple[str, str], Capture]
) -> dict[tuple[str, str], int]:
    rows = [(*place, _instant(captures[place])) for place in sorted(places)]
    return _ids(await tx.take_many("regulations_verify_evidence", rows))


def _ids(rows: Iterable[Any]) -> dict[tuple[str, str], int]:
    return {(row["url"], row["sha256"]): int(row["id"]) for row in rows}


def _instant(capture: Capture) -> str:
    utc = capture.captured_at.astimezone(UTC).replace(tzinfo=None)
    return f"{utc.isoformat(timespec='milliseconds')}Z"


def _evidence(capture: Capture) -> Json:
    extracted = capture.extract
    return {
        "key": capture.key,
        "url": capture.url,
        "sha256": capture.sha256,
        "text_sha256": extracted and extracted.text_hash,
        "content_class": extracted.kind.value if extracted else "",
        "content_type": capture.content_type,
        "title": extracted.title if extracted else "",
        "size": capture.size,
        "etag": capture.etag,
        "fetched_at": _instant(capture),
    }


def _capture(item: Settled, evidence_id: int) -> Json:
    capture: Capture = item.effects
    return {
        "key": capture.key,
        "evidence_id": evidence_id,
        "url": capture.url,
        "final_url": capture.final_url,
        "captured_at": _instant(capture),
        "status": capture.status,
        "headers": orjson.dumps(capture.headers).decode(),
        "reason": capture.reason.value,
        "found_by": item.job.lane.value,
        "job_id": item.job.id,
        "seq": item.seq,
    }


def _document(item: Settled) -> Json:
    capture: Capture = item.effects
    changed = capture.reason not in (Reason.UNCHANGED, Reason.SAME_TEXT)
    return {
        "key": capture.key,
        "source": capture.source,
        "canonical": capture.canonical,
        "url": capture.url,
        **_about(capture.extract),
        "sha256": capture.sha256,
        "found_by": item.job.lane.value,
        "versions": int(capture.reason in _NEW_VERSIONS),
        "captured_at": _instant(capture),
        "changed_at": _instant(capture) if changed else None,
        "job_id": item.job.id,
        "seq": item.seq,
    }


def _about(extracted: Extract | None) -> Json:
    """Returns the values to store; None leaves what is known of the document as it is."""
    act = extracted.act if extracted else None
    published = extracted.published if extracted else None
    return {
        "title": extracted.title if extracted else None,
        "published": str(published) if published else None,
        "part": act.part if act else None,
        "year": act.year if act else None,
        "issue": act.issue if act else None,
        "act": act.act if act else None,
        "eli": act.eli if act else None,
        "content_class": extracted.kind.value if extracted else None,
        "text_sha256": extracted.text_hash if extracted else None,
    }


def _is_missing(item: Settled) -> bool:
    """Whether the source did not give the document.

    Refusals by our own robots, ranges and switches say nothing about it."""
    if item.status is ItemStatus.NOT_FOUND:
        return True
    return item.status is ItemStatus.ERROR and item.code != "ROBOTS_DISALLOWED"


async def _mark_unavailable(tx: Tx, item: Settled) -> None:
    reason = item.message or item.code or item.status.value
    params = {
        "key": item_id(item.row["source"], item.row["canonical"]),
        "reason": reason[:_LONGEST_REASON],
    }
    await tx.take("regulations_mark_unavailable", params)


async def note(tx: Tx, job: Job, notes: Any, taken: int) -> None:
    """Notes what a page of a source contained besides new URLs: counts by reason, URL forms of
    acts, the sitemaps that are stored completely now, and those that an index lists."""
    source = notes["source"]
    counts = dict(notes["counts"])
    forms = [(key, url) for position, key, url in notes["forms"] if position < taken]
    other_forms = await _add_forms(tx, forms)
    if other_forms:
        counts["known.OTHER_URL_OF_ACT"] = other_forms
    for reason, count in sorted(counts.items()):
        params = {"job_id": job.id, "source": source, "reason": reason, "count": count}
        await tx.take("regulations_add_count", params)
    for url, modified, etag in notes["finished"]:
        mark = {"url": url, "modified": modified, "etag": etag, "definition": notes["definition"]}
        await tx.take("regulations_mark_sitemap", {"source": source, "job_id": job.id, **mark})
    for url, children in notes["indexes"]:
        index = {"job_id": job.id, "source": source, "url": url}
        await tx.take(
            "regulations_keep_index", {**index, "children": orjson.dumps(children).decode()}
        )
    if notes["ended"]:
        await tx.take("regulations_forget_indexes", {"job_id": job.id, "source": source})


async def _add_forms(tx: Tx, forms: Sequence[tuple[str, str]]) -> int:
    """Adds URL forms; returns how many are another form of an act that was listed before."""
    if not forms:
        return 0
    keys = sorted({key for key, _ in forms})
    known: dict[str, set[str]] = {}
    for row in await tx.fetch("regulations_forms_of", {"keys": keys}):
        known.setdefault(row["key"], set()).add(row["url"])
    new: list[tuple[str, str]] = []
    other_forms = 0
    for key, url in forms:
        urls = known.setdefault(key, set())
        if url not in urls:
            other_forms += bool(urls)
            urls.add(url)
            new.append((key, url))
    await tx.take_many("regulations_add_forms", sorted(new))
    return other_forms
