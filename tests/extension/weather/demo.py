from __future__ import annotations

from holdfast.demo.part import NOT_FOUND, Ask, DemoPart, Reply, Sample
from holdfast.kernel.jobs.control import JobRequest


def answer(ask: Ask) -> Reply:
    return Reply({"degrees": 21}) if ask.path == "stations/1" else NOT_FOUND


def environment(url: str) -> dict[str, str]:
    return {"HOLDFAST_WEATHER_TOKEN": url}


async def fill(sample: Sample) -> None:
    await sample.control.start(JobRequest(sample.pipeline))


DEMO = DemoPart(answer, environment, fill)
