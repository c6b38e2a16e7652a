"""The store against a simple model, driven at random: every promise after every step."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from holdfast.kernel import open_store
from tests.fixtures import EXAMPLES
from tests.store.model_machine import StoreMachine


@pytest.mark.slow
def test_store_keeps_its_promises_whatever_happens_in_whatever_order(database_url: str) -> None:
    loop = asyncio.new_event_loop()
    store = loop.run_until_complete(open_store(database_url))
    try:
        run_state_machine_as_test(
            lambda: StoreMachine(loop, store),
            settings=settings(
                max_examples=EXAMPLES or 8,
                stateful_step_count=50,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        loop.run_until_complete(store.close())
        loop.close()
