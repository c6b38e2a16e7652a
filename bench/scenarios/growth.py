"""Measures the cost per item as the table grows: the same small job beside more and more finished
items."""

from __future__ import annotations

from statistics import median

from bench import holdfast_runs
from bench.holdfast_runs import Postgres
from bench.report import Result, Table, at_most, per_second, times
from bench.scenarios.ground import Ground

LARGEST_FILLING = 1_000_000  # items of one job that only makes the table larger
MICROSECONDS = 1e6


def run(ground: Ground) -> Result:
    result = Result("growth")
    job, levels = ground.sizes.growth_job, ground.sizes.growth_levels
    columns = ("items in the table", "items/s", "µs an item", "of the first")
    table = Table(f"A job of {job:,} no-op items as the table grows, one worker", columns)
    costs = ground.attempt(result, "growth", _costs, ground, levels)
    for level, cost in costs or ():
        result.figures[f"µs an item at {level}"] = cost
        first = result.figures[f"µs an item at {levels[0]}"]
        table.add(f"{level:,}", per_second(MICROSECONDS / cost), f"{cost:.1f}", times(cost / first))
    table.notes.append("Vacuumed and checkpointed before each measured job.")
    result.tables.append(table)
    worst = max(cost for _, cost in costs) / costs[0][1] if costs else None
    name = f"cost per item from {levels[0]:,} to {levels[-1]:,} items"
    result.targets.append(at_most(name, worst, 1.2, "× the first"))
    return result


def _costs(ground: Ground, levels: tuple[int, ...]) -> list[tuple[int, float]]:
    database = holdfast_runs.fresh_postgres(ground.servers, ground.folder)
    costs, present = [], 0
    for level in levels:
        while present < level:
            filling = min(LARGEST_FILLING, level - present)
            ground.say(f"filling up to {level:,} items, {present:,} are there")
            _work_job(ground, database, filling, workers=2)
            present += filling
        measured = []
        for _ in range(ground.sizes.rounds):
            ground.say(f"a job of {ground.sizes.growth_job:,} items beside {present:,}")
            measured.append(_work_job(ground, database, ground.sizes.growth_job, workers=1))
            present += ground.sizes.growth_job
        costs.append((level, median(measured)))
    return costs


def _work_job(ground: Ground, database: Postgres, count: int, workers: int) -> float:
    """Returns the microseconds per item of a job of this size."""
    holdfast_runs.ingest(database, ground.file(count), ground.folder)
    database.settle_down()
    rate = holdfast_runs.work(database, workers, ground.folder).rate
    return MICROSECONDS / rate.per_second
