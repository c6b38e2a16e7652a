"""Messages that name a task, as our envelope has them.

In them, `version` is "1.0", `job_id` is the producer's own correlation id and tracing is a pair of
ids; in ours, `version` is a number, `job_id` is ours, and tracing is a W3C traceparent. Pure; what
is wrong is a BadEnvelope, so that the message is set aside with its reason.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from typing import Any

from holdfast.errors import BadEnvelope
from holdfast.model import Json

TYPE = "entity.match"
_VERSION = "1.0"
_PARTS = frozenset({"header", "body", "tracing"})
_HEADER = frozenset(
    {"job_id", "type", "version", "created_at", "attempt", "max_attempts", "signature"}
)
_REQUIRED_HEADER = _HEADER - {"attempt", "max_attempts", "signature"}
_BODY = frozenset({"project_id", "task_id", "dataset_entry_id"})
_CORRELATION_ID = re.compile(r"[\x21-\x7e]{1,200}")
_TRACE_ID = re.compile(r"[0-9a-f]{32}")
_SPAN_ID = re.compile(r"[0-9a-f]{16}")
_NAMESPACE = uuid.UUID("6f2d3c0e-5c1b-5f0a-9d5e-0e2f7b8a9c11")
_LARGEST_ID = 2**63 - 1


def is_task_form(message: Mapping[str, Any]) -> bool:
    """Whether a message is of the form that names a task, right or wrong."""
    header = message.get("header")
    return isinstance(header, Mapping) and isinstance(header.get("version"), str)


def to_envelope(message: Mapping[str, Any]) -> Json:
    """Returns our envelope for a message that names a task.

    The same message gives the same message id, so that a second delivery is recognized; a new
    attempt of the producer is another message."""
    _check_keys("the message", message, _PARTS, {"header", "body"})
    header, body = _object(message, "header"), _object(message, "body")
    _check_keys("header", header, _HEADER, _REQUIRED_HEADER)
    _check_type(header)
    correlation_id = str(header["job_id"])
    if not _CORRELATION_ID.fullmatch(correlation_id):
        raise BadEnvelope("MALFORMED", "header.job_id is not 1 to 200 visible ASCII characters")
    attempt, most = _attempt(header, "attempt"), _attempt(header, "max_attempts")
    name = f"{header['type']} {correlation_id} {attempt}"
    return {
        "header": {
            "message_id": str(uuid.uuid5(_NAMESPACE, name)),
            "correlation_id": correlation_id,
            "type": TYPE,
            "version": 1,
            "created_at": header["created_at"],
            "attempt": attempt,
            "max_attempts": max(attempt, most),
        },
        "body": _ids(body),
        "tracing": _tracing(message.get("tracing")),
    }


def _object(message: Mapping[str, Any], part: str) -> Mapping[str, Any]:
    value = message[part]
    if not isinstance(value, Mapping):
        raise BadEnvelope("MALFORMED", f"{part} is not an object")
    return value


def _check_keys(
    part: str, value: Mapping[str, Any], known: frozenset[str], needed: frozenset[str] | set[str]
) -> None:
    unknown = sorted(set(value) - known)
    if unknown:
        raise BadEnvelope("MALFORMED", f"{part} has the unknown field {unknown[0][:50]!r}")
    missing = sorted(needed - set(value))
    if missing:
        raise BadEnvelope("MALFORMED", f"{part} lacks {missing[0]!r}")


def _check_type(header: Mapping[str, Any]) -> None:
    if header["type"] != TYPE:
        raise BadEnvelope("UNKNOWN_TYPE", f"there is no type {str(header['type'])[:50]!r}")
    if header["version"] != _VERSION:
        version = str(header["version"])[:50]
        raise BadEnvelope("UNKNOWN_VERSION", f"{TYPE} has no version {version!r}; known: 1.0")


def _attempt(header: Mapping[str, Any], field: str) -> int:
    value = header.get(field, 1)
    if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= 1000:
        raise BadEnvelope("MALFORMED", f"header.{field} is not a number from 1 to 1000")
    return value


def _ids(body: Mapping[str, Any]) -> dict[str, int]:
    try:
        _check_keys("body", body, _BODY, {"project_id", "task_id"})
    except BadEnvelope as error:
        raise BadEnvelope("BAD_BODY", error.reason) from None
    for field, value in body.items():
        if isinstance(value, bool) or not isinstance(value, int) or not 1 <= value <= _LARGEST_ID:
            raise BadEnvelope("BAD_BODY", f"body.{field} is not an id")
    return dict(body)


def _tracing(tracing: Any) -> dict[str, str]:
    """Returns a traceparent of the two ids; ids of zeros mean nothing and are refused."""
    if tracing is None or tracing == {}:
        return {}
    if not isinstance(tracing, Mapping):
        raise BadEnvelope("MALFORMED", "tracing is not an object")
    _check_keys("tracing", tracing, frozenset({"trace_id", "span_id"}), {"trace_id", "span_id"})
    trace_id, span_id = str(tracing["trace_id"]), str(tracing["span_id"])
    if not _TRACE_ID.fullmatch(trace_id) or not int(trace_id, 16):
        raise BadEnvelope("MALFORMED", "tracing.trace_id is not 32 hex digits, or only zeros")
    if not _SPAN_ID.fullmatch(span_id) or not int(span_id, 16):
        raise BadEnvelope("MALFORMED", "tracing.span_id is not 16 hex digits, or only zeros")
    return {"traceparent": f"00-{trace_id}-{span_id}-01"}
