"""Changes that people make to messages that were set aside, and to the modes.

All of them are audited."""

from __future__ import annotations

from typing import Any

from holdfast.pipeline import Tx

#: Flags that a rollback sets, in this order: events stop before legacy messages begin.
ROLLBACK = {"posts_new_mode": False, "posts_legacy_mode": True}


async def release(store: Any, state: str | None, key: str | None, actor: str) -> int:
    """Tries messages of a state, or one, again at once; returns how many.

    `store` is the program's."""
    released: list[Any] = []

    async def change(tx: Tx) -> bool:
        released[:] = await tx.take("posts_release_events", {"state": state, "key": key})
        return False

    await store.plans.tend(change)
    detail = {"state": state, "messages": len(released)}
    await store.audit.add(actor, "posts.release", None, key or "", detail)
    return len(released)


async def roll_back(store: Any, actor: str) -> None:
    for name, value in ROLLBACK.items():
        await store.flags.set_flag(name, value, actor)
