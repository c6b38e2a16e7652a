"""The task form of messages, with an example."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from holdfast.errors import BadEnvelope
from holdfast.messaging.envelope import Envelope
from holdfast.pipelines.linker.envelope import is_document_form, to_envelope

EXAMPLE: dict[str, Any] = {
    "header": {
        "job_id": "uuid4-correlation-id",
        "type": "entity.match",
        "version": "1.0",
        "created_at": "2024-12-24T12:00:00Z",
        "attempt": 1,
        "max_attempts": 3,
    },
    "body": {"project_id": 50, "task_id": 1024, "dataset_entry_id": 500},
    "tracing": {
        "trace_id": "0af7651916cd43dd8448eb211c80319c",
        "span_id": "b7ad6b7169203331",
    },
}


def _changed(part: str, **fields: Any) -> dict[str, Any]:
    message = copy.deepcopy(EXAMPLE)
    message[part].update(fields)
    return message


def test_example_of_the_document_becomes_an_envelope_of_ours() -> None:
    mapped = to_envelope(EXAMPLE)
    header = mapped["header"]
    assert (header["type"], header["version"]) == ("entity.match", 1)
    assert (header["attempt"], header["max_attempts"]) == (1, 3)
    assert header["correlation_id"] == "uuid4-correlation-id"
    assert mapped["body"] == EXAMPLE["body"]
    traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    assert mapped["tracing"] == {"traceparent": traceparent}
    envelope = Envelope.model_validate(mapped, strict=False)
    assert envelope.header.job_id is None


def test_second_delivery_is_the_same_message_and_a_new_attempt_another() -> None:
    def message_id(message: dict[str, Any]) -> str:
        return str(to_envelope(message)["header"]["message_id"])

    assert message_id(EXAMPLE) == message_id(copy.deepcopy(EXAMPLE))
    assert message_id(EXAMPLE) != message_id(_changed("header", attempt=2))
    assert message_id(EXAMPLE) != message_id(_changed("header", job_id="another"))


def test_forms_are_told_apart() -> None:
    assert is_document_form(EXAMPLE)
    assert not is_document_form(to_envelope(EXAMPLE))
    assert not is_document_form({"header": None})


def test_tracing_may_be_absent() -> None:
    message = {part: EXAMPLE[part] for part in ("header", "body")}
    assert to_envelope(message)["tracing"] == {}


@pytest.mark.parametrize(
    ("part", "fields", "code"),
    [
        ("header", {"type": "entity.merge"}, "UNKNOWN_TYPE"),
        ("header", {"version": "2.0"}, "UNKNOWN_VERSION"),
        ("header", {"job_id": "two words"}, "MALFORMED"),
        ("header", {"job_id": ""}, "MALFORMED"),
        ("header", {"attempt": 0}, "MALFORMED"),
        ("header", {"attempt": True}, "MALFORMED"),
        ("header", {"priority": 9}, "MALFORMED"),
        ("tracing", {"trace_id": "0" * 32}, "MALFORMED"),
        ("tracing", {"span_id": "0" * 16}, "MALFORMED"),
        ("tracing", {"span_id": "B7AD6B7169203331"}, "MALFORMED"),
        ("tracing", {"parent": "x"}, "MALFORMED"),
        ("body", {"task_id": "1024"}, "BAD_BODY"),
        ("body", {"task_id": 0}, "BAD_BODY"),
        ("body", {"payload": "a large file"}, "BAD_BODY"),
    ],
)
def test_what_does_not_fit_is_refused_with_a_code(
    part: str, fields: dict[str, Any], code: str
) -> None:
    with pytest.raises(BadEnvelope) as raised:
        to_envelope(_changed(part, **fields))
    assert raised.value.code == code


@pytest.mark.parametrize("part", ["header", "body"])
def test_missing_and_misshapen_parts_are_refused(part: str) -> None:
    for value in ("x", None):
        with pytest.raises(BadEnvelope):
            to_envelope({**EXAMPLE, part: value})
    with pytest.raises(BadEnvelope):
        to_envelope({key: value for key, value in EXAMPLE.items() if key != part})
    with pytest.raises(BadEnvelope):
        to_envelope({**EXAMPLE, "tracing": "00-aa-bb-01"})
