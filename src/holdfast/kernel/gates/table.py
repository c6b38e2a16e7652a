"""The shared side of gates: it gives out start times, places in flight and budgets in batches."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, NamedTuple

from holdfast.errors import NotThere
from holdfast.kernel.database.database import Database, verb
from holdfast.kernel.database.driver import Row, Transaction
from holdfast.kernel.database.instants import parse_instant, seconds_between
from holdfast.kernel.database.rows import fields_of
from holdfast.kernel.gates.budgets import Budget
from holdfast.kernel.jobs.audit import add_audit
from holdfast.kernel.record.decisions import DecisionRow
from holdfast.model import Gate

_LEAST_SLACK = 0.01
_SLACK_SHARE = 0.1
#: How many minutes the rates of a gate cover, and how long its minutes are kept.
RATE_MINUTES = 5
_KEPT_MINUTES = 24 * 60
#: Another worker may have a longer horizon, but hardly this many times longer.
_HORIZONS = 10
_POLL_SECONDS = 0.25  # how often urgent work looks for a place again


@dataclass(frozen=True, slots=True)
class Reservation:
    """Start times in seconds from the database's now (None: no spacing), places in flight (None: no
    limit), and how many of the costs the budget covers (None: no budget); or, with none of them,
    how long to wait and why."""

    starts: list[float] | None = None
    slots: int | None = None
    wait: float = 0.0
    reason: str = ""
    slack: float = 0.0  # how much later than its time a request may start
    covered: int | None = None
    concurrency: int = 0  # the gate's own limit, for all workers
    is_closed: bool = False  # somebody has closed the gate, and may open it again


@dataclass(frozen=True, slots=True)
class Want:
    """A worker's request to a gate: up to `places` in flight and, if the gate has a spacing,
    `starts` within `horizon` seconds (0: it has some left).

    The `busy` places, where requests are in flight, stay the worker's. `costs` are those of the
    requests that wait for the budget, in order. `weight` is that of the most urgent lane."""

    places: int
    starts: int
    horizon: float
    slack: float
    busy: int = 0
    costs: Sequence[float] = ()
    weight: int = 1


class Closing(NamedTuple):
    """The time that a gate stays closed, and why."""

    seconds: float
    reason: str


@dataclass(slots=True)
class Passes:
    """What passed a gate since the last count."""

    passed: int = 0
    units: float = 0.0
    waits: int = 0
    wait_seconds: float = 0.0
    throttles: int = 0
    failures: int = 0

    def add(self, other: Passes) -> None:
        for name, count in asdict(other).items():
            setattr(self, name, getattr(self, name) + count)


#: What passed, by the name of the gate and the job; 0 is no job.
PassesOfJobs = Mapping[tuple[str, int], Passes]
NO_DECISIONS: Mapping[int, Sequence[DecisionRow]] = {}


class GateTable:
    def __init__(self, database: Database, rng: random.Random, default: Gate) -> None:
        self._database = database
        self._rng = rng
        self._default = default

    async def all(self) -> list[dict[str, Any]]:
        """Returns every gate with its passes of the last `RATE_MINUTES` minutes."""
        since = await self._minute() - RATE_MINUTES
        rows = await self._database.fetch("gates", {"since": since})
        return [_described(row) for row in rows]

    @verb("declare_gate")
    async def declare(self, tx: Transaction, gate: Gate) -> None:
        await declare_gate(tx, gate)

    @verb("introduce_gate")
    async def introduce(self, tx: Transaction, gate: Gate) -> None:
        """Creates the gate, as its first request would, but with these limits.

        A gate that exists keeps its own."""
        await tx.run("default_gate", _limits(gate.name, gate))

    @verb("reserve_gate")
    async def reserve(self, tx: Transaction, name: str, worker: str, want: Want) -> Reservation:
        """Reserves places, budget and start times.

        Starts lie a tenth of the spacing further apart, at most `slack`: a request may start that
        much late and still keep its distance to the next."""
        gate = await _gate(tx, name, self._default)
        refusal = _refusal(gate, want.horizon)
        if refusal is not None:
            return refusal
        slots = await self._hold(tx, name, worker, want, gate["concurrency"])
        if slots == 0:
            wait = _POLL_SECONDS if want.weight > 1 else 1.0
            return Reservation(wait=wait, reason="all places are taken")
        covered = await _spend(tx, name, gate, want.costs)
        if isinstance(covered, Reservation):
            return covered
        most = gate["concurrency"]
        if not gate["spacing"] or not want.starts:
            starts: list[float] | None = [] if gate["spacing"] else None
            return Reservation(starts, slots, covered=covered, concurrency=most)
        late = min(want.slack, max(_LEAST_SLACK, gate["spacing"] * _SLACK_SHARE))
        step = gate["spacing"] + late
        first = _first_start(gate, want.horizon, step)
        starts = self._starts(first, want, step, gate["jitter"])
        if len(starts) == 1:
            return Reservation(wait=starts[0], reason=f"spacing of {gate['spacing']:g} s")
        await tx.run("reserve_gate", {"name": name, "seconds": starts[-1]})
        return Reservation(
            starts=starts[:-1], slots=slots, slack=late, covered=covered, concurrency=most
        )

    async def _hold(
        self, tx: Transaction, name: str, worker: str, want: Want, concurrency: int
    ) -> int | None:
        """Takes a fair share of the free places, by weight.

        A worker that gets none is counted as waiting, so that the others leave it some next
        time."""
        if not concurrency:
            return None
        row = (await tx.fetch("held_slots", {"gate": name, "worker": worker}))[0]
        held, others, waiting = map(int, row)
        share = max(1, concurrency * want.weight // (others + want.weight))
        left = concurrency - held - self._gives_way(want.weight, waiting)
        slots = max(want.busy, min(want.places, share, left))
        params = {"gate": name, "worker": worker, "slots": slots}
        await tx.run("hold_slots", params | {"weight": want.weight, "most": None})
        return int(slots)

    def _gives_way(self, weight: int, waiting: int) -> int:
        """Gives up a place to a worker of another lane that has none, as often as the weights say.

        Workers of one lane do not exchange places: nothing would pass during the exchange."""
        other_lane = waiting not in (0, weight)
        return int(other_lane and self._rng.random() * (waiting + weight) < waiting)

    def _starts(self, first: float, want: Want, step: float, jitter: float) -> list[float]:
        """Returns the start times within the horizon, and after them the next possible one."""
        starts = [first]
        while len(starts) <= want.starts and starts[-1] <= want.horizon:
            starts.append(starts[-1] + step + self._rng.uniform(0, jitter))
        return starts

    async def closing(self, name: str) -> Closing | None:
        """Returns None if the gate is open."""
        rows = await self._database.fetch("closing_of_gate", {"name": name})
        return Closing(rows[0]["seconds"], rows[0]["reason"] or "closed") if rows else None

    @verb("close_gate")
    async def close(self, tx: Transaction, name: str, seconds: float, reason: str) -> None:
        """Closes the gate for some seconds after a throttle, and lowers its budget."""
        await tx.run("default_gate", _limits(name, self._default))
        await tx.run("close_gate", {"name": name, "seconds": seconds, "reason": reason})
        gate = await _gate(tx, name, self._default)
        budget = budget_of(gate)
        if budget.limited:
            throttled_at = gate["throttled_at"]
            since = None if throttled_at is None else seconds_between(throttled_at, gate["now"])
            await tx.run("learn_budget", _kept(name, budget.throttled(since)))

    @verb("order_gate")
    async def order(
        self, tx: Transaction, name: str, seconds: float, reason: str, actor: str
    ) -> None:
        """Carries out a person's order to close a gate for some seconds or, with 0, to open it."""
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
        self,
        tx: Transaction,
        name: str,
        worker: str,
        slots: int,
        most: int | None = None,
        weight: int = 1,
    ) -> None:
        """Notes how many places the worker holds.

        `most` is how many it may have in flight now, by its own measurements; `weight` is that of
        its most urgent lane."""
        params = {"gate": name, "worker": worker, "slots": slots}
        await tx.run("hold_slots", params | {"weight": weight, "most": most})

    @verb
    async def leave_gate(self, tx: Transaction, name: str, worker: str) -> None:
        """Gives the worker's places back."""
        await tx.run("leave_gate", {"gate": name, "worker": worker})

    async def count_passes(
        self,
        counts: PassesOfJobs,
        worker: str = "",
        decisions: Mapping[int, Sequence[DecisionRow]] = NO_DECISIONS,
    ) -> None:
        """Adds what passed each gate, and for which job, and what a worker decided about the
        gates."""
        minute = await self._minute()
        await self._count_passes(counts, minute, worker, decisions)

    @verb(relaxed=True)
    async def _count_passes(
        self,
        tx: Transaction,
        counts: PassesOfJobs,
        minute: int,
        worker: str,
        decisions: Mapping[int, Sequence[DecisionRow]],
    ) -> None:
        totals: dict[str, Passes] = {}
        for (name, _), passes in counts.items():
            totals.setdefault(name, Passes()).add(passes)
        for name in sorted(totals):
            await tx.run("count_passes", {"gate": name, "minute": minute, **asdict(totals[name])})
        for name, job_id in sorted(counts):
            if job_id:
                use = asdict(counts[name, job_id])
                del use["units"]
                await tx.run("count_use", {"gate": name, "job_id": job_id, **use})
        for job_id, noted in decisions.items():
            for decision in noted:
                params = {"job_id": job_id, "worker": worker, **decision._asdict()}
                await tx.run("note_decision", params)

    async def of_job(self, job_id: int, limit: int) -> list[dict[str, Any]]:
        """Returns the gates that a job used, with what passed them for it, the busiest first."""
        params = {"job_id": job_id, "limit": limit}
        return [_use(row) for row in await self._database.fetch("uses_of_job", params)]

    async def forget_passes(self) -> None:
        await self._forget_passes(await self._minute())

    @verb
    async def _forget_passes(self, tx: Transaction, minute: int) -> None:
        await tx.run("forget_passes", {"minute": minute - _KEPT_MINUTES})

    async def _minute(self) -> int:
        now = parse_instant((await self._database.fetch("database_now"))[0][0])
        assert isinstance(now, datetime)
        return int(now.timestamp()) // 60


