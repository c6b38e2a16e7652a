"""Shops that ask for patience again and again: rows do not wait for them for ever."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.clock import Clock, duration_text
from holdfast.errors import GateWait, ItemError

SHOP_SILENT = "SHOP_SILENT"
#: Throttled rows may be this far apart without an end of the silence between them.
_LONGEST_PAUSE = 3600.0


@dataclass(slots=True)
class _Silence:
    """`until`: when the shop may be asked again, by what it said last."""

    since: float
    until: float


class Silences:
    """Since when each shop has answered no request of a kind to this process. By kind: a shop that
    looks numbers up may still refuse every search."""

    def __init__(self, clock: Clock, longest: float) -> None:
        self._clock = clock
        self._longest = longest
        self._silences: dict[tuple[str, str], _Silence] = {}

    def end(self, shop: str, kind: str) -> None:
        """The shop answered."""
        self._silences.pop((shop, kind), None)

    def judged(self, shop: str, kind: str, trouble: ItemError | GateWait) -> ItemError | GateWait:
        """The trouble, or, if the shop has been silent for too long, that it is not waited for."""
        now = self._clock.monotonic()
        if isinstance(trouble, ItemError):
            silence = now - self._heard(shop, kind, now, trouble.retry_after or 0.0).since
        else:
            silence = self._known(shop, now)
        if silence < self._longest:
            return trouble
        words = duration_text(silence)
        return ItemError(SHOP_SILENT, f"{shop} has answered no {kind} for {words}: {trouble}")

    def _known(self, shop: str, now: float) -> float:
        """For how long, at a gate that lets nothing pass: the shop was not asked. Whichever kind of
        request has closed it; while nobody would have been sent away, nothing is known."""
        own = [each for (name, _), each in self._silences.items() if name == shop]
        return max((min(now, each.until) - each.since for each in own), default=-1.0)

    def _heard(self, shop: str, kind: str, now: float, patience: float) -> _Silence:
        """A silence that nobody listened to for long, beyond what the shop asked for, begins
        again."""
        silence = self._silences.setdefault((shop, kind), _Silence(now, now))
        if now > silence.until + max(self._longest, _LONGEST_PAUSE):
            silence.since = now
        silence.until = now + patience
        return silence
