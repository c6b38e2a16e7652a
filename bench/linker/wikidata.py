"""`python -m bench.linker.wikidata PEOPLE THROTTLED LOG`: a local Wikidata, until SIGTERM.

Prints its address, and at the end writes the time, action and status of each request to LOG.
"""

from __future__ import annotations

import asyncio
import json
import random
import signal
import sys
import time
from pathlib import Path

from pipelines.linker.tests.entity_world import make_world
from pipelines.linker.tests.wikidata_server import WikidataServer, html
from tests.world import Answer


async def serve(people: int, throttled: float, log: Path) -> None:
    server = WikidataServer(make_world(1, people=people))
    rng = random.Random(5)
    seen: list[tuple[float, str, int]] = []

    def trouble(params: dict[str, str], number: int) -> Answer | None:
        refused = rng.random() < throttled
        seen.append((time.monotonic(), params.get("action", ""), 429 if refused else 200))
        return html(429, {"Retry-After": "1"}) if refused else None

    server.trouble = trouble
    stopped = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stopped.set)
    async with server:
        print(server.url, flush=True)
        await stopped.wait()
    log.write_text(json.dumps(seen))


if __name__ == "__main__":
    asyncio.run(serve(int(sys.argv[1]), float(sys.argv[2]), Path(sys.argv[3])))
