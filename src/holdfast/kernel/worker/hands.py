"""Compares what is in a process's name with what is in its hands."""

from __future__ import annotations

from collections.abc import Callable

from holdfast.kernel import Store

#: A look reads all open ranges. The pause after it is this many times as long.
REST = 49.0


class Hands:
    def __init__(self, store: Store, name: str, held: Callable[[], set[str]]) -> None:
        """Takes as `held` the tokens of all claims and walks that the process has, or has
        requested."""
        self._workers = store.workers
        self._name = name
        self._held = held
        self._strays: set[str] = set()

    async def compare(self) -> set[str]:
        """Frees what two looks in a row found in the name but not in the hands: the answer to a
        claim was lost. Returns the tokens that are in the name."""
        tokens = await self._workers.tokens_of(self._name)
        strays = tokens - self._held()
        if certain := strays & self._strays:
            await self._workers.free_strays(self._name, certain)
        self._strays = strays
        return tokens
