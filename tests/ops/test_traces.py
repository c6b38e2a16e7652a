"""A trace from the making of a job to the settlement of its items, over several processes."""

from collections.abc import Iterator

import pytest

from tests.cli.desk import UPPER, Desk
from tests.collector import Collector, collecting
from tests.command import HoldfastCommand
from tests.ports import free_port

FINDER = """
    from holdfast import Page, Pipeline, Record

    class Finder(Pipeline):
        name = "finder"
        columns = ["n"]

        async def discover(self, source, cursor, ctx):
            yield Page([Record({"n": n}) for n in range(3)], end=True)

        async def process(self, row, ctx):
            return {"n": row["n"]}
"""


@pytest.fixture
def desk(holdfast_command: HoldfastCommand) -> Desk:
    return Desk(holdfast_command)


@pytest.fixture
def collector() -> Iterator[Collector]:
    with collecting() as collector:
        yield collector


def test_a_trace_goes_from_the_making_of_a_job_to_its_claims_and_settlements(
    desk: Desk, collector: Collector
) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 30)
    sending = {"HOLDFAST_OTLP_ENDPOINT": collector.url}
    desk.succeed("run", "upper.py", "in.csv", "--no-work", env=sending)
    worker = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url, "OTEL_SERVICE_NAME": "a-worker"}
    desk.succeed("work", "upper.py", "--until-idle", env=worker)

    (created,) = collector.named("job.create")
    claims, settles = collector.named("claim"), collector.named("settle")

    assert created.trace_id == desk.json("show", "1")["trace_id"]
    assert created.trace_id in desk.succeed("show", "1")
    assert {span.trace_id for span in collector.spans} == {created.trace_id}
    assert (created.service, created.attributes["job_id"]) == ("holdfast", 1)
    assert {span.service for span in claims + settles} == {"a-worker"}
    assert {span.parent_id for span in claims + settles} == {created.span_id}
    assert sum(span.attributes["items"] for span in settles) == 30
    assert {(s.attributes["job_id"], s.attributes["pipeline"]) for s in claims} == {(1, "upper")}


def test_discovery_is_in_the_trace_of_its_job(desk: Desk, collector: Collector) -> None:
    desk.write("finder.py", FINDER)
    desk.succeed("run", "finder.py", env={"HOLDFAST_OTLP_ENDPOINT": f"{collector.url}/v1/traces"})
    (created,) = collector.named("job.create")
    assert {span.parent_id for span in collector.named("walk")} == {created.span_id}
    assert collector.named("settle")


def test_ids_are_made_and_logged_where_nothing_is_sent(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 3)
    desk.succeed("run", "upper.py", "in.csv", "--no-work")
    trace_id = desk.json("show", "1")["trace_id"]
    loud = {"HOLDFAST_LOG_LEVEL": "debug", "HOLDFAST_LOG_FORMAT": "json"}
    done = desk.holdfast("work", "upper.py", "--until-idle", env=loud)
    settled = [line for line in done.stderr.splitlines() if '"items.settled"' in line]
    assert settled and all(trace_id in line for line in settled)


def test_a_collector_that_is_gone_stops_nothing(desk: Desk) -> None:
    desk.write("upper.py", UPPER)
    desk.write_rows("in.csv", 3)
    gone = {"HOLDFAST_OTLP_ENDPOINT": f"http://127.0.0.1:{free_port()}"}
    desk.succeed("run", "upper.py", "in.csv", env=gone)
    assert desk.statuses() == ["DONE"] * 3


def test_an_endpoint_that_is_not_an_address_is_refused(desk: Desk) -> None:
    done = desk.holdfast("jobs", env={"HOLDFAST_OTLP_ENDPOINT": "collector:4318"})
    assert done.returncode == 1
    assert "HOLDFAST_OTLP_ENDPOINT must be an address such as http://collector:4318" in done.stderr
