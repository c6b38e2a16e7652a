"""`holdfast api`, `user` and `token` as real processes; a server killed in mid-ingest."""

from __future__ import annotations

import re
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.command import HoldfastCommand
from tests.listening import listening
from tests.signing_in import sign_in

PIPELINE = """
from holdfast import pipeline

@pipeline(columns=["title"])
async def titles(row, ctx):
    return {"title": row["title"]}
"""
Start = Callable[..., subprocess.Popen[str]]


@pytest.fixture
def pipeline_file(tmp_path: Path) -> Path:
    path = tmp_path / "titles.py"
    path.write_text(PIPELINE)
    return path


@pytest.fixture
def client() -> Iterator[httpx2.Client]:
    with httpx2.Client(timeout=30) as opened:
        yield opened


def _log_in(holdfast: HoldfastCommand, client: httpx2.Client, address: str) -> None:
    made = holdfast.run("token", "create", "admin", "--name", "test")
    assert made.returncode == 0, made.stderr
    client.base_url = address
    client.headers["Authorization"] = f"Bearer {made.stdout.strip()}"


def _job(client: httpx2.Client, job_id: int) -> dict[str, Any]:
    job: dict[str, Any] = client.get(f"/api/jobs/{job_id}").json()
    return job


def test_worker_killed_in_mid_file_is_continued_by_the_next(
    holdfast_command: HoldfastCommand, pipeline_file: Path, client: httpx2.Client
) -> None:
    rows = 400_000
    address = listening(holdfast_command.start("api", pipeline_file, "--port", "0"))
    worker = holdfast_command.start("work", pipeline_file)
    _log_in(holdfast_command, client, address)
    content = b"title\n" + b"".join(b"item %d\n" % number for number in range(rows))
    form = {"pipeline": "titles"}
    made = client.post("/api/jobs", data=form, files={"file": ("rows.csv", content)})
    assert made.status_code == 202, made.text
    job_id = made.json()["id"]
    while not _job(client, job_id)["counters"]["accepted"]:
        time.sleep(0.01)
    worker.send_signal(signal.SIGKILL)
    worker.wait(30)
    killed_at = _job(client, job_id)["counters"]["accepted"]
    assert killed_at < rows

    holdfast_command.start("work", pipeline_file)
    while not (job := _job(client, job_id))["discoveredAt"]:
        assert job["state"] == "RUNNING"
        time.sleep(0.1)
    assert job["counters"]["accepted"] == rows
    first, last = (client.get(f"/api/jobs/{job_id}/items/{seq}").json() for seq in (1, 2))
    assert (first["input"], last["input"]) == ({"title": "item 0"}, {"title": "item 1"})
    shown = holdfast_command.run("show", str(job_id), "--verify")
    assert shown.returncode == 0, shown.stdout


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("point", ["create/committed", "answer_request/answer_key"])
def test_server_killed_before_its_answer_makes_no_second_job(
    point: str, holdfast_command: HoldfastCommand, pipeline_file: Path, client: httpx2.Client
) -> None:
    arguments = ("api", pipeline_file, "--port", "0")
    server = holdfast_command.start(*arguments, env={"HOLDFAST_FAULT": point})
    address = listening(server)
    _log_in(holdfast_command, client, address)
    stored = client.post("/api/files", files={"file": ("rows.csv", b"title\nOak chair\n")})
    body = {"pipeline": "titles", "fileId": stored.json()["id"]}
    headers = {"Idempotency-Key": "once"}
    with pytest.raises(httpx2.TransportError):
        client.post("/api/jobs", json=body, headers=headers)
    assert server.wait(30) == -signal.SIGKILL

    client.base_url = listening(holdfast_command.start(*arguments))
    answers = [client.post("/api/jobs", json=body, headers=headers) for _ in range(2)]
    assert [answer.status_code for answer in answers] == [202, 202]
    assert all(answer.headers["idempotency-replayed"] == "true" for answer in answers)
    made = [job["id"] for job in client.get("/api/jobs").json()["jobs"]]
    assert [answer.json()["id"] for answer in answers] == made * 2


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(
    ("point", "path"),
    [
        ("add_file/committed", "/api/files"),
        ("add_export/committed", "/api/jobs/1/export?format=csv"),
        ("add_operation/committed", "/api/jobs/1/reprocess"),
    ],
)
def test_server_killed_before_its_answer_makes_nothing_else_twice_either(
    point: str,
    path: str,
    holdfast_command: HoldfastCommand,
    pipeline_file: Path,
    client: httpx2.Client,
) -> None:
    arguments = ("api", pipeline_file, "--port", "0")
    whole = holdfast_command.start(*arguments)
    address = listening(whole)
    _log_in(holdfast_command, client, address)
    file = {"file": ("rows.csv", b"title\nOak chair\n")}
    assert client.post("/api/jobs", data={"pipeline": "titles"}, files=file).status_code == 202
    whole.send_signal(signal.SIGTERM)
    whole.wait(30)
    doomed = holdfast_command.start(*arguments, env={"HOLDFAST_FAULT": point})
    client.base_url = listening(doomed)
    asked: dict[str, Any] = {"files": file} if path == "/api/files" else {"json": {}}
    headers = {"Idempotency-Key": "once"}
    with pytest.raises(httpx2.TransportError):
        client.post(path, headers=headers, **asked)
    assert doomed.wait(30) == -signal.SIGKILL

    client.base_url = listening(holdfast_command.start(*arguments))
    before = _made(client)
    answers = [client.post(path, headers=headers, **asked) for _ in range(2)]
    assert {answer.status_code for answer in answers} <= {201, 202}
    assert all(answer.headers["idempotency-replayed"] == "true" for answer in answers)
    assert _made(client) == before


