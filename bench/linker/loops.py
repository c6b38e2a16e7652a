"""`python -m bench.linker.loops sequential|batched URL FILE`: what people write by hand.

`sequential` searches and fetches for one entry after the other; `batched` fetches the entities of
ten entries together, as OpenRefine groups its queries. Neither retries a refusal: they meet a
server that does not throttle. Prints how many calls were made.
"""

from __future__ import annotations

import csv
import json
import sys
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

AGENT = "holdfast-bench/1 (bench@holdfast.invalid) urllib/3"
_HITS = 10
_BATCH = {"sequential": 1, "batched": 10}
_IDS = 50


class Loop:
    def __init__(self, url: str) -> None:
        self._url = url
        self.calls = 0

    def ask(self, **params: Any) -> Any:
        query = urllib.parse.urlencode({**params, "format": "json", "formatversion": 2})
        request = urllib.request.Request(f"{self._url}?{query}", headers={"User-Agent": AGENT})
        self.calls += 1
        with urllib.request.urlopen(request, timeout=60) as reply:
            return json.load(reply)

    def match(self, names: Sequence[str]) -> None:
        ids: dict[str, None] = {}
        for name in names:
            found = self.ask(action="wbsearchentities", search=name, language="en", limit=_HITS)
            ids |= dict.fromkeys(hit["id"] for hit in found["search"])
        wanted = list(ids)
        for start in range(0, len(wanted), _IDS):
            self.ask(action="wbgetentities", ids="|".join(wanted[start : start + _IDS]))


def _batches(names: Sequence[str], size: int) -> Iterator[Sequence[str]]:
    for start in range(0, len(names), size):
        yield names[start : start + size]


if __name__ == "__main__":
    way, url, path = sys.argv[1:]
    with Path(path).open(newline="") as file:
        everyone = [row["name"] for row in csv.DictReader(file)]
    loop = Loop(url)
    for batch in _batches(everyone, _BATCH[way]):
        loop.match(batch)
    print(loop.calls)
