"""Tables for people, one JSON file for machines."""

from __future__ import annotations

import json
import os
import platform
from dataclasses import asdict, dataclass, field
from datetime import datetime
from pathlib import Path

from rich.console import Console
from rich.table import Table as RichTable

RESULTS = Path(__file__).parent / "results"


@dataclass(frozen=True, slots=True)
class Target:
    """A goal of the project. `met` is None if it could not be measured."""

    name: str
    wanted: str
    seen: str
    met: bool | None


@dataclass(slots=True)
class Table:
    title: str
    columns: tuple[str, ...]
    rows: list[tuple[str, ...]] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    def add(self, *cells: str) -> None:
        self.rows.append(cells)


@dataclass(slots=True)
class Result:
    """The findings of one scenario. `figures` are plain numbers under plain names."""

    scenario: str
    tables: list[Table] = field(default_factory=list)
    targets: list[Target] = field(default_factory=list)
    figures: dict[str, float] = field(default_factory=dict)
    failures: list[str] = field(default_factory=list)


def at_least(name: str, seen: float | None, wanted: float, reference: str) -> Target:
    """Returns a target on a ratio that must not be smaller than `wanted`."""
    words = f"at least {wanted:g} × {reference}"
    if seen is None:
        return Target(name, words, "not measured", None)
    return Target(name, words, f"{seen:.2f} ×", seen >= wanted)


def at_most(name: str, seen: float | None, wanted: float, unit: str) -> Target:
    words = f"at most {wanted:g} {unit}"
    if seen is None:
        return Target(name, words, "not measured", None)
    return Target(name, words, f"{seen:.4g} {unit}", seen <= wanted)


def ratio(value: float | None, reference: float | None) -> float | None:
    return value / reference if value and reference else None


def per_second(value: float | None) -> str:
    return "—" if value is None else f"{value:,.0f}"


def times(value: float | None) -> str:
    return "—" if value is None else f"{value:.2f} ×"


def show(console: Console, result: Result) -> None:
    for table in result.tables:
        console.print()
        console.print(_rich(table.title, table.columns, table.rows))
        for note in table.notes:
            console.print(f"  {note}", style="dim", highlight=False)
    for failure in result.failures:
        console.print(f"  could not be measured: {failure}", style="red", markup=False)


def show_targets(console: Console, results: list[Result]) -> None:
    rows: list[tuple[str, ...]] = [
        (target.name, target.wanted, target.seen, _met(target.met))
        for result in results
        for target in result.targets
    ]
    if not rows:
        return
    console.print()
    console.print(_rich("To reach", ("what", "wanted", "seen", "met"), rows))


def _met(met: bool | None) -> str:
    return "—" if met is None else "yes" if met else "no"


def _rich(title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> RichTable:
    table = RichTable(title=title, title_justify="left", title_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="left" if number == 0 else "right")
    for row in rows:
        table.add_row(*row)
    return table


def write(results: list[Result], at: datetime, busy_percent: float, quick: bool) -> Path:
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{at:%Y-%m-%dT%H-%M-%S}.json"
    content = {
        "at": at.isoformat(timespec="seconds"),
        "quick": quick,
        "machine": {
            "cores": os.cpu_count(),
            "system": platform.platform(),
            "python": platform.python_version(),
            "busy_percent_before": busy_percent,
        },
        "results": [asdict(result) for result in results],
    }
    path.write_text(json.dumps(content, indent=2, ensure_ascii=False) + "\n")
    return path
