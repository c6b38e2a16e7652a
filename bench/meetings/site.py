"""Generates a site of any size, and serves it by Datasette."""

from __future__ import annotations

import hashlib
import json
import os
import random
import signal
import sqlite3
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from contextlib import closing, contextmanager
from datetime import UTC, date, datetime, timedelta
from pathlib import Path

from bench.measure import ROOT

TABLE = "minutes"
_BODIES = ("CityCouncil", "PlanningCommission", "ParksAndRecreation", "SchoolBoard", "Zoning")
_YEARS = 26
_PAGES_A_DOCUMENT = 12
_METADATA = {"databases": {"meetings": {"tables": {TABLE: {"sort_desc": "date"}}}}}


def make_site(folder: Path, count: int) -> Path:
    """Creates a site with about 2,000 characters of text a page, over 26 years up to half a year
    from now."""
    path = folder / "meetings.db"
    rng = random.Random(547)
    words = [_word(rng) for _ in range(5000)]
    columns = "id text primary key, meeting text, date text, page integer, text text, page_image"
    with closing(sqlite3.connect(path)) as database:
        database.execute("pragma synchronous = off")
        for table in ("agendas", TABLE):
            database.execute(f"create table {table} ({columns} text)")
        rows = _rows(rng, words, count)
        database.executemany(f"insert into {TABLE} values (?, ?, ?, ?, ?, ?)", rows)
        database.commit()
    return path


def _word(rng: random.Random) -> str:
    return "".join(rng.choices("etaoinshrdlu", k=rng.randint(2, 10)))


def _rows(
    rng: random.Random, words: list[str], count: int
) -> Iterator[tuple[str, str, str, int, str, str]]:
    last = datetime.now(UTC).date() + timedelta(days=180)
    documents = max(1, count // _PAGES_A_DOCUMENT)
    days = _YEARS * 365
    for number in range(count):
        document, page = number % documents, number // documents + 1
        meeting = _BODIES[document % len(_BODIES)]
        day = _day(last, days, document, documents)
        text = f"{number} " + " ".join(rng.choices(words, k=rng.randint(150, 450)))
        content = json.dumps([meeting, day, page, text]).encode()
        key = hashlib.sha256(content).hexdigest()[:12]
        yield key, meeting, day, page, text, f"/{meeting}/{day}/{page}.png"


def _day(last: date, days: int, document: int, documents: int) -> str:
    return (last - timedelta(days=document * days // documents)).isoformat()


@contextmanager
def serving(folder: Path, site: Path, port: int) -> Iterator[str]:
    """Runs Datasette with the limits that real sites have, until the end of the block."""
    found = os.environ.get("DATASETTE_0") or ROOT / ".venv" / "datasette-0" / "bin" / "datasette"
    metadata = folder / "metadata.json"
    metadata.write_text(json.dumps(_METADATA))
    command = [str(found), "serve", str(site), "-p", str(port), "-m", str(metadata)]
    with (folder / "datasette.log").open("ab") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        url = f"http://127.0.0.1:{port}"
        _wait(process, url)
        yield url
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(30)


def _wait(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + 60
    while time.monotonic() < deadline and process.poll() is None:
        try:
            urllib.request.urlopen(f"{url}/-/versions.json", timeout=5).close()
            return
        except OSError:
            time.sleep(0.1)
    raise RuntimeError("Datasette did not start; run `make bench`, which installs it")
