"""A process that scans an adapter and is killed at one step, as by a power cut.

python -m tests.api.doomed_scan ADAPTER STEP; the settings are in the environment."""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from holdfast.cli.api_parts import opened_parts
from holdfast.configuration import load_settings
from holdfast.features.ingestion.adapter_scans import AdapterScans
from holdfast.features.ingestion.adapters import Adapter, Adapters
from holdfast.features.ingestion.places.contract import Place
from tests.api.server import PIPELINES

#: What a scanner does with a file, in order; each before and after.
OF_PLACE = ("arrivals", "fetch", "accept", "refuse")
OF_ROWS = ("lease_adapter", "see_file", "note_file", "start_job", "release_adapter")
STEPS = [f"{when} {step}" for step in OF_PLACE + OF_ROWS for when in ("before", "after")]


def killing(step: str, doomed: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(method)
    async def killed(*arguments: Any, **options: Any) -> Any:
        if doomed == f"before {step}":
            os.kill(os.getpid(), signal.SIGKILL)
        result = await method(*arguments, **options)
        if doomed == f"after {step}":
            os.kill(os.getpid(), signal.SIGKILL)
        return result

    return killed


async def main(name: str, doomed: str) -> None:
    for step in OF_ROWS:
        setattr(Adapters, step, killing(step, doomed, getattr(Adapters, step)))
    async with opened_parts(load_settings(os.environ), PIPELINES) as parts:
        scans = parts.scans

        def open_doomed(adapter: Adapter) -> Place:
            place: Any = scans.open_place(adapter)
            kind = type(place)
            for step in OF_PLACE:
                setattr(kind, step, killing(step, doomed, getattr(kind, step)))
            return place

        adapter = await parts.console.adapters.named(name)
        await AdapterScans(scans.console, scans.new_jobs, open_doomed, scans.log).scan(adapter)


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:]))
