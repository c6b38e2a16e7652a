"""Converts a post, as two generations of crawlers wrote it, to one form.

The first has `content` with counts, description and url, and `fetch_error`; the second has
`interaction` and `error_message`, and its platform in upper case. Both are read field by field, so
that a mixture is read too. Ids are text.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import datetime
from typing import Any

from holdfast.errors import Category, Failed
from holdfast.model import Json
from holdfast_posts.crawl_codes import crawl_code
from holdfast_posts.formats import platform_of
from holdfast_posts.values import (
    count_of,
    flag_of,
    id_of,
    instant_of,
    kind_of,
    mapping_of,
    stored,
    text_of,
    word_of,
)

LONGEST_TEXT = 20_000
_HASHTAGS = 50
_COUNTS = {
    "views": ("views", "view_count"),
    "likes": ("likes", "like_count"),
    "comments_count": ("comments_count", "comment_count"),
    "shares": ("shares", "share_count"),
    "saves": ("saves", "save_count"),
}


def normalised(post: Any, platform: str | None, now: datetime) -> Json:
    """Converts a post; raises Failed for what is not one: without an id, nothing can be stored
    about it."""
    if not isinstance(post, Mapping):
        raise Failed("PARSE_ERROR", f"an item is not an object but {kind_of(post)}")
    meta, content = mapping_of(post.get("meta")), mapping_of(post.get("content"))
    content_id = _first_id(meta.get("id"), content.get("external_id"), content.get("video_id"))
    if content_id is None:
        raise Failed("PARSE_ERROR", f"an item has no id: {meta.get('id')!r:.60}")
    found_platform = platform_of(meta.get("platform")) or platform
    if found_platform is None:
        raise Failed("PARSE_ERROR", f"the platform is {meta.get('platform')!r:.60}")
    warnings: list[str] = []
    return {
        "content_id": content_id,
        "platform": found_platform,
        "generation": 2 if "interaction" in post or "interactions" in post else 1,
        **_about(meta, content, now, warnings),
        **_fetch(meta, content),
        **_content(content),
        **_interaction(post, content, warnings),
        "author": _author(mapping_of(post.get("author"))),
        "warnings": warnings,
    }


def _about(
    meta: Mapping[str, Any], content: Mapping[str, Any], now: datetime, warnings: list[str]
) -> Json:
    times = {}
    for name in ("published_at", "crawled_at"):
        instant, note = instant_of(meta.get(name), now)
        times[name] = stored(instant)
        if note:
            warnings.append(f"{name} {note}")
    permalink = text_of(meta.get("permalink"), 2000) or text_of(content.get("url"), 2000)
    return {
        **times,
        "permalink": permalink,
        "job_id": id_of(meta.get("job_id")),
        "task_type": word_of(meta.get("task_type"), 30),
        "keyword_source": word_of(meta.get("keyword_source"), 200),
        "pipeline_version": word_of(meta.get("pipeline_version"), 50),
        "lang": word_of(meta.get("lang"), 10),
    }


def _fetch(meta: Mapping[str, Any], content: Mapping[str, Any]) -> Json:
    reported = word_of(meta.get("error_code"), 50)
    status = (word_of(meta.get("fetch_status"), 20) or "").lower()
    if status not in ("success", "error"):
        status = "error" if reported and not content else "success"
    if status == "success" and reported is None:
        return {"fetch_status": "success", "error_code": None, "error": None}
    code = crawl_code(reported)
    details = meta.get("error_details")
    error = {
        "code": code.code,
        "category": str(code.category),
        "retry": str(code.retry),
        "alert": code.alert,
        "message": text_of(meta.get("error_message") or meta.get("fetch_error"), 2000),
        "details": details if isinstance(details, Mapping | list) else text_of(details, 2000),
    }
    return {"fetch_status": status, "error_code": code.code, "error": error}


def _content(content: Mapping[str, Any]) -> Json:
    tags = content.get("hashtags")
    return {
        "text": text_of(content.get("text"), LONGEST_TEXT)
        or text_of(content.get("description"), LONGEST_TEXT),
        "transcription": text_of(content.get("transcription"), LONGEST_TEXT),
        "duration": count_of(content.get("duration", content.get("duration_seconds"))),
        "hashtags": _hashtags(tags if tags is not None else content.get("tags")),
    }


def _hashtags(tags: Any) -> list[str]:
    if isinstance(tags, str):
        tags = tags.replace(",", " ").split()
    if not isinstance(tags, list):
        return []
    words = (word_of(tag, 100) for tag in tags[:_HASHTAGS])
    return [word.lstrip("#") for word in words if word and word.lstrip("#")]


def _interaction(
    post: Mapping[str, Any], content: Mapping[str, Any], warnings: list[str]
) -> dict[str, int | None]:
    interaction = mapping_of(post.get("interaction") or post.get("interactions"))
    counts: dict[str, int | None] = {}
    for ours, names in _COUNTS.items():
        given = next(
            (
                place[name]
                for place in (interaction, content)
                for name in names
                if place.get(name) is not None
            ),
            None,
        )
        counts[ours] = count_of(given)
        if counts[ours] is None and given is not None:
            warnings.append(f"{ours} is {given!r:.40}")
    return counts


def _author(author: Mapping[str, Any]) -> Json:
    verified = flag_of(author.get("is_verified"))
    followers = count_of(author.get("followers"))
    return {
        "id": _first_id(author.get("id"), author.get("username")),
        "username": word_of(author.get("username"), 200),
        "name": word_of(author.get("name"), 200) or word_of(author.get("display_name"), 200),
        "avatar_url": text_of(author.get("avatar_url"), 2000),
        "followers": count_of(author.get("follower_count")) if followers is None else followers,
        "verified": flag_of(author.get("verified")) if verified is None else verified,
    }


def _first_id(*values: Any) -> str | None:
    return _first(id_of(value) for value in values)


def _first(values: Iterable[str | None]) -> str | None:
    return next((value for value in values if value is not None), None)


def has_content(post: Json) -> bool:
    """Whether there is anything to analyse. A post whose media failed has the rest."""
    if post["fetch_status"] == "success":
        return True
    is_media = post["error"] is not None and post["error"]["category"] == Category.MEDIA
    return is_media and bool(post["text"] or post["transcription"] or post["views"] is not None)
