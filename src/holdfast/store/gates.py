"""The shared side of gates: start times and places in flight, given out in batches."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import Any

from holdfast.errors import NotThere
from holdfast.pipeline import Gate
from holdfast.store.audit import add_audit
from holdfast.store.database import Database, verb
from holdfast.store.driver import Row, Transaction
from holdfast.store.instants import seconds_between
from holdfast.store.rows import fields_of

_LEAST_SLACK = 0.01
_SLACK_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Reservation:
    """Start times in seconds from the database's now (None: no spacing), places in flight
    (None: no limit); or, with neither, how long to wait and why."""

    starts: list[float] | None = None
    slots: int | None = None
    wait: float = 0.0
    reason: str = ""
    slack: float = 0.0  # how much later than its time a start may come


class GateTable:
    def __init__(self, database: Database, rng: random.Random, default: Gate) -> None:
        self._database = database
        self._rng = rng
        self._default = default

    async def all(self) -> list[dict[str, Any]]:
        return [fields_of(row) for row in await self._database.fetch("gates")]

    @verb("declare_gate")
    async def declare(self, tx: Transaction, gate: Gate) -> None:
        await tx.run("declare_gate", _limits(gate.name, gate))

    @verb("reserve_gate")
    async def reserve(
        self,
        tx: Transaction,
        name: str,
        worker: str,
        want: int,
        horizon: float,
        slack: float,
        hold: float,
        busy: int = 0,
    ) -> Reservation:
        """Reserves up to `want` starts within `horizon` seconds, and places for them. The `busy`
        places, where requests are under way, stay the worker's.

        Starts lie a tenth of the spacing further apart, at most `slack`: a start may come that
        much late and still keep its distance to the next.
        """
        gate = await _gate(tx, name, self._default)
        spacing, jitter, concurrency, next_at, closed_until, reason, now, killed = gate
        if killed:
            return Reservation(wait=horizon, reason=f"kill switch {killed}")
        if closed_until is not None and seconds_between(now, closed_until) > 0:
            return Reservation(wait=seconds_between(now, closed_until), reason=reason)
        slots = await _hold(tx, name, worker, want, busy, concurrency, hold)
        if slots == 0:
            return Reservation(wait=min(1.0, hold), reason="all places are taken")
        if not spacing:
            return Reservation(slots=slots)
        late = min(slack, max(_LEAST_SLACK, spacing * _SLACK_SHARE))
        starts = self._starts(
            max(0.0, seconds_between(now, next_at)), want, horizon, spacing + late, jitter
        )
        if len(starts) == 1:
            return Reservation(wait=starts[0], reason=f"spacing of {spacing:g} s")
        await tx.run("reserve_gate", {"name": name, "seconds": starts[-1]})
        return Reservation(starts=starts[:-1], slots=slots, slack=late)

    def _starts(
        self, first: float, want: int, horizon: float, step: float, jitter: float
    ) -> list[float]:
        """Start times within the horizon, and after them the one where the next may be."""
        starts = [first]
        while len(starts) <= want and starts[-1] <= horizon:
            starts.append(starts[-1] + step + self._rng.uniform(0, jitter))
        return starts

    @verb("close_gate")
    async def close(self, tx: Transaction, name: str, seconds: float, reason: str) -> None:
        await tx.run("default_gate", _limits(name, self._default))
        await tx.run("close_gate", {"name": name, "seconds": seconds, "reason": reason})

    @verb("order_gate")
    async def order(
        self, tx: Transaction, name: str, seconds: float, reason: str, actor: str
    ) -> None:
        """A person closes a gate for so long, or with 0 opens it."""
        params = {"name": name, "seconds": seconds, "reason": reason or None}
        if not await tx.take("order_gate", params):
            raise NotThere(f"there is no gate {name!r}", "GET /api/gates lists them.")
        action = "gate.closed" if seconds else "gate.opened"
        detail = {"seconds": seconds, "reason": reason}
        await add_audit(tx, actor, action, None, name, detail)

    @verb("slow_gate")
    async def slow_down(self, tx: Transaction, name: str, spacing: float) -> None:
        await tx.run("default_gate", _limits(name, self._default))
        await tx.run("slow_gate", {"name": name, "spacing": spacing})

    @verb
    async def keep_slots(
        self, tx: Transaction, name: str, worker: str, slots: int, seconds: float
    ) -> None:
        """Holds places that are in use for longer; with 0 seconds, gives them back."""
        params = {"gate": name, "worker": worker, "slots": slots, "seconds": seconds}
        await tx.run("hold_slots", params)


async def _gate(tx: Transaction, name: str, default: Gate) -> Row:
    rows = await tx.fetch("gate", {"name": name})
    if not rows:
        await tx.run("default_gate", _limits(name, default))
        rows = await tx.fetch("gate", {"name": name})
    return rows[0]


async def _hold(
    tx: Transaction,
    name: str,
    worker: str,
    want: int,
    busy: int,
    concurrency: int,
    hold: float,
) -> int | None:
    """A fair share of the places that are free; a worker that gets none is counted as wanting,
    so that the others leave it some next time."""
    if not concurrency:
        return None
    held, others = (await tx.fetch("held_slots", {"gate": name, "worker": worker}))[0]
    share = max(1, concurrency // (others + 1))
    slots = max(busy, min(want, share, concurrency - int(held)))
    params = {"gate": name, "worker": worker, "slots": slots, "seconds": hold}
    await tx.run("hold_slots", params)
    return int(slots)


def _limits(name: str, gate: Gate) -> dict[str, object]:
    return {
        "name": name,
        "spacing": float(gate.spacing),
        "jitter": float(gate.jitter),
        "concurrency": gate.concurrency,
    }
