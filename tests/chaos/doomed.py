"""What a process does that is going to be killed. It finds this module imported already: so it is
no test's own, which would bring pytest and all that the test reads with it."""

from __future__ import annotations

import asyncio
import copyreg
from typing import Any

import asyncpg

from holdfast.cli.opening import opened_store, settings_from_environment
from tests.store.all_scenarios import SCENARIOS

# A scenario's state travels to the process that is going to die.
copyreg.pickle(asyncpg.Record, lambda record: (tuple, (list(record),)))


def act(number: int, state: Any) -> None:
    """In a process of its own, with the fault that its environment asks for."""

    async def main() -> None:
        async with opened_store(settings_from_environment()) as store:
            await SCENARIOS[number].act(store, state)

    asyncio.run(main())
