"""Writes captures, in the transaction that settles their items: evidence is only ever added."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from holdfast.model import ItemStatus, Job, Json
from holdfast.pipeline import Settled, Tx
from holdfast.pipelines.regulations.canonical import item_id
from holdfast.pipelines.regulations.extract import Extract
from holdfast.pipelines.regulations.fetching import Capture, Reason
from holdfast.text_search import TextIndex

SEARCH = TextIndex("regulations_search")
_LONGEST_REASON = 500
_NEW_VERSIONS = frozenset({Reason.NEW, Reason.COPY, Reason.CHANGED, Reason.SAME_TEXT})


async def save(tx: Tx, settled: Sequence[Settled]) -> None:
    done = [item for item in settled if item.status is ItemStatus.DONE]
    # In the order of their keys: two workers that store the same body do not wait for each other
    # in turn.
    done.sort(key=lambda item: (item.effects.sha256, item.effects.key))
    for item in done:
        await _save_content(tx, item.effects)
    done.sort(key=lambda item: item.effects.key)
    ids = [await _save_capture(tx, item, item.effects) for item in done]
    if ids:
        await SEARCH.enqueue(tx, {"ids": ids})
    missing = [item for item in settled if _is_missing(item)]
    for item in sorted(missing, key=lambda item: item.seq):
        await _mark_unavailable(tx, item)


async def _save_content(tx: Tx, capture: Capture) -> None:
    body, extracted = capture.body, capture.extract
    if body is not None:
        params = {
            "sha256": body.sha256,
            "size": body.size,
            "packed_size": body.packed_size,
            "place": body.place.value,
            "packed": body.packed,
        }
        await tx.take("regulations_add_body", params)
    if extracted is not None and extracted.text is not None:
        text = {"sha256": extracted.text_hash, "text": extracted.text.replace("\0", "")}
        await tx.take("regulations_add_text", text)


async def _save_capture(tx: Tx, item: Settled, capture: Capture) -> int:
    """Returns the id of the document."""
    rows = await tx.take("regulations_save_document", _document(item, capture))
    evidence_id = await _evidence(tx, capture)
    params = {
        "key": capture.key,
        "evidence_id": evidence_id,
        "url": capture.url,
        "final_url": capture.final_url,
        "sha256": capture.sha256,
        "captured_at": capture.captured_at,
        "status": capture.status,
        "headers": orjson.dumps(capture.headers).decode(),
        "reason": capture.reason.value,
        "found_by": item.job.lane.value,
        "job_id": item.job.id,
        "seq": item.seq,
    }
    await tx.take("regulations_add_capture", params)
    return int(rows[0]["id"])


async def _evidence(tx: Tx, capture: Capture) -> int:
    """The row of this URL and content, which is added once and verified ever after."""
    place = {"url": capture.url, "sha256": capture.sha256}
    verified = {**place, "captured_at": capture.captured_at}
    rows = await tx.take("regulations_verify_evidence", verified)
    if rows:
        return int(rows[0]["id"])
    extracted = capture.extract
    content = {
        **place,
        "key": capture.key,
        "text_sha256": extracted and extracted.text_hash,
        "content_class": extracted.kind.value if extracted else "",
        "content_type": capture.content_type,
        "title": extracted.title if extracted else "",
        "size": capture.size,
        "etag": capture.etag,
        "fetched_at": capture.captured_at,
    }
    added = await tx.take("regulations_add_evidence", content)
    if not added:  # another worker added it since
        added = await tx.take("regulations_verify_evidence", verified)
    return int(added[0]["id"])


def _document(item: Settled, capture: Capture) -> Json:
    changed = capture.reason not in (Reason.UNCHANGED, Reason.SAME_TEXT)
    return {
        "key": capture.key,
        "source": capture.source,
        "canonical": capture.canonical,
        "url": capture.url,
        "sha256": capture.sha256,
        "found_by": item.job.lane.value,
        "versions": int(capture.reason in _NEW_VERSIONS),
        "changed": int(changed),
        "captured_at": capture.captured_at,
        "job_id": item.job.id,
        "seq": item.seq,
        **_about(capture.extract),
    }


def _about(extracted: Extract | None) -> Json:
    """None leaves what is known of the document as it is."""
    act = extracted.act if extracted else None
    published = extracted.published if extracted else None
    return {
        "title": extracted and extracted.title,
        "published": str(published) if published else None,
        "part": act and act.part,
        "year": act and act.year,
        "issue": act and act.issue,
        "act": act and act.act,
        "eli": act and act.eli,
        "content_class": extracted and extracted.kind.value,
        "text_sha256": extracted and extracted.text_hash,
    }


def _is_missing(item: Settled) -> bool:
    """Whether the source did not give the document. What our own robots, ranges and switches
    refused says nothing about it."""
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


async def note(tx: Tx, job: Job, notes: Any) -> None:
    """What a page of a source contained besides new URLs: counts by reason, URL forms of acts,
    and the sitemaps that are stored whole now."""
    source = notes["source"]
    counts = dict(notes["counts"])
    other_forms = await _add_forms(tx, notes["forms"])
    if other_forms:
        counts["known.OTHER_URL_OF_ACT"] = other_forms
    for reason, count in sorted(counts.items()):
        params = {"job_id": job.id, "source": source, "reason": reason, "count": count}
        await tx.take("regulations_add_count", params)
    for url, modified, etag in notes["finished"]:
        mark = {"url": url, "modified": modified, "etag": etag, "definition": notes["definition"]}
        await tx.take("regulations_mark_sitemap", {"source": source, **mark})


async def _add_forms(tx: Tx, forms: Sequence[tuple[str, str]]) -> int:
    """How many of these URLs are another form of an act that was listed before."""
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
