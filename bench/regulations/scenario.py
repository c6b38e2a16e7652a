"""Discovery of a million URLs in 9,551 sitemaps, and fetching with open gates."""

from __future__ import annotations

import os
import sqlite3
import statistics
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass

from bench import measure
from bench.measure import RunFailed, Watch, python
from bench.regulations.discover import SOURCE
from bench.report import Result, Table, at_least, at_most, per_second, ratio
from bench.scenarios.ground import QUICK, Ground
from bench.servers import free_port

_MEGABYTE = 1024 * 1024
_PATIENCE = 1800.0
_CORES = os.cpu_count() or 1


@dataclass(frozen=True, slots=True)
class Amounts:
    sitemaps: int
    urls: int
    files: int


_FULL, _QUICK = Amounts(9_551, 1_000_000, 10_000), Amounts(200, 20_000, 1_000)


def run(ground: Ground) -> Result:
    result = Result("regulations")
    quick = ground.sizes is QUICK
    amounts = _QUICK if quick else _FULL
    _from_memory(ground, result, amounts, 1 if quick else 3)
    with _serving(amounts) as port:
        large = _over_http(ground, result, port)
        _fetch(ground, result, amounts, port)
    tenth = Amounts(amounts.sitemaps // 10, amounts.urls // 10, 0)
    with _serving(tenth) as port:
        small = _watched(ground, result, "holdfast, a tenth", _discover(port))
    _memory(result, {tenth.urls: small, amounts.urls: large})
    return result


@contextmanager
def _serving(amounts: Amounts) -> Iterator[int]:
    port = free_port()
    command = python("bench.regulations.site", port, amounts.sitemaps, amounts.urls)
    process = subprocess.Popen(
        command, cwd=measure.ROOT, env=measure.environment(), stdout=subprocess.PIPE
    )
    try:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield port
    finally:
        process.terminate()
        process.wait(30)


def _from_memory(ground: Ground, result: Result, amounts: Amounts, rounds: int) -> None:
    """Measures processor time, in turns: what the reader, the checks and the keys cost."""
    seconds: dict[str, list[float]] = {"bare": [], "holdfast": []}
    for _ in range(rounds):
        for way, taken in seconds.items():
            command = python("bench.regulations.memory", way, amounts.sitemaps, amounts.urls)
            out = ground.attempt(result, f"{way}, from memory", _output, command)
            if out is not None:
                taken.append(float(out.split()[1]))
    table = Table(
        f"{amounts.urls:,} URLs in {amounts.sitemaps:,} sitemaps, from memory",
        ("way", "processor seconds", "URLs/s"),
    )
    middle = {way: statistics.median(taken) for way, taken in seconds.items() if taken}
    for way, taken in middle.items():
        table.add(way, f"{taken:.2f}", per_second(amounts.urls / taken))
    result.tables.append(table)
    result.figures |= {f"{way}, from memory, s": taken for way, taken in middle.items()}
    slower = ratio(middle.get("holdfast"), middle.get("bare"))
    result.targets.append(
        at_most("regulations, sitemaps from memory", slower, 2, "times a bare iterparse loop")
    )


def _discover(port: int) -> list[str]:
    return python("bench.regulations.discover", port)


def _watched(ground: Ground, result: Result, name: str, command: list[str]) -> Watch | None:
    run = (measure.run_to_end, [command], ground.folder, {}, _PATIENCE)
    return ground.attempt(result, f"{name}, over HTTP", *run)


def _over_http(ground: Ground, result: Result, port: int) -> Watch | None:
    """Measures whole processes: downloads, one after the other, where Scrapy has 16 at once."""
    ways = {
        "bare": python("bench.regulations.bare", port),
        "holdfast": _discover(port),
        "Scrapy": python("bench.regulations.scrapy_runs", "sitemaps", port),
    }
    watches: dict[str, Watch] = {}
    for name, command in ways.items():
        watch = _watched(ground, result, name, command)
        if watch is not None:
            watches[name] = watch
    table = Table("The same over HTTP, whole processes", ("way", "seconds", "peak MB"))
    for name, watch in watches.items():
        table.add(name, f"{watch.seconds:.1f}", f"{watch.peak_bytes / _MEGABYTE:.0f}")
        result.figures[f"{name}, over HTTP, s"] = watch.seconds
    result.tables.append(table)
    own, bare, scrapy = (watches.get(name) for name in ("holdfast", "bare", "Scrapy"))
    seconds = own and own.seconds
    result.targets += [
        at_most(
            "regulations, discovery over HTTP", ratio(seconds, bare and bare.seconds), 2,
            "times a bare loop",
        ),
        at_least(
            "regulations, discovery over HTTP", ratio(scrapy and scrapy.seconds, seconds), 1,
            "Scrapy's rate",
        ),
    ]  # fmt: skip
    return own


def _memory(result: Result, watches: Mapping[int, Watch | None]) -> None:
    """Measures memory: what discovery holds does not grow with what it finds."""
    table = Table("Memory of discovery", ("URLs", "peak MB"))
    peaks = {urls: watch.peak_bytes / _MEGABYTE for urls, watch in watches.items() if watch}
    for urls, peak in peaks.items():
        table.add(f"{urls:,}", f"{peak:.0f}")
        result.figures[f"peak of {urls:,} URLs, MB"] = peak
    result.tables.append(table)
    small, large = (peaks.get(urls) for urls in watches)
    result.targets += [
        at_most("regulations, memory of discovery", large, 150, "MB"),
        at_most(
            "regulations, memory of ten times the URLs", ratio(large, small), 1.25, "times as much"
        ),
    ]


def _fetch(ground: Ground, result: Result, amounts: Amounts, port: int) -> None:
    """Measures whole processes: Scrapy prepares all its requests before it stores the first
    file."""
    count = amounts.files
    scrapy = ground.attempt(result, "Scrapy, files", _scrapy_files, ground, count, port)
    own = ground.attempt(result, "holdfast, fetch", _holdfast_pages, ground, count, port)
    table = Table(
        f"{count:,} pages fetched and stored, whole processes",
        ("way", "pages/s", "seconds", "processor seconds"),
    )
    for name, watch in (("Scrapy, files pipeline", scrapy), (f"holdfast, {_CORES} workers", own)):
        if watch is not None:
            used = f"{max(used for _, used in watch.samples):.1f}"
            table.add(name, per_second(count / watch.seconds), f"{watch.seconds:.1f}", used)
            result.figures[f"{name.partition(',')[0]}, pages/s"] = count / watch.seconds
    table.notes.append(
        "Scrapy is given the URLs. Holdfast finds them in sitemaps, extracts the text, title and"
        " date of each page, and stores captures and items in SQLite."
    )
    result.tables.append(table)
    faster = ratio(scrapy and scrapy.seconds, own and own.seconds)
    result.targets.append(at_least("regulations, fetch and store", faster, 1, "Scrapy's rate"))


def _scrapy_files(ground: Ground, count: int, port: int) -> Watch:
    folder = ground.folder / "scrapy-files"
    command = python("bench.regulations.scrapy_runs", "files", port, count, folder)
    watch = measure.run_to_end([command], ground.folder, {}, _PATIENCE)
    stored = sum(path.is_file() for path in folder.rglob("*"))
    if stored != count:
        raise RunFailed(f"{stored:,} of {count:,} are stored. {measure.tail(ground.folder)}")
    return watch


def _holdfast_pages(ground: Ground, count: int, port: int) -> Watch:
    folder = ground.folder / "regulations"
    folder.mkdir()
    (folder / "sources.toml").write_text(SOURCE.format(port=port))
    settings = {
        "HOLDFAST_DATA_DIR": str(folder / "data"),
        "HOLDFAST_ALLOW_PRIVATE_ADDRESSES": "true",
        "HOLDFAST_REGULATIONS_SOURCES": str(folder / "sources.toml"),
    }
    run = ("regulations", "backfill", "--no-work", "--max-urls", str(count),
           "--max-urls-per-source", str(count))  # fmt: skip
    switch = ("flag", "set", "regulations_enabled", "on")
    for words in (("migrate", "up"), switch, run):
        measure.run_to_end([python("holdfast", *words)], ground.folder, settings, _PATIENCE)
    work = python("holdfast", "work", "regulations", "--until-idle", "--processes", _CORES)
    watch = measure.run_to_end([work], ground.folder, settings, _PATIENCE)
    with closing(sqlite3.connect(folder / "data" / "holdfast.db")) as database:
        (stored,) = database.execute(
            "select count(*) from holdfast_regulations_captures"
        ).fetchone()
    if stored != count:
        raise RunFailed(f"{stored:,} of {count:,} are stored. {measure.tail(ground.folder)}")
    return watch


def _output(command: list[str]) -> str:
    done = subprocess.run(
        command, cwd=measure.ROOT, env=measure.environment(), capture_output=True, text=True
    )
    if done.returncode:
        raise RunFailed(done.stderr[-2000:])
    return done.stdout
