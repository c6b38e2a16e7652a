"""Two weeks of posts about two brands, and a dry run, for the demo."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import orjson

from holdfast.clock import SystemClock
from holdfast.demo.part import NOT_FOUND, Ask, DemoPart, Reply, Sample
from holdfast_posts.batches import expected_size
from holdfast_posts.crawl_codes import CRAWL_CODES
from holdfast_posts.values import stored

_TEXTS = Path(__file__).with_name("demo_posts.txt")
_BUCKET = "crawl-results"
_DAYS = 14
_JOBS = {
    "proj_lumen": ("proj_lumen-brand-0", "Lumen headphones"),
    "proj_volta": ("proj_volta-volta-x-0", "Volta X"),
}
_DRY_RUN = "7f3a0c52-5d0e-4f0b-9a51-2f3c6f1f8a10"
_AUTHORS = ("linh.nguyen", "techwithsam", "an.review", "mai_daily", "the.quiet.critic", "hoang88")
_ERROR_SHARE = 0.04


def _post(rng: random.Random, text: str, platform: str, at: datetime, number: int) -> Any:
    published = at - timedelta(minutes=rng.randrange(60 * 20))
    meta = {
        "id": f"{at:%Y%m%d}{rng.randrange(10**8):08d}{number:02d}",
        "platform": platform.upper(),
        "crawled_at": stored(at),
        "published_at": stored(published),
        "permalink": f"https://{platform}.example/v/{number}",
        "pipeline_version": f"crawler_{platform}_v3",
    }
    if rng.random() < _ERROR_SHARE:
        code = rng.choice(sorted(CRAWL_CODES))
        message = f"the crawler met {code.lower().replace('_', ' ')}"
        failure = {"fetch_status": "error", "error_code": code, "error_message": message}
        return {"meta": {**meta, **failure}}
    views = int(rng.lognormvariate(8.5, 2.2))
    counts = {"views": views, "likes": views // 14, "comments_count": views // 90}
    followers = int(rng.lognormvariate(9, 2))
    name = rng.choice(_AUTHORS)
    return {
        "meta": {**meta, "fetch_status": "success"},
        "content": {"text": text, "hashtags": ["review"]},
        "interaction": {**counts, "shares": views // 200, "saves": views // 260},
        "author": {"id": name, "name": name, "followers": followers, "is_verified": False},
        "comments": [],
    }


def batches(now: datetime) -> Iterator[tuple[dict[str, Any], bytes]]:
    """Yields events with their batches, the same at every start except for the time."""
    rng = random.Random(4)
    texts = _TEXTS.read_text("utf-8").splitlines()
    for ago in range(_DAYS, 0, -1):
        at = now - timedelta(days=ago - 1, hours=1)
        for project, (job, keyword) in _JOBS.items():
            platform = rng.choice(("tiktok", "tiktok", "youtube"))
            path = f"{_BUCKET}/{platform}/{project}/{at:%Y-%m-%d}/batch_000.json"
            size = expected_size(platform) - (3 if rng.random() < 0.2 else 0)
            posts = [_post(rng, rng.choice(texts), platform, at, n) for n in range(size)]
            named = {"project_id": project, "job_id": job, "keyword": keyword}
            yield _event(path, platform, at, **named), orjson.dumps(posts)
    path = f"{_BUCKET}/tiktok/dryrun/{_DRY_RUN}/batch_000.json"
    posts = [_post(rng, rng.choice(texts), "tiktok", now, n) for n in range(10)]
    yield (
        _event(path, "tiktok", now, job_id=_DRY_RUN, task_type="dryrun_keyword"),
        orjson.dumps(posts),
    )
    path = f"{_BUCKET}/tiktok/proj_volta/cut-off.json"
    named = {"project_id": "proj_volta", "job_id": "proj_volta-volta-x-0"}
    yield _event(path, "tiktok", now, **named), orjson.dumps(posts)[:-40]


def _event(path: str, platform: str, at: datetime, **payload: Any) -> dict[str, Any]:
    return {
        "event_id": f"evt_{hashlib.sha256(path.encode()).hexdigest()[:12]}",
        "event_type": "data.collected",
        "timestamp": stored(at),
        "payload": {
            "minio_path": path, "platform": platform, "batch_index": 1,
            "task_type": "research_and_crawl", **payload,
        },
    }  # fmt: skip


def answer(ask: Ask) -> Reply:
    return NOT_FOUND  # it asks no server


def environment(url: str) -> dict[str, str]:
    # Without a broker, results would stay in the outbox.
    return {"HOLDFAST_POSTS_PUBLISH_RESULTS": "false", "HOLDFAST_POSTS_BUCKETS": _BUCKET}


async def fill(sample: Sample) -> None:
    """Adds the events once: one that came before changes nothing, but its day would be another."""
    if await sample.fetch("posts_event_counts", {}):
        return
    for event, batch in batches(SystemClock().now()):
        await sample.take(orjson.dumps(event), {event["payload"]["minio_path"]: batch})


DEMO = DemoPart(answer, environment, fill)
