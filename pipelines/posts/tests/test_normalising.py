"""Posts of two generations become one form; what is odd about them is noted."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast.errors import Failed
from holdfast_posts.normalising import has_content, normalised

NOW = datetime(2026, 1, 10, tzinfo=UTC)
ID = 7123456789012345678  # 19 digits: a float would change it

FIRST: dict[str, Any] = {
    "meta": {
        "id": str(ID), "platform": "tiktok", "job_id": "proj_x-brand-0", "crawled_at":
        "2026-01-09T10:00:00Z", "published_at": "2026-01-01T00:00:00+07:00", "lang": "vi",
        "permalink": "https://tiktok.example/v/1", "keyword_source": "VinFast",
        "pipeline_version": "crawler_tiktok_v3", "fetch_status": "success", "task_type": "research",
    },
    "content": {
        "description": "Xe đẹp", "view_count": 100, "like_count": 5, "comment_count": 2,
        "share_count": 1, "save_count": 0, "duration_seconds": 30, "tags": ["#vinfast", "xe"],
        "transcription": "nói về xe",
    },
    "author": {"username": "a", "display_name": "A", "follower_count": 10, "verified": True},
    "comments": [{"external_id": 1, "text": "hay", "author_username": "b", "like_count": 3}],
}  # fmt: skip
SECOND: dict[str, Any] = {
    "meta": {
        "id": ID, "platform": "TIKTOK", "fetch_status": "SUCCESS", "published_at":
        "2025-12-31T17:00:00Z", "permalink": "https://tiktok.example/v/1", "crawled_at":
        "2026-01-09T10:00:00Z", "job_id": "proj_x-brand-0", "lang": "vi",
        "keyword_source": "VinFast", "pipeline_version": "crawler_tiktok_v3",
        "task_type": "research",
    },
    "content": {
        "text": "Xe đẹp", "transcription": "nói về xe", "duration": 30,
        "hashtags": ["vinfast", "xe"],
    },
    "interaction": {"views": "100", "likes": 5.0, "comments_count": 2, "shares": 1, "saves": 0},
    "author": {"id": "a", "name": "A", "username": "a", "followers": 10, "is_verified": "True"},
    "comments": [{"id": "1", "text": "hay", "author_name": "b", "likes": 3}],
}  # fmt: skip


def test_both_generations_give_the_same() -> None:
    first, second = normalised(FIRST, None, NOW), normalised(SECOND, None, NOW)
    assert (first.pop("generation"), second.pop("generation")) == (1, 2)
    assert first == second
    assert first["content_id"] == str(ID)
    assert first["published_at"] == "2025-12-31T17:00:00.000Z"
    assert (first["views"], first["saves"], first["author"]["verified"]) == (100, 0, True)


def test_interactions_was_once_the_name() -> None:
    post = {"meta": {"id": "1", "platform": "x"}, "interactions": {"views": 7}}
    assert normalised(post, None, NOW)["views"] == 7


@pytest.mark.parametrize(
    "post",
    [None, [], "text", 7, {}, {"meta": None}, {"meta": {"id": None, "platform": "tiktok"}},
     {"meta": {"id": 1.5, "platform": "tiktok"}}, {"meta": {"id": 1e300, "platform": "tiktok"}},
     {"meta": {"id": "NULL", "platform": "tiktok"}}, {"meta": {"id": True, "platform": "tiktok"}},
     {"meta": {"id": "x" * 101, "platform": "tiktok"}}, {"meta": {"id": "1", "platform": None}},
     {"meta": {"id": "1", "platform": "<b>"}}],
)  # fmt: skip
def test_what_is_not_a_post_fails_alone(post: Any) -> None:
    with pytest.raises(Failed) as failed:
        normalised(post, None, NOW)
    assert failed.value.code == "PARSE_ERROR"


def test_platform_of_the_event_counts_where_the_post_has_none() -> None:
    assert normalised({"meta": {"id": "1"}}, "youtube", NOW)["platform"] == "youtube"


@pytest.mark.parametrize("given", [-1, "many", True, [], 10**30, 1.5])
def test_count_that_makes_no_sense_is_unknown_and_noted(given: Any) -> None:
    post = normalised(
        {"meta": {"id": "1", "platform": "x"}, "interaction": {"views": given}}, None, NOW
    )
    assert post["views"] is None
    assert post["warnings"] == [f"views is {given!r:.40}"]


def test_text_that_databases_refuse_is_cleaned() -> None:
    post = {
        "meta": {"id": "1", "platform": "x"},
        "content": {"text": "a\x00b\ud800c", "tags": "a, #b"},
    }
    cleaned = normalised(post, None, NOW)
    assert (cleaned["text"], cleaned["hashtags"]) == ("ab?c", ["a", "b"])


def test_long_post_and_long_lists_are_cut() -> None:
    post = {
        "meta": {"id": "1", "platform": "x"},
        "content": {"text": "x" * 5_000_000, "hashtags": ["t"] * 10_000},
        "comments": [{"text": "c"}] * 10_000,
    }
    short = normalised(post, None, NOW)
    assert len(short["text"]) == 20_000
    assert len(short["hashtags"]) == 50


@pytest.mark.parametrize(
    ("meta", "status", "code", "message"),
    [
        ({"fetch_status": "error", "error_code": "TIMEOUT", "fetch_error": "slow"},
         "error", "TIMEOUT", "slow"),
        ({"fetch_status": "ERROR", "error_code": "TIMEOUT", "error_message": "slow"},
         "error", "TIMEOUT", "slow"),
        ({"fetch_status": "error"}, "error", "UNKNOWN_ERROR", None),
        ({"error_code": "CONTENT_REMOVED"}, "error", "CONTENT_REMOVED", None),
        ({"fetch_status": "error", "error_code": "new one"}, "error", "NEW ONE", None),
    ],
)  # fmt: skip
def test_errors_of_the_crawler(
    meta: dict[str, Any], status: str, code: str, message: str | None
) -> None:
    post = normalised({"meta": {"id": "1", "platform": "x", **meta}}, None, NOW)
    assert (post["fetch_status"], post["error_code"]) == (status, code)
    assert post["error"]["message"] == message
    assert not has_content(post)


def test_post_whose_media_failed_is_analysed_if_it_has_text() -> None:
    meta = {"id": "1", "platform": "x", "fetch_status": "error", "error_code": "MEDIA_TOO_LARGE"}
    assert has_content(normalised({"meta": meta, "content": {"text": "good"}}, None, NOW))
    assert not has_content(normalised({"meta": meta, "content": None}, None, NOW))
