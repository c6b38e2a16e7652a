"""Shops that ask for patience again and again: rows do not wait for them for ever."""

from __future__ import annotations

from holdfast.clock import Clock, duration_text
from holdfast.errors import GateWait, ItemError

SHOP_SILENT = "SHOP_SILENT"
#: Throttled rows may be this far apart without an end of the silence between them.
_LONGEST_PAUSE = 3600.0


class Silences:
    """Since when each shop has answered no request of this process."""

    def __init__(self, clock: Clock, longest: float) -> None:
        self._clock = clock
        self._longest = longest
        self._since: dict[str, float] = {}
        self._stale_at: dict[str, float] = {}

    def end(self, shop: str) -> None:
        """The shop answered."""
        self._since.pop(shop, None)

    def judged(self, shop: str, trouble: ItemError | GateWait) -> ItemError | GateWait:
        """The trouble, or, if the shop has been silent for too long, that it is not waited for."""
        now = self._clock.monotonic()
        if isinstance(trouble, ItemError):
            self._begin(shop, now, trouble.retry_after or 0.0)
        since = self._since.get(shop)
        if since is None or now - since < self._longest:
            return trouble
        silence = duration_text(now - since)
        return ItemError(SHOP_SILENT, f"{shop} has answered no request for {silence}: {trouble}")

    def _begin(self, shop: str, now: float, patience: float) -> None:
        """A silence that nobody listened to for long, beyond what the shop asked for, begins again.
        A gate that lets nothing pass begins none: the shop was not asked."""
        if now > self._stale_at.get(shop, now):
            self.end(shop)
        self._since.setdefault(shop, now)
        self._stale_at[shop] = now + patience + max(self._longest, _LONGEST_PAUSE)
