"""The API of a fleet, whose workers are told by messages what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import httpx2
import pytest

from tests.rabbitmq import RabbitServer
from tests.separate_hosts import Hosts, ended, exported, hosts_of_fleet, is_written, upload, wait


@pytest.fixture
def hosts(
    postgres_url: str, broker_url: str, rabbit_server: RabbitServer, tmp_path: Path
) -> Iterator[Hosts]:
    with hosts_of_fleet(postgres_url, broker_url, rabbit_server, tmp_path) as opened:
        yield opened


def _live(client: httpx2.Client, job_id: int) -> Iterator[list[int]]:
    """How many items are done, as the page of the job hears it; nothing when it has ended."""
    with client.stream("GET", "/api/events", params={"jobId": job_id}, timeout=180) as reply:
        assert reply.status_code == 200
        for line in reply.iter_lines():
            if line.startswith("data:"):
                jobs = json.loads(line[5:])["jobs"]
                yield [job["counters"]["done"] for job in jobs if job["state"] == "RUNNING"]


def test_upload_is_worked_watched_and_exported(hosts: Hosts) -> None:
    _, client = hosts.api()
    hosts.log_in()
    client.headers.update(hosts.headers)
    job_id = upload(client, 1)
    live = _live(client, job_id)
    assert next(counts for counts in live if counts) == [0]
    hosts.relay()
    hosts.worker()
    assert next(counts for counts in live if not counts) == []
    live.close()  # type: ignore[attr-defined]
    assert ended(client, job_id)["counters"]["done"] == 100
    export_id = exported(client, job_id)
    wait(lambda: is_written(client, export_id))
    lines = client.get(f"/api/exports/{export_id}/download").text.splitlines()
    assert len(lines) == 101