def budget_of(gate: Row) -> Budget:
    """Returns the budget as it is now: refilled since it was last used."""
    budget = Budget(
        gate["requests"],
        gate["units"],
        gate["period"],
        gate["share"],
        gate["requests_left"],
        gate["units_left"],
    )
    if gate["filled_at"] is None:
        return budget.full()
    return budget.later(max(0.0, seconds_between(gate["filled_at"], gate["now"])))


async def _gate(tx: Transaction, name: str, default: Gate) -> Row:
    rows = await tx.fetch("gate", {"name": name})
    if not rows:
        await tx.run("default_gate", _limits(name, default))
        rows = await tx.fetch("gate", {"name": name})
    return rows[0]


def _first_start(gate: Row, horizon: float, step: float) -> float:
    """Returns the seconds until the next start.

    No worker reserves starts far beyond its horizon: if the next one is there, the spacing was
    lowered or the database's clock was set back."""
    first = max(0.0, seconds_between(gate["now"], gate["next_at"]))
    longest = step + float(gate["jitter"])
    return first if first <= _HORIZONS * horizon + longest else longest


def _refusal(gate: Row, horizon: float) -> Reservation | None:
    if gate["kill_switch"]:
        return Reservation(wait=horizon, reason=f"kill switch {gate['kill_switch']}")
    if gate["closed_until"] is not None:
        wait = seconds_between(gate["now"], gate["closed_until"])
        if wait > 0:
            return Reservation(wait=wait, reason=gate["reason"], is_closed=True)
    return None


