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
    """A shop's silence. `until`: when the shop may be asked again, by what it said last."""

    since: float
    until: float


class Silences:
    """How long each shop has answered no request of a kind to this process.

    It is counted by kind: a shop that looks numbers up may still refuse every search."""

    def __init__(self, clock: Clock, longest: float) -> None:
        self._clock = clock
        self._longest = longest
        self._silences: dict[tuple[str, str], _Silence] = {}

    def end(self, shop: str, kind: str) -> None:
        """Ends a silence: the shop answered."""
        self._silences.pop((shop, kind), None)

    def judged(self, shop: str, kind: str, trouble: ItemError | GateWait) -> ItemError | GateWait:
        """Returns the trouble, or, if the shop has been silent for too long, that it is not waited
        for."""
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
        """Returns how long the shop has been silent at a gate that lets nothing pass: it was not
        asked. It does not matter which kind of request has closed it; while no request would have
        been refused, nothing is known."""
        own = [each for (name, _), each in self._silences.items() if name == shop]
        return max((min(now, each.until) - each.since for each in own), default=-1.0)

    def _heard(self, shop: str, kind: str, now: float, patience: float) -> _Silence:
        """Notes a silence.

        One that was not checked for long, beyond what the shop asked for, begins again."""
        silence = self._silences.setdefault((shop, kind), _Silence(now, now))
        if now > silence.until + max(self._longest, _LONGEST_PAUSE):
            silence.since = now
        silence.until = now + patience
        return silence
