"""The store under test: sound at the end of every test, and a second one beside it."""

from __future__ import annotations

from collections.abc import AsyncIterator

import pytest

from holdfast.kernel import Store, open_store
from tests.store.checks import assert_all_sound


@pytest.fixture
async def store(store: Store) -> AsyncIterator[Store]:
    """Whatever a test did, every job's counters equal its rows afterwards."""
    yield store
    await assert_all_sound(store)


@pytest.fixture
async def other_store(database_url: str) -> AsyncIterator[Store]:
    """The same database as another process sees it."""
    opened = await open_store(database_url)
    yield opened
    await opened.close()
