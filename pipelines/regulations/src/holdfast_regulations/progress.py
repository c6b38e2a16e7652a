"""Logs the progress of runs as events, at intervals."""

from __future__ import annotations

from holdfast.pipeline import Context

_MOST_RUNS = 256


class Progress:
    """Logs when a count crosses an interval, however far it jumps."""

    def __init__(self, interval: int) -> None:
        self._interval = interval
        self._logged: dict[int, tuple[int, int]] = {}
        self._items = 0

    async def log_item(self, ctx: Context) -> None:
        """Logs an item's progress.

        It asks the database only now and then: most items change no interval."""
        self._items += 1
        if self._items % self._interval == 0:
            await self.log(ctx)

    async def log(self, ctx: Context) -> None:
        job = ctx.job
        rows = await ctx.read("regulations_progress", {"job_id": job.id})
        queued, skipped, errors = (int(rows[0][n]) for n in ("accepted", "known", "errors"))
        step = ((queued + skipped) // self._interval, errors // self._interval)
        if self._logged.get(job.id) == step:
            return
        if len(self._logged) >= _MOST_RUNS:
            self._logged.clear()
        self._logged[job.id] = step
        ctx.log.info(
            "regulations.progress",
            job_id=job.id,
            discovered=queued + skipped,
            max_urls=ctx.options.get("max_urls"),
            queued=queued,
            skipped=skipped,
            errors=errors,
        )
