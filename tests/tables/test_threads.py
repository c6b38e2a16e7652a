from __future__ import annotations

import asyncio
import threading

from holdfast.tables.threads import look, take_in


async def test_looks_that_take_long_hold_up_neither_intake_nor_anything_else() -> None:
    release = threading.Event()
    looks = [asyncio.create_task(look(release.wait)) for _ in range(50)]
    try:
        async with asyncio.timeout(60):
            assert await take_in(int, "1") == 1
            assert await asyncio.to_thread(int, "2") == 2
        assert not any(task.done() for task in looks)
    finally:
        release.set()
        await asyncio.gather(*looks)