async def _spend(
    tx: Transaction, name: str, gate: Row, costs: Sequence[float]
) -> int | Reservation | None:
    """Spends the budget; returns how many of the costs it covers now, or None if there is no
    budget."""
    budget = budget_of(gate)
    if not budget.limited:
        return None
    if not costs:
        return 0
    left, covered = budget.take(costs)
    if not covered:
        return Reservation(wait=budget.wait_seconds(costs[0]), reason=_budget_text(budget))
    await tx.run("spend_budget", _kept(name, left))
    return covered


def _budget_text(budget: Budget) -> str:
    parts = []
    if budget.requests:
        parts.append(f"{budget.requests_now:g} requests")
    if budget.units:
        parts.append(f"{budget.units_now:g} units")
    return f"budget of {' and '.join(parts)} in {budget.period:g} s"


def _kept(name: str, budget: Budget) -> dict[str, Any]:
    return {
        "name": name,
        "share": budget.share,
        "requests_left": budget.requests_left,
        "units_left": budget.units_left,
    }


async def declare_gate(tx: Transaction, gate: Gate) -> None:
    await tx.run("declare_gate", _limits(gate.name, gate))


def _limits(name: str, gate: Gate) -> dict[str, object]:
    return {
        "name": name,
        "spacing": float(gate.spacing),
        "jitter": float(gate.jitter),
        "concurrency": gate.concurrency,
        "requests": gate.requests,
        "units": float(gate.units),
        "period": float(gate.period),
    }


def _use(row: Row) -> dict[str, Any]:
    """Describes a gate's use; `rate` is in requests a second, or None if there is no time to
    measure it over."""
    seconds = seconds_between(row["first_at"], row["last_at"])
    return fields_of(row) | {"rate": row["passed"] / seconds if seconds > 0 else None}


def _described(row: Row) -> dict[str, Any]:
    budget = budget_of(row)
    hidden = ("requests_left", "units_left", "filled_at", "now")
    fields = {name: value for name, value in fields_of(row).items() if name not in hidden}
    return fields | {
        "share": budget.share,
        "requests_now": budget.requests_now if budget.requests else None,
        "units_now": budget.units_now if budget.units else None,
    }
