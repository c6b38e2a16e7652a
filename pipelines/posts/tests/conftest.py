"""A scene with the session's broker and S3 server."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast.kernel import Store
from pipelines.posts.tests.scene import Scene, opened_scene


@pytest.fixture
async def scene(
    store: Store, broker_url: str, queue_prefix: str, bucket_settings: dict[str, str]
) -> AsyncIterator[Scene]:
    quick = {
        "HOLDFAST_POSTS_PARK_SECONDS": "0.2",
        "HOLDFAST_POSTS_MISSING_FIRST_SECONDS": "0.1",
        "HOLDFAST_POSTS_MISSING_LONGEST_SECONDS": "0.2",
    }
    async with opened_scene(store, broker_url, queue_prefix, bucket_settings, **quick) as scene:
        yield scene
