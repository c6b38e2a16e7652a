"""Decides what a message is: an event with a batch, a legacy reference to one post, or a post
itself.

It is strict: a message that is none of them, or several, is unknown and becomes a dead letter. The
format is never guessed, and never depends on which formats are switched on.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum
from typing import Any

import orjson

from holdfast.consumers import BadMessage
from holdfast_posts.job_ids import DRY_RUN, NOT_ATTRIBUTED, Attribution, attribute
from holdfast_posts.values import (
    count_of,
    id_of,
    instant_of,
    kind_of,
    mapping_of,
    word_of,
)

EVENT_TYPE = "data.collected"
_LONGEST_PATH = 700
_LONGEST_NAME = 100


class Format(StrEnum):
    EVENT = "event"
    LEGACY = "legacy"
    INLINE = "inline"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Message:
    """A message and its format. `key` identifies it: a second one with it changes nothing."""

    format: Format
    key: str
    bucket: str | None
    path: str | None
    platform: str | None = None
    job_id: str | None = None
    attribution: Attribution = NOT_ATTRIBUTED
    content_count: int | None = None
    batch_index: int | None = None
    total_batches: int | None = None
    task_type: str | None = None
    keyword: str | None = None
    sent_at: datetime | None = None
    post: Mapping[str, Any] | None = None  # inline
    warnings: tuple[str, ...] = ()

    @property
    def batch_key(self) -> str:
        return self.key if self.path is None else f"{self.bucket}/{self.path}"

    @property
    def scope(self) -> str:
        return self.attribution.scope(self.job_id)


def classify(envelope: Any) -> Format:
    if not isinstance(envelope, Mapping):
        return Format.UNKNOWN
    if "payload" in envelope:
        return Format.EVENT if _is_event(envelope) else Format.UNKNOWN
    if "data_ref" in envelope:
        return Format.LEGACY if _is_reference(envelope["data_ref"]) else Format.UNKNOWN
    meta = envelope.get("meta")
    return Format.INLINE if isinstance(meta, Mapping) and id_of(meta.get("id")) else Format.UNKNOWN


def _is_event(envelope: Mapping[str, Any]) -> bool:
    payload = envelope["payload"]
    # The first version of the events had no type.
    is_typed = envelope.get("event_type", EVENT_TYPE) == EVENT_TYPE
    return (
        is_typed
        and "data_ref" not in envelope
        and isinstance(payload, Mapping)
        and isinstance(payload.get("minio_path"), str)
    )


def _is_reference(data_ref: Any) -> bool:
    if not isinstance(data_ref, Mapping):
        return False
    return isinstance(data_ref.get("bucket"), str) and isinstance(data_ref.get("path"), str)


def read_message(body: bytes, max_bytes: int, now: datetime) -> Message:
    """Parses a message; raises BadMessage for one that no further attempt can read."""
    if len(body) > max_bytes:
        raise BadMessage(f"it has {len(body):,} bytes, more than {max_bytes:,}", "TOO_LARGE")
    try:
        envelope = orjson.loads(body)
    except ValueError as error:
        raise BadMessage(f"it is not JSON: {error}", "NOT_JSON") from error
    match classify(envelope):
        case Format.EVENT:
            return _event(envelope, now)
        case Format.LEGACY:
            return _legacy(envelope)
        case Format.INLINE:
            return _inline(envelope, body)
    raise BadMessage(_why_unknown(envelope), "UNKNOWN_FORMAT")


def _event(envelope: Mapping[str, Any], now: datetime) -> Message:
    payload = envelope["payload"]
    bucket, path = _place(*_split(payload["minio_path"]))
    job_id, stated, warnings = _job(payload)
    if not job_id:
        raise BadMessage("its payload has no job_id", "NO_JOB_ID")
    for name in ("content_count", "batch_index", "total_batches"):
        if count_of(payload.get(name)) is None and payload.get(name) is not None:
            warnings.append(f"{name} is {payload[name]!r:.40}")
    sent_at, note = instant_of(envelope.get("timestamp"), now)
    if note:
        warnings.append(f"timestamp {note}")
    event_id = id_of(envelope.get("event_id"), 200)
    return Message(
        Format.EVENT,
        f"event:{event_id}" if event_id else f"batch:{bucket}/{path}",
        bucket,
        path,
        platform_of(payload.get("platform")),
        job_id,
        attribute(job_id, stated),
        content_count=count_of(payload.get("content_count")),
        batch_index=count_of(payload.get("batch_index")),
        total_batches=count_of(payload.get("total_batches")),
        task_type=word_of(payload.get("task_type"), 30),
        keyword=word_of(payload.get("keyword"), 200),
        sent_at=sent_at,
        warnings=tuple(warnings),
    )


def _legacy(envelope: Mapping[str, Any]) -> Message:
    data_ref = envelope["data_ref"]
    bucket, path = _place(data_ref["bucket"], data_ref["path"])
    job_id, stated, warnings = _job({**mapping_of(envelope.get("meta")), **envelope})
    return Message(
        Format.LEGACY,
        f"legacy:{bucket}/{path}",
        bucket,
        path,
        platform_of(envelope.get("platform")),
        job_id,
        attribute(job_id, stated),
        task_type=word_of(envelope.get("task_type"), 30),
        warnings=tuple(warnings),
    )


def _inline(envelope: Mapping[str, Any], body: bytes) -> Message:
    meta = envelope["meta"]
    job_id, stated, warnings = _job({"project_id": envelope.get("project_id"), **meta})
    return Message(
        Format.INLINE,
        f"inline:{hashlib.sha256(body).hexdigest()}",
        None,
        None,
        platform_of(meta.get("platform")),
        job_id,
        attribute(job_id, stated),
        task_type=word_of(meta.get("task_type"), 30),
        post=envelope,
        warnings=tuple(warnings),
    )


def _job(payload: Mapping[str, Any]) -> tuple[str | None, str | None, list[str]]:
    """Returns its job id, the project that it states, and warnings."""
    job_id, stated = payload.get("job_id"), payload.get("project_id")
    found = id_of(job_id, _LONGEST_NAME)
    if job_id is not None and found is None:
        raise BadMessage(f"its job_id is {job_id!r:.60}", "BAD_JOB_ID")
    project = id_of(stated, _LONGEST_NAME)
    if project is not None and project.startswith(DRY_RUN):
        project = None
    odd = stated is not None and project is None and word_of(stated, 10) is not None
    return found, project, [f"project_id is {stated!r:.40}"] if odd else []


def platform_of(value: Any) -> str | None:
    """Returns the platform in lower case; any short word is one."""
    word = word_of(value, 20)
    if word is None or not all(letter.isalnum() or letter in "_-." for letter in word):
        return None
    return word.lower()


def _split(minio_path: str) -> tuple[str, str]:
    bucket, _, path = minio_path.partition("/")
    return bucket, path


def _place(bucket: str, path: str) -> tuple[str, str]:
    segments = path.split("/")
    is_key = (
        0 < len(path.encode("utf-8", "replace")) <= _LONGEST_PATH
        and path.isprintable()
        and "\\" not in path
        and not any(segment in ("", ".", "..") for segment in segments)
    )
    if not bucket or len(bucket) > 63 or not bucket.isprintable() or not is_key:
        raise BadMessage(f"{f'{bucket}/{path}'!r:.120} is not a place in a bucket", "BAD_PATH")
    return bucket, path


def _why_unknown(envelope: Any) -> str:
    if not isinstance(envelope, Mapping):
        return f"it is not an object but {kind_of(envelope)}"
    if "payload" in envelope and "data_ref" in envelope:
        return "it has both a payload and a data_ref"
    if "payload" in envelope:
        if envelope.get("event_type", EVENT_TYPE) != EVENT_TYPE:
            return f"its event_type is {envelope['event_type']!r:.60}"
        return "its payload has no minio_path"
    if "data_ref" in envelope:
        return "its data_ref has no bucket and path"
    return "it has no payload, data_ref or meta"
