"""What a message is, and what becomes of one that is none."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.consumers import BadMessage
from holdfast_posts.formats import Format, Message, classify, read_message

NOW = datetime(2026, 1, 10, tzinfo=UTC)
LIMIT = 1_000_000
PATH = "crawl-results/tiktok/proj_x/brand/batch_000.json"


def event(**payload: Any) -> dict[str, Any]:
    named = {"minio_path": PATH, "project_id": "proj_x", "job_id": "proj_x-brand-0"}
    return {
        "event_id": "evt_1",
        "event_type": "data.collected",
        "timestamp": "2026-01-09T10:00:00Z",
        "payload": {
            **named,
            "platform": "tiktok",
            "content_count": 50,
            "batch_index": 1,
            **payload,
        },
    }


def read(envelope: Any) -> Message:
    return read_message(json.dumps(envelope).encode(), LIMIT, NOW)


@pytest.mark.parametrize(
    ("envelope", "expected"),
    [
        (event(), Format.EVENT),
        ({"payload": {"minio_path": PATH}}, Format.EVENT),
        ({"data_ref": {"bucket": "b", "path": "p"}}, Format.LEGACY),
        ({"meta": {"id": "1"}, "content": {}}, Format.INLINE),
        ({"meta": {"id": 7}}, Format.INLINE),
        (None, Format.UNKNOWN),
        ([], Format.UNKNOWN),
        ([event()], Format.UNKNOWN),
        (7, Format.UNKNOWN),
        ("text", Format.UNKNOWN),
        ({}, Format.UNKNOWN),
        ({"payload": None}, Format.UNKNOWN),
        ({"payload": []}, Format.UNKNOWN),
        ({"payload": "minio_path"}, Format.UNKNOWN),
        ({"payload": {}}, Format.UNKNOWN),
        ({"payload": {"minio_path": None}}, Format.UNKNOWN),
        ({"payload": {"minio_path": 7}}, Format.UNKNOWN),
        ({**event(), "event_type": "job.completed"}, Format.UNKNOWN),
        ({**event(), "event_type": None}, Format.UNKNOWN),
        ({**event(), "data_ref": {"bucket": "b", "path": "p"}}, Format.UNKNOWN),
        # With a payload that is not understood, it is not taken for another format.
        ({"payload": None, "meta": {"id": "1"}}, Format.UNKNOWN),
        ({"data_ref": None, "meta": {"id": "1"}}, Format.UNKNOWN),
        ({"data_ref": {"bucket": "b"}}, Format.UNKNOWN),
        ({"data_ref": {"bucket": 1, "path": 2}}, Format.UNKNOWN),
        ({"meta": {}}, Format.UNKNOWN),
        ({"meta": {"id": None}}, Format.UNKNOWN),
        ({"content": {"text": "x"}}, Format.UNKNOWN),
    ],
)
def test_classifier_is_strict(envelope: Any, expected: Format) -> None:
    assert classify(envelope) is expected
    if expected is Format.UNKNOWN:
        with pytest.raises(BadMessage) as refused:
            read(envelope)
        assert refused.value.code == "UNKNOWN_FORMAT"


def test_event_is_read() -> None:
    message = read(event(keyword="VinFast VF8", task_type="research_and_crawl", total_batches=3))
    assert (message.key, message.bucket) == ("event:evt_1", "crawl-results")
    assert message.path == "tiktok/proj_x/brand/batch_000.json"
    assert (message.scope, message.platform) == ("proj_x", "tiktok")
    assert (message.content_count, message.batch_index, message.total_batches) == (50, 1, 3)
    assert (message.keyword, message.task_type) == ("VinFast VF8", "research_and_crawl")
    assert message.sent_at == datetime(2026, 1, 9, 10, tzinfo=UTC)
    assert message.warnings == ()


def test_event_of_the_first_version_has_no_type_and_perhaps_no_id() -> None:
    envelope = event()
    del envelope["event_type"], envelope["event_id"]
    assert read(envelope).key == f"batch:{PATH}"


def test_legacy_and_inline_messages_are_read() -> None:
    reference = {"bucket": "crawl-results", "path": "tiktok/post.json"}
    legacy = read({"data_ref": reference, "job_id": "proj_x-brand-0"})
    assert (legacy.key, legacy.scope) == ("legacy:crawl-results/tiktok/post.json", "proj_x")
    inline = read({"meta": {"id": "1", "platform": "YOUTUBE", "job_id": "proj_y-brand-0"}})
    assert (inline.platform, inline.scope, inline.path) == ("youtube", "proj_y", None)
    assert inline.key.startswith("inline:")
    assert inline.post is not None


@pytest.mark.parametrize(
    "path",
    ["", "crawl-results", "crawl-results/", "/tiktok/a.json", "b/../secret", "b/a/../../c", "b/./a",
     "b/a//c", "b/" + "x" * 800, "b/a\x00", "b/a\\c", "b/line\nbreak"],
)  # fmt: skip
def test_path_that_is_no_place_in_a_bucket_is_refused(path: str) -> None:
    with pytest.raises(BadMessage) as refused:
        read(event(minio_path=path))
    assert refused.value.code == "BAD_PATH"


@pytest.mark.parametrize(
    ("payload", "code"),
    [
        ({"job_id": None}, "NO_JOB_ID"),
        ({"job_id": ""}, "BAD_JOB_ID"),
        ({"job_id": {"a": 1}}, "BAD_JOB_ID"),
        ({"job_id": "x" * 101}, "BAD_JOB_ID"),
    ],
)
def test_event_without_a_usable_job_id_is_refused(payload: dict[str, Any], code: str) -> None:
    with pytest.raises(BadMessage) as refused:
        read(event(**payload))
    assert refused.value.code == code


@pytest.mark.parametrize(
    ("changes", "field", "value", "warning"),
    [
        ({"content_count": -1}, "content_count", None, "content_count is -1"),
        ({"content_count": "many"}, "content_count", None, "content_count is 'many'"),
        ({"content_count": "50"}, "content_count", 50, None),
        ({"content_count": True}, "content_count", None, "content_count is True"),
        ({"batch_index": 10**30}, "batch_index", None, "batch_index is"),
        ({"platform": "TikTok"}, "platform", "tiktok", None),
        ({"platform": "bluesky"}, "platform", "bluesky", None),
        ({"platform": "<script>"}, "platform", None, None),
        ({"platform": 7}, "platform", None, None),
        ({"project_id": {"a": 1}}, "scope", "proj_x", None),
        ({"project_id": "NULL"}, "scope", "proj_x", None),
        ({"project_id": "dryrun:1"}, "scope", "proj_x", "project_id is"),
    ],
)
def test_odd_values_are_noted_and_the_event_is_read(
    changes: dict[str, Any], field: str, value: Any, warning: str | None
) -> None:
    message = read(event(**changes))
    assert getattr(message, field) == value
    if warning is None:
        assert not message.warnings
    else:
        assert message.warnings[0].startswith(warning)


@pytest.mark.parametrize(
    ("timestamp", "sent_at", "warning"),
    [
        ("2026-01-09T10:00:00", datetime(2026, 1, 9, 10, tzinfo=UTC),
         "timestamp has no zone, taken as UTC"),
        ("2027-01-09T10:00:00Z", None, "timestamp is in the future"),
        ("yesterday", None, "timestamp is not a time"),
        ("0001-01-01T00:00:00+14:00", None, "timestamp is not a time"),
        (1767952800, datetime(2026, 1, 9, 10, tzinfo=UTC), None),
        (1767952800000, datetime(2026, 1, 9, 10, tzinfo=UTC), None),
        ([], None, "timestamp is not a time"),
        (None, None, None),
    ],
)  # fmt: skip
def test_times(timestamp: Any, sent_at: datetime | None, warning: str | None) -> None:
    message = read({**event(), "timestamp": timestamp})
    assert message.sent_at == sent_at
    assert message.warnings == ((warning,) if warning else ())


def test_message_that_is_not_json_or_too_large_is_refused() -> None:
    for body, code in ((b"", "NOT_JSON"), (b"{", "NOT_JSON"), (b"[" * 5000, "NOT_JSON"),
                       (b" " * (LIMIT + 1), "TOO_LARGE")):  # fmt: skip
        with pytest.raises(BadMessage) as refused:
            read_message(body, LIMIT, NOW)
        assert refused.value.code == code
