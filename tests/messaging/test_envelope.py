"""The envelope: what is one, what is not, and that nothing else ever happens."""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from holdfast.errors import BadEnvelope
from holdfast.messaging.envelope import (
    BAD_ENVELOPE_CODES,
    TYPES,
    JobStart,
    JobWork,
    Message,
    Tracing,
    compose,
    dump,
    json_schema,
    parse,
)
from holdfast.messaging.topology import QUEUES, Topology

REFERENCE = Path(__file__).parents[2] / "docs" / "reference"
LIMIT = 64 * 1024
MESSAGE_ID = "8c5ff1a4-5b0c-4f0e-9a53-0d5c2f6a7b10"
TRACEPARENT = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"


def envelope(body: JobWork | JobStart | None = None) -> Message:
    return compose(
        body or JobWork(job_id=7),
        message_id=MESSAGE_ID,
        correlation_id="request-1",
        job_id=7 if body is None else None,
        created_at=datetime(2026, 3, 1, 12, tzinfo=UTC),
        max_attempts=3,
        trace=Tracing(traceparent=TRACEPARENT, tracestate="vendor=1, other@x=2"),
    )


def changed(change: Callable[[dict[str, Any]], None]) -> bytes:
    value = json.loads(dump(envelope()))
    change(value)
    return json.dumps(value).encode()


def refused(raw: bytes, limit: int = LIMIT) -> BadEnvelope:
    with pytest.raises(BadEnvelope) as caught:
        parse(raw, limit)
    assert caught.value.code in BAD_ENVELOPE_CODES
    return caught.value


@pytest.mark.parametrize(
    "body",
    [
        JobWork(job_id=7),
        JobWork(job_id=2**63 - 1),
        JobStart(pipeline="meetings"),
        JobStart(pipeline="meetings", options={"site": "a", "n": [1, None]}, owner="ann"),
    ],
    ids=lambda body: body.type,
)
def test_what_is_dumped_is_parsed_to_the_same(
    body: JobWork | JobStart,
) -> None:
    sent = envelope(body)
    taken = parse(dump(sent), LIMIT)
    assert taken == sent
    assert taken.body == body


def test_the_bytes_are_the_plain_json_of_the_three_parts() -> None:
    assert json.loads(dump(envelope())) == {
        "header": {
            "message_id": MESSAGE_ID,
            "correlation_id": "request-1",
            "job_id": 7,
            "type": "job.work",
            "version": 1,
            "created_at": "2026-03-01T12:00:00Z",
            "attempt": 1,
            "max_attempts": 3,
        },
        "body": {"job_id": 7},
        "tracing": {"traceparent": TRACEPARENT, "tracestate": "vendor=1, other@x=2"},
    }


def test_job_id_and_tracing_may_be_left_out() -> None:
    def shorten(value: dict[str, Any]) -> None:
        del value["header"]["job_id"], value["tracing"]

    taken = parse(changed(shorten), LIMIT)
    assert (taken.header.job_id, taken.tracing) == (None, Tracing())


def test_an_envelope_does_not_change() -> None:
    with pytest.raises(ValidationError):
        envelope().header.attempt = 2


def test_time_in_another_zone_is_the_same_instant() -> None:
    raw = dump(envelope()).replace(b"12:00:00Z", b"19:00:00+07:00")
    at = parse(raw, LIMIT).header.created_at
    assert at == datetime(2026, 3, 1, 19, tzinfo=timezone(timedelta(hours=7)))


def test_too_large_is_reported_before_anything_is_read() -> None:
    assert refused(b"\xff" * 2000, 1999).code == "TOO_LARGE"


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"\xef\xbb\xbf{}",
        b'{"a": 1, "a": 2}',
        b'{"header": {"x": 1, "x": 1}}',
        b"NaN",
        b'{"a": -Infinity}',
        b'{"a": 1e999}',
        b'{"a": ' + b"9" * 20 + b"}",
        b'{"a": ' + b"9" * 20_000 + b"}",
        b"[" * 60_000,
        b'{"a":' * 10_000,
        b"[" * 33 + b"]" * 33,
        b'{"a": "\\ud800"}',
    ],
    ids=lambda raw: raw[:16].decode(errors="replace") or "empty",
)
def test_what_not_every_reader_takes_for_the_same_is_not_json(raw: bytes) -> None:
    assert refused(raw).code == "NOT_JSON"


