"""A process that is cut off while its transaction waits for an answer."""

from __future__ import annotations

import asyncio
import sys

from holdfast.kernel import open_store
from holdfast.kernel.database.driver import Transaction


async def _locks_one_and_waits_for_another(tx: Transaction) -> None:
    await tx.execute("set local tcp_user_timeout = 1000")
    await tx.execute("update held set n = 1")
    await tx.fetch("select n from awaited")


async def _main(url: str) -> None:
    store = await open_store(url)
    await store.database.write("test", _locks_one_and_waits_for_another)


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1]))
