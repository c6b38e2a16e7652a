"""A request's `traceparent` reaches the job that it makes."""

from __future__ import annotations

import pytest

from tests.api.server import ApiServer

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


async def test_job_belongs_to_the_trace_of_its_request(server: ApiServer) -> None:
    ada = await server.person("ada")
    header = {"traceparent": f"00-{TRACE}-00f067aa0ba902b7-01"}
    made = await ada.post(
        "/api/jobs", files={"file": ("a.csv", b"title\nchair\n")}, data={"pipeline": "lengths"},
        headers=header,
    )  # fmt: skip
    assert made.status_code == 202, made.text
    job = await server.parts.store.reads.job(made.json()["id"])
    assert job.trace is not None and job.trace.split("-")[1] == TRACE


@pytest.mark.parametrize("header", ["", "00-0-0-01", f"00-{'0' * 32}-00f067aa0ba902b7-01", "x" * 9])
async def test_header_that_names_no_trace_is_ignored(server: ApiServer, header: str) -> None:
    ada = await server.person("ada")
    made = await ada.post(
        "/api/jobs", files={"file": ("a.csv", b"title\nchair\n")}, data={"pipeline": "lengths"},
        headers={"traceparent": header},
    )  # fmt: skip
    assert made.status_code == 202, made.text
    job = await server.parts.store.reads.job(made.json()["id"])
    assert job.trace is not None and job.trace.split("-")[1] not in ("0" * 32, TRACE)