def _made(client: httpx2.Client) -> list[int]:
    """How many files, exports and operations there are."""
    return [
        len(client.get(f"/api/{name}").json()[name]) for name in ("files", "exports", "operations")
    ]


def test_first_start_prints_a_link_that_lets_the_admin_in(
    holdfast_command: HoldfastCommand, pipeline_file: Path, client: httpx2.Client
) -> None:
    server = holdfast_command.start("api", pipeline_file, "--port", "0")
    assert server.stderr is not None
    link = None
    while link is None:
        line = server.stderr.readline()
        assert line
        found = re.search(r"Log in \(once\) with: (\S+)", line)
        link = found.group(1) if found else None
    while True:
        try:
            reply = sign_in(client, link)
            break
        except httpx2.ConnectError:
            time.sleep(0.05)
    assert reply.status_code == 303
    address = link.partition("/login/")[0]
    assert client.get(f"{address}/api/session").json()["name"] == "admin"
    server.send_signal(signal.SIGTERM)
    assert server.wait(30) == 0


def test_another_address_is_refused_until_an_account_has_a_password(
    holdfast_command: HoldfastCommand,
) -> None:
    refused = holdfast_command.run("api", "--host", "0.0.0.0", "--port", "0")
    assert refused.returncode == 1
    assert "holdfast user add" in refused.stderr


def test_port_in_use_is_reported_without_a_trace(
    holdfast_command: HoldfastCommand, pipeline_file: Path
) -> None:
    address = listening(holdfast_command.start("api", pipeline_file, "--port", "0"))
    again = holdfast_command.run("api", "--port", address.rpartition(":")[2])
    assert again.returncode == 1
    assert "--port" in again.stderr and "Traceback" not in again.stderr


def test_accounts_and_tokens_from_the_command_line(holdfast_command: HoldfastCommand) -> None:
    run = holdfast_command.run
    added = run("user", "add", "ada", "--role", "reader", "--no-password")
    assert (added.returncode, "reader" in added.stderr) == (0, True)
    assert run("user", "add", "ada", "--no-password").returncode == 1
    assert run("user", "add", "Bad Name", "--no-password").returncode == 1
    assert run("user", "add", "eve", "--role", "king", "--no-password").returncode == 1
    link = run("user", "link", "ada", "--url", "http://host:1/")
    assert re.match(r"http://host:1/login/\S{20,}$", link.stdout.strip())
    assert run("user", "link", "nobody").returncode == 1
    made = run("token", "create", "ada", "--name", "nightly", "--days", "3")
    assert made.stdout.startswith("hf_")
    listed = run("token", "list", "--json").stdout
    assert "nightly" in listed and made.stdout.strip() not in listed
    assert run("token", "revoke", "1").returncode == 0
    assert run("token", "revoke", "99").returncode == 1
    assert run("user", "disable", "ada").returncode == 0
    assert '"disabled": true' in run("user", "list", "--json").stdout
