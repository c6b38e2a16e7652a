"""The live display of a run: rate, time left, counts, retries, what it is waiting for."""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass

from rich.console import Console, Group, RenderableType
from rich.live import Live
from rich.markup import escape
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from holdfast.cli.output import seconds_left
from holdfast.clock import Clock
from holdfast.errors import DatabaseGone
from holdfast.features.console import open_console
from holdfast.features.jobs.why import Reason, why_not_running
from holdfast.kernel import Store
from holdfast.model import Counters, Job

_REFRESH_SECONDS = 0.25
_LOOK_SECONDS = 0.5
_LINE_SECONDS = (2.0, 60.0)
_RATE_WINDOW = 40


@dataclass(slots=True)
class Snapshot:
    job: Job
    counters: Counters
    reason: Reason | None
    rate: float
    database_gone: str = ""

    @property
    def left_seconds(self) -> float | None:
        if self.rate <= 0 or self.job.discovered_at is None:
            return None
        return self.counters.open / self.rate


class Progress:
    def __init__(self, store: Store, job_id: int, clock: Clock, console: Console) -> None:
        self._store = store
        self._job_id = job_id
        self._clock = clock
        self._console = console
        self._samples: deque[tuple[float, int]] = deque(maxlen=_RATE_WINDOW)
        self._last: Snapshot | None = None

    async def show(self) -> None:
        """Shows the display until cancelled."""
        if not self._console.is_terminal:
            await self._show_lines()
            return
        with Live(console=self._console, refresh_per_second=8, transient=True) as live:
            while True:
                live.update(_display(await self._snapshot()))
                await asyncio.sleep(_REFRESH_SECONDS)

    async def _show_lines(self) -> None:
        """Prints lines for a log: less and less often, but at once if something blocks the job."""
        wait, shown, obstacle = _LINE_SECONDS[0], self._clock.monotonic(), ""
        await self._snapshot()
        while True:
            await asyncio.sleep(_LOOK_SECONDS)
            snapshot = await self._snapshot()
            before, obstacle = obstacle, _obstacle(snapshot)
            elapsed = self._clock.monotonic() - shown
            if elapsed < wait and before == obstacle:
                continue
            self._console.print(_line(snapshot), soft_wrap=True)
            wait = min(_LINE_SECONDS[1], max(wait, elapsed) * 1.5)
            shown += elapsed

    async def _snapshot(self) -> Snapshot:
        try:
            job = await self._store.reads.job(self._job_id)
            counters = await self._store.reads.counters(self._job_id)
            reason = await why_not_running(open_console(self._store), job)
        except DatabaseGone as error:
            if self._last is None:
                raise
            self._last.database_gone = str(error)
            return self._last
        self._samples.append((self._clock.monotonic(), counters.finished))
        self._last = Snapshot(job, counters, reason, self._rate())
        return self._last

    def _rate(self) -> float:
        (start, before), (end, after) = self._samples[0], self._samples[-1]
        return (after - before) / (end - start) if end > start else 0.0


def _display(snapshot: Snapshot) -> Group:
    counters = snapshot.counters
    bar = ProgressBar(
        total=max(1, counters.accepted), completed=counters.finished, width=None, pulse=False
    )
    head = Table.grid(expand=True)
    head.add_column()
    head.add_column(justify="right")
    head.add_row(f"[bold]{escape(snapshot.job.name)}[/]", _speed(snapshot))
    # In its own grid, because a bar does not end with a line break.
    shown = Table.grid(expand=True)
    shown.add_row(bar)
    lines: list[RenderableType] = [head, shown, Text.from_markup(_counts(counters))]
    waiting = _waiting(snapshot)
    if waiting:
        lines.append(Text.from_markup(f"[yellow]{escape(waiting)}[/]"))
    return Group(*lines)


def _line(snapshot: Snapshot) -> str:
    parts = [_speed(snapshot), _counts(snapshot.counters)]
    waiting = _waiting(snapshot)
    if waiting:
        parts.append(escape(waiting))
    return " · ".join(parts)


def _speed(snapshot: Snapshot) -> str:
    counters = snapshot.counters
    more = "" if snapshot.job.discovered_at is not None else "+"
    text = f"{counters.finished:,} of {counters.accepted:,}{more} · {_per_second(snapshot.rate)}"
    left = snapshot.left_seconds
    return text if left is None else f"{text} · {seconds_left(left)} left"


def _per_second(rate: float) -> str:
    return f"{rate:,.0f}/s" if rate >= 10 or not rate else f"{rate:.1f}/s"


def _counts(counters: Counters) -> str:
    return (
        f"[green]done {counters.done:,}[/]  [yellow]not found {counters.not_found:,}[/]  "
        f"[red]error {counters.error:,}[/]  [dim]skipped {counters.skipped:,}[/]  "
        f"open {counters.open:,}  retries {counters.retried:,}"
    )


def _obstacle(snapshot: Snapshot) -> str:
    """Returns what to report at once. Retries are left out: they come and go."""
    if snapshot.database_gone:
        return "database"
    kind = snapshot.reason.kind if snapshot.reason else ""
    return kind if kind in ("kill switch", "gate closed until") else ""


def _waiting(snapshot: Snapshot) -> str:
    if snapshot.database_gone:
        return f"Waiting for the database: {snapshot.database_gone}"
    reason = snapshot.reason
    # The run has its own workers, even while they are starting.
    if reason is None or reason.kind in ("leased by", "cap reached", "no live worker"):
        return ""
    if reason.until is None:
        return f"Waiting: {reason.text}"
    until = reason.until.astimezone().strftime("%H:%M:%S")
    return f"Waiting: {reason.kind} {until}: {reason.text}"