CHANGES: dict[str, Callable[[dict[str, Any]], None]] = {
    "no header": lambda value: value.pop("header"),
    "no body": lambda value: value.pop("body"),
    "unknown part": lambda value: value.update(extra=1),
    "unknown field": lambda value: value["header"].update(extra=1),
    "body is a list": lambda value: value.update(body=[]),
    "id is no UUID": lambda value: value["header"].update(message_id="7"),
    "id in capitals": lambda value: value["header"].update(message_id=MESSAGE_ID.upper()),
    "id with a newline": lambda value: value["header"].update(message_id=MESSAGE_ID + "\n"),
    "version is text": lambda value: value["header"].update(version="1"),
    "version is true": lambda value: value["header"].update(version=True),
    "attempt is 0": lambda value: value["header"].update(attempt=0),
    "time without a zone": lambda value: value["header"].update(created_at="2026-03-01T12:00:00"),
    "time is a number": lambda value: value["header"].update(created_at=1_772_366_400),
    "job below 1": lambda value: value["header"].update(job_id=0),
    "correlation with a space": lambda value: value["header"].update(correlation_id="a b"),
    "trace of zeros": lambda value: value["tracing"].update(
        traceparent=f"00-{'0' * 32}-00f067aa0ba902b7-01"
    ),
    "trace version ff": lambda value: value["tracing"].update(traceparent=f"ff{TRACEPARENT[2:]}"),
    "trace too short": lambda value: value["tracing"].update(traceparent="00-ab-cd-01"),
    "state without a value": lambda value: value["tracing"].update(tracestate="vendor"),
    "state of 33": lambda value: value["tracing"].update(
        tracestate=",".join(f"v{number}=1" for number in range(33))
    ),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_wrong_form_is_malformed(change: Callable[[dict[str, Any]], None]) -> None:
    assert refused(changed(change)).code == "MALFORMED"


def test_unknown_type_and_version_are_reported_with_the_known_ones() -> None:
    unknown = refused(changed(lambda value: value["header"].update(type="slice.eat")))
    assert unknown.code == "UNKNOWN_TYPE" and "job.work" in unknown.reason
    newer = refused(changed(lambda value: value["header"].update(version=9)))
    assert newer.code == "UNKNOWN_VERSION" and "known: 1" in newer.reason


@pytest.mark.parametrize(
    "body",
    [{}, {"job_id": "7"}, {"job_id": 7.0}, {"job_id": None}, {"job_id": 7, "data": 1}],
    ids=str,
)
def test_body_that_does_not_fit_its_type_is_bad(body: dict[str, Any]) -> None:
    assert refused(changed(lambda value: value.update(body=body))).code == "BAD_BODY"


def test_body_of_another_job_than_the_header_is_bad() -> None:
    bad = refused(changed(lambda value: value["header"].update(job_id=8)))
    assert (bad.code, "7" in bad.reason, "8" in bad.reason) == ("BAD_BODY", True, True)


def test_reason_names_the_place_and_not_the_value() -> None:
    bad = refused(changed(lambda value: value["header"].update(version="secret")))
    assert "header.version" in bad.reason and "secret" not in bad.reason


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


def only_bad_envelope(raw: bytes) -> None:
    try:
        taken = parse(raw, LIMIT)
    except BadEnvelope as error:
        assert error.code in BAD_ENVELOPE_CODES and error.reason
    else:
        assert parse(dump(taken), LIMIT) == taken


@given(st.binary(max_size=400))
def test_any_bytes_are_an_envelope_or_a_bad_one(raw: bytes) -> None:
    only_bad_envelope(raw)


@given(JSON)
def test_any_json_is_an_envelope_or_a_bad_one(value: Any) -> None:
    only_bad_envelope(json.dumps(value).encode())


@given(
    st.sampled_from(["header", "body", "tracing"]),
    st.sampled_from([*envelope().header.model_dump(), "traceparent", "tracestate", "pipeline"]),
    JSON,
)
def test_any_value_in_any_field_is_an_envelope_or_a_bad_one(
    part: str, field: str, value: Any
) -> None:
    only_bad_envelope(changed(lambda whole: whole[part].update({field: value})))


@given(st.dictionaries(st.text(), JSON, max_size=4), st.text(min_size=1, max_size=50))
def test_any_options_of_a_job_survive_or_are_refused(options: dict[str, Any], name: str) -> None:
    value = json.loads(dump(envelope()))
    value["header"] |= {"type": "job.start", "job_id": None}
    value["body"] = {"pipeline": name, "options": options}
    only_bad_envelope(json.dumps(value).encode())


@given(st.integers(0, 300), st.integers(0, 255))
def test_one_wrong_byte_is_an_envelope_or_a_bad_one(place: int, byte: int) -> None:
    raw = bytearray(dump(envelope()))
    raw[place % len(raw)] = byte
    only_bad_envelope(bytes(raw))


def test_the_published_schema_is_that_of_the_program() -> None:
    page = (REFERENCE / "envelope.schema.json").read_text(encoding="utf-8")
    assert json.loads(page) == json_schema(), (
        "run: python -m holdfast.messaging.envelope > docs/reference/envelope.schema.json"
    )


def test_the_schema_takes_what_the_program_takes() -> None:
    check = jsonschema_rs.validator_for(json_schema())
    for body in (JobWork(job_id=7), JobStart(pipeline="meetings")):
        assert check.is_valid(json.loads(dump(envelope(body))))


@pytest.mark.parametrize(
    "change",
    [
        CHANGES["unknown field"],
        CHANGES["id is no UUID"],
        CHANGES["attempt is 0"],
        CHANGES["version is text"],
        lambda value: value["header"].update(type="slice.eat"),
        lambda value: value.update(body={"pipeline": "meetings"}),
    ],
)
def test_the_schema_refuses_what_the_program_refuses(
    change: Callable[[dict[str, Any]], None],
) -> None:
    raw = changed(change)
    refused(raw)
    assert not jsonschema_rs.validator_for(json_schema()).is_valid(json.loads(raw))


def test_the_page_names_every_type_code_queue_and_argument() -> None:
    page = (REFERENCE / "messages.md").read_text(encoding="utf-8")
    topology = Topology("holdfast")
    names = [f"| `{type_}` | {version} |" for type_, version in TYPES]
    names += [f"| `{code}` | {meaning} |" for code, meaning in BAD_ENVELOPE_CODES.items()]
    names += [f"`{topology.queue(word)}`" for word in (*QUEUES, "work.PIPELINE")]
    names += [f"`{name}: {value}`" for name, value in topology.arguments("orders").items()]
    assert [name for name in names if name not in page] == []


def test_the_messages_on_the_page_are_what_they_say() -> None:
    page = (REFERENCE / "messages.md").read_text(encoding="utf-8")
    blocks = [block.split("```")[0] for block in page.split("```json\n")[1:]]
    assert blocks
    for block in blocks:
        parse(block.encode(), LIMIT)
