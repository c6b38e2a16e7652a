"""What people do to messages that were set aside, and to the modes. All of it is audited."""

from __future__ import annotations

from typing import Any

from holdfast.pipeline import Tx

#: What going back sets, in this order: events stop before legacy messages begin.
ROLLBACK = {"posts_new_mode": False, "posts_legacy_mode": True}


async def release(store: Any, state: str | None, key: str | None, actor: str) -> int:
    """Messages of a state, or one, are tried again at once; returns how many. `store` is the
    program's."""
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
