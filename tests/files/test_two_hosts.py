"""Two APIs and two workers that share a database and a bucket, but no disk."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pictures import png
from tests.separate_hosts import Hosts, ended, exported, is_written, upload, wait


@pytest.fixture
def hosts(postgres_url: str, tmp_path: Path, bucket_settings: dict[str, str]) -> Iterator[Hosts]:
    opened = Hosts(postgres_url, tmp_path, bucket_settings)
    yield opened
    opened.close()


def test_no_host_is_special(hosts: Hosts) -> None:
    doomed, first = hosts.api()
    hosts.log_in()
    first.headers.update(hosts.headers)
    second_api, second = hosts.api()
    lost, _ = hosts.worker(), hosts.worker()

    image = first.post("/api/files", files={"file": ("chair.png", png())}).json()
    body = {"pipeline": "lengths", "fileIds": [image["id"]]}
    jobs = [int(second.post("/api/jobs", json=body).json()["id"])]
    jobs += [upload((first, second)[number % 2], number) for number in range(8)]
    doomed.send_signal(signal.SIGKILL)
    lost.send_signal(signal.SIGKILL)
    seen = [ended(second, job_id) for job_id in jobs]
    assert [job["state"] for job in seen] == ["DONE"] * 9, [job["error"] for job in seen]
    assert [job["counters"]["done"] for job in seen] == [1] + [100] * 8

    third_api, third = hosts.api()
    export_id = exported(second, jobs[-1])
    wait(lambda: is_written(third, export_id))
    second_api.send_signal(signal.SIGKILL)
    second_api.wait(30)
    sent = third.get(f"/api/exports/{export_id}/download")
    lines = sent.text.splitlines()
    assert (sent.status_code, len(lines)) == (200, 101)
    assert lines[1].split(",")[:3] == ["1", "row 7.0", "7"]
    part = third.get(f"/api/exports/{export_id}/download", headers={"Range": "bytes=3-9"})
    assert (part.status_code, part.content) == (206, sent.content[3:10])
    shown = third.get(f"/api/files/{image['id']}/image")
    assert shown.content == png()
    assert third_api.returncode is None
