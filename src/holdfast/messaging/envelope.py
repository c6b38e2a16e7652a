"""The form of every message: header, body, tracing. The bytes on the wire are this JSON alone.

`python -m holdfast.messaging.envelope` prints its JSON Schema.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import datetime
from math import isfinite
from typing import Annotated, Any, ClassVar

import orjson
from pydantic import (
    AfterValidator,
    AwareDatetime,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    JsonValue,
    ValidationError,
)
from pydantic.json_schema import models_json_schema

from holdfast.errors import BadEnvelope
from holdfast.observe import tracing
from holdfast_client.json_depth import nests_deeper_than

#: the reasons why a message is not one of our envelopes
BAD_ENVELOPE_CODES = {
    "TOO_LARGE": "The message has more than 65,536 bytes.",
    "NOT_JSON": "The message is not JSON that every reader reads alike: UTF-8, each key once, "
    "finite numbers of at most 64 bits, not nested deeper than 32.",
    "MALFORMED": "A field of header or tracing is missing, unknown or of the wrong form.",
    "UNKNOWN_TYPE": "There is no message of this type.",
    "UNKNOWN_VERSION": "The type is known, but not in this version.",
    "BAD_BODY": "The body does not fit the type.",
}

_MAX_DEPTH = 32
_INT64 = range(-(2**63), 2**63)
_SURROGATE = re.compile(r"\\u[dD][89a-fA-F]")
_UUID = r"^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$"
_TRACEPARENT = r"^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"
_TRACESTATE_MEMBER = re.compile(
    r"[a-z0-9][a-z0-9_\-*/@]{0,255}=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}"
)
_TRACESTATE_MEMBERS = 32
_SHOWN_PROBLEMS = 3


def _check_traceparent(text: str) -> str:
    if tracing.parse(text) is None:
        raise ValueError("is not a W3C traceparent")
    return text


def _check_tracestate(text: str) -> str:
    members = [member.strip(" \t") for member in text.split(",")]
    if len(members) > _TRACESTATE_MEMBERS or not all(map(_TRACESTATE_MEMBER.fullmatch, members)):
        raise ValueError("is not a W3C tracestate")
    return text


def _check_instant(value: Any) -> Any:
    """Refuses a number, which would be read as seconds since 1970."""
    if not isinstance(value, str | datetime):
        raise ValueError("is not a time")
    return value


_Instant = Annotated[AwareDatetime, Field(strict=False), BeforeValidator(_check_instant)]


JobId = Annotated[int, Field(ge=1, le=2**63 - 1)]
Attempts = Annotated[int, Field(ge=1, le=1000)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class Header(_Part):
    message_id: Annotated[str, Field(pattern=_UUID)]
    correlation_id: Annotated[str, Field(pattern=r"^[\x21-\x7e]{1,200}$")]
    job_id: JobId | None = None
    type: Annotated[str, Field(min_length=1, max_length=100)]
    version: Annotated[int, Field(ge=1, le=1000)]
    created_at: _Instant
    attempt: Attempts
    max_attempts: Attempts
    signature: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")] | None = None


class Tracing(_Part):
    traceparent: (
        Annotated[str, Field(pattern=_TRACEPARENT), AfterValidator(_check_traceparent)] | None
    ) = None
    tracestate: Annotated[str, Field(max_length=512), AfterValidator(_check_tracestate)] | None = (
        None
    )


class Envelope(_Part):
    """The JSON on the wire; its body is checked against the type."""

    header: Header
    body: dict[str, Any]
    tracing: Tracing = Tracing()


class Body(_Part):
    """The content of a message of one type: references, never data."""

    type: ClassVar[str]
    version: ClassVar[int] = 1


class JobWork(Body):
    """A nudge: the job has work. The message exists as long as that is so."""

    type = "job.work"
    job_id: JobId


class JobStart(Body):
    """Starts a job of a pipeline that discovers its records."""

    type = "job.start"
    pipeline: Annotated[str, Field(min_length=1, max_length=200)]
    options: dict[str, JsonValue] = {}
    owner: Annotated[str, Field(min_length=1, max_length=200)] | None = None


class ItemsAdd(Body):
    """Adds records to the standing job of a pipeline.

    The only message that carries data: it is acknowledged after the commit that stores them."""

    type = "items.add"
    pipeline: Annotated[str, Field(min_length=1, max_length=200)]
    rows: Annotated[list[dict[str, JsonValue]], Field(min_length=1, max_length=10_000)]
    key: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    owner: Annotated[str, Field(min_length=1, max_length=200)] | None = None
    run_at: _Instant | None = None


TYPES: dict[tuple[str, int], type[Body]] = {
    (body.type, body.version): body for body in (JobWork, JobStart, ItemsAdd)
}


@dataclass(frozen=True, slots=True)
class Message:
    """An envelope with its body in the form of its type."""

    header: Header
    body: Body
    tracing: Tracing


def compose(
    body: Body,
    *,
    message_id: str,
    correlation_id: str,
    created_at: datetime,
    max_attempts: int,
    job_id: int | None = None,
    attempt: int = 1,
    trace: Tracing | None = None,
) -> Message:
    """Creates one of our messages."""
    header = Header(
        message_id=message_id,
        correlation_id=correlation_id,
        job_id=job_id,
        type=body.type,
        version=body.version,
        created_at=created_at,
        attempt=attempt,
        max_attempts=max_attempts,
    )
    return Message(header, body, trace or Tracing())


def dump(message: Message) -> bytes:
    body = message.body.model_dump()
    envelope = Envelope.model_construct(header=message.header, body=body, tracing=message.tracing)
    signed = message.header.signature is not None
    exclude = None if signed else {"header": {"signature"}}
    return envelope.model_dump_json(exclude=exclude).encode()


#: Limit for messages that are read; larger ones become dead letters.
MAX_MESSAGE_BYTES = 64 * 1024


def parse(raw: bytes, max_bytes: int = MAX_MESSAGE_BYTES) -> Message:
    """Parses a message; raises BadEnvelope, and nothing else, if the bytes are not one."""
    if len(raw) > max_bytes:
        raise BadEnvelope("TOO_LARGE", f"{len(raw):,} bytes, where {max_bytes:,} are allowed")
    value = _strict_json(raw)
    try:
        envelope = Envelope.model_validate(value)
    except ValidationError as error:
        raise BadEnvelope("MALFORMED", _problems(error)) from None
    return Message(envelope.header, _body_of(envelope), envelope.tracing)


def _body_of(envelope: Envelope) -> Body:
    header = envelope.header
    form = TYPES.get((header.type, header.version))
    if form is None:
        raise _unknown(header)
    try:
        body = form.model_validate(envelope.body)
    except ValidationError as error:
        raise BadEnvelope("BAD_BODY", _problems(error)) from None
    named = getattr(body, "job_id", None)
    if None not in (named, header.job_id) and named != header.job_id:
        reason = f"job_id is {named} in the body and {header.job_id} in the header"
        raise BadEnvelope("BAD_BODY", reason)
    return body


def _unknown(header: Header) -> BadEnvelope:
    versions = sorted(version for type_, version in TYPES if type_ == header.type)
    if versions:
        known = ", ".join(map(str, versions))
        reason = f"{header.type} has no version {header.version}; known: {known}"
        return BadEnvelope("UNKNOWN_VERSION", reason)
    known = ", ".join(sorted({type_ for type_, _ in TYPES}))
    return BadEnvelope("UNKNOWN_TYPE", f"there is no type {header.type!r}; known: {known}")


def _strict_json(raw: bytes) -> Any:
    """Parses JSON, if every JSON reader would read the same value."""
    try:
        text = raw.decode()
        value = json.loads(
            text,
            object_pairs_hook=_unique,
            parse_int=_small,
            parse_float=_finite,
            parse_constant=_finite,
        )
        if _SURROGATE.search(text):
            orjson.dumps(value)  # refuses half a surrogate pair, which UTF-8 cannot hold
    except (ValueError, RecursionError, TypeError) as error:
        reason = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
        raise BadEnvelope("NOT_JSON", reason[:200]) from None
    if nests_deeper_than(value, _MAX_DEPTH):
        raise BadEnvelope("NOT_JSON", f"it is nested deeper than {_MAX_DEPTH}")
    return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) != len(pairs):
        raise ValueError("an object has the same key twice")
    return value


def _small(digits: str) -> int:
    number = int(digits)
    if number not in _INT64:
        raise ValueError("a whole number has more than 64 bits")
    return number


def _finite(digits: str) -> float:
    number = float(digits)
    if not isfinite(number):
        raise ValueError(f"{digits[:20]} is not a finite number")
    return number


def _problems(error: ValidationError) -> str:
    """Returns where and what is wrong, without the values: they may be private."""
    details = error.errors(include_url=False, include_context=False, include_input=False)
    problems = [
        f"{'.'.join(map(str, detail['loc'])) or 'it'}: {detail['msg']}" for detail in details
    ]
    more = len(problems) - _SHOWN_PROBLEMS
    shown = "; ".join(problems[:_SHOWN_PROBLEMS])[:500]
    return f"{shown}; and {more} more" if more > 0 else shown


def json_schema() -> dict[str, Any]:
    """Returns the JSON Schema of all messages: the envelope, and for each type its body."""
    bodies = list(TYPES.values())
    models = [(model, "validation") for model in (Envelope, *bodies)]
    references, definitions = models_json_schema(models)  # type: ignore[arg-type]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "Holdfast message",
        "allOf": [references[(Envelope, "validation")]],
        "oneOf": [
            {
                "properties": {
                    "header": {
                        "properties": {
                            "type": {"const": body.type},
                            "version": {"const": body.version},
                        }
                    },
                    "body": references[(body, "validation")],
                }
            }
            for body in bodies
        ],
        **definitions,
    }


if __name__ == "__main__":
    print(json.dumps(json_schema(), indent=2, ensure_ascii=False))
