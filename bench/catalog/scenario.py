"""Prices a long list from the local catalogue, and compares with the bare loop of look-ups."""

from __future__ import annotations

import csv
import os
import random
import subprocess
import sys
import time
from pathlib import Path

from bench.catalog.photos import price_photographs, write_zip
from bench.measure import RunFailed
from bench.quality.catalog.measuring import EXPECTED, LISTS, REVIEW
from bench.report import Result, Table, at_most, per_second
from bench.scenarios.ground import QUICK, Ground

_LABELLED, _CATALOGUE = LISTS[0]
_ROWS, _QUICK_ROWS = 100_000, 2_000
_PHOTOS, _QUICK_PHOTOS = 10_000, 300
_MEMORY_MB = 300.0
_OVERHEAD = 1.2
_COLUMNS = ("Item Description", "Brand", "Model#", "UPC", "QTY")


def run(ground: Ground) -> Result:
    result = Result("catalog")
    count = _QUICK_ROWS if ground.sizes is QUICK else _ROWS
    path, url = ground.folder / "products.csv", f"sqlite:///{ground.folder}/catalog.db"
    _write_list(path, count)
    bare = ground.attempt(result, "bare loop", _bare, ground, url, path)
    own = ground.attempt(result, "Holdfast, 1 worker", _priced, url, path)
    table = Table(f"{count:,} rows against the local catalogue (SQLite)", ("", "seconds", "rows/s"))
    for name, seconds in (("bare loop", bare), ("Holdfast, ingest to results", own)):
        if seconds is not None:
            table.add(name, f"{seconds:.1f}", per_second(count / seconds))
            result.figures[name] = seconds
    result.tables.append(table)
    ratio = own / bare if own and bare else None
    result.targets.append(at_most("a list beside the bare loop", ratio, _OVERHEAD, "times"))
    _photographs(ground, result)
    return result


def _photographs(ground: Ground, result: Result) -> None:
    count = _QUICK_PHOTOS if ground.sizes is QUICK else _PHOTOS
    path, url = ground.folder / "photos.zip", f"sqlite:///{ground.folder}/photos.db"
    write_zip(path, count)
    watch = ground.attempt(
        result, "zip of photographs", price_photographs, url, path, ground.folder
    )
    megabytes = watch.peak_bytes / 1e6 if watch else None
    table = Table(f"{count:,} photographs in a zip", ("", "seconds", "peak MB"))
    if watch and megabytes:
        table.add("Holdfast, all processes", f"{watch.seconds:.1f}", f"{megabytes:.0f}")
        result.figures["photographs"] = watch.seconds
    result.tables.append(table)
    result.targets.append(at_most("a zip of photographs, memory", megabytes, _MEMORY_MB, "MB"))


def _write_list(path: Path, count: int) -> None:
    with _LABELLED.open(newline="") as file:
        known = [row for row in csv.DictReader(file) if row[EXPECTED] not in ("", REVIEW)]
    rng = random.Random(1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(("Item #", *_COLUMNS))
        for number in range(1, count + 1):
            row = rng.choice(known)
            writer.writerow((number, *(row[name] for name in _COLUMNS)))


def _bare(ground: Ground, url: str, path: Path) -> float:
    _command(url, "holdfast", "catalog", "load", str(_CATALOGUE))
    return float(_command(url, "bench.catalog.bare", url, str(path)))


def _priced(url: str, path: Path) -> float:
    started = time.perf_counter()
    _command(url, "holdfast", "run", "catalog", str(path), "--workers", "1")
    return time.perf_counter() - started


def _command(url: str, module: str, *arguments: str) -> str:
    environment = os.environ | {"HOLDFAST_DATABASE_URL": url}
    ended = subprocess.run(
        [sys.executable, "-m", module, *arguments],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    if ended.returncode:
        raise RunFailed(ended.stderr[-1000:])
    return ended.stdout
