"""Runs the API as a user does: `holdfast api` as a process, asked over HTTP on loopback."""

from __future__ import annotations

import http.client
import json
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any
from urllib.parse import urlencode
from uuid import uuid4

import psutil

from bench import holdfast_runs, measure
from bench.holdfast_runs import NOOP, Postgres
from bench.measure import RunFailed, python
from bench.servers import free_port

OWNER = "bench"
READY_SECONDS = 60.0
PATIENCE_SECONDS = 900.0
BLOCK_BYTES = 1 << 18
#: All items that are uploaded here may wait at once.
_ROOM = {"HOLDFAST_OWNER": OWNER, "HOLDFAST_MAX_UPLOAD_BYTES": str(4 << 30)}


@dataclass(slots=True)
class Api:
    """A running server, and one connection to it that is kept open."""

    port: int
    token: str
    process: psutil.Process
    connection: http.client.HTTPConnection

    def get(self, path: str, **params: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.read("GET", path, **params))
        return found

    def post(self, path: str, **params: object) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.read("POST", path, **params))
        return found

    def read(self, method: str, path: str, **params: object) -> bytes:
        query = f"?{urlencode(params)}" if params else ""
        self.connection.request(method, path + query, headers=self.headers())
        return self._answer(path)

    def upload(self, path: Path, pipeline: str) -> int:
        """Creates a job over a file that is sent as it is read; returns the job's id."""
        boundary = uuid4().hex
        head = (
            f'--{boundary}\r\nContent-Disposition: form-data; name="pipeline"\r\n\r\n{pipeline}\r\n'
            f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="{path.name}"'
            "\r\n\r\n"
        ).encode()
        tail = f"\r\n--{boundary}--\r\n".encode()
        headers = self.headers() | {
            "Content-Type": f"multipart/form-data; boundary={boundary}",
            "Content-Length": str(len(head) + path.stat().st_size + len(tail)),
        }
        with path.open("rb") as file:
            body = _blocks(head, file, tail)
            self.connection.request("POST", "/api/jobs", body=body, headers=headers)
        return int(json.loads(self._answer("/api/jobs"))["id"])

    def download(self, path: str) -> int:
        """Reads it to its end, and returns its size."""
        self.connection.request("GET", path, headers=self.headers())
        response = self.connection.getresponse()
        size = 0
        while block := response.read(BLOCK_BYTES):
            size += len(block)
        if response.status != http.client.OK:
            raise RunFailed(f"{path}: {response.status}")
        return size

    def await_state(self, path: str, wanted: str, name: str = "state") -> dict[str, Any]:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while time.monotonic() < deadline:
            told = self.get(path)
            if told["state"] in {"FAILED", "CANCELLED"}:
                raise RunFailed(f"{path}: {told['state']}: {told.get('error')}")
            if told[name] == wanted or (wanted == "set" and told[name]):
                return told
            time.sleep(0.05)
        raise RunFailed(f"{path}: {name} was not {wanted} in {PATIENCE_SECONDS:.0f} s")

    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {self.token}"}

    def cpu_seconds(self) -> float:
        times = self.process.cpu_times()
        return float(times.user + times.system)

    def _answer(self, path: str) -> bytes:
        response = self.connection.getresponse()
        body = response.read()
        if response.status >= http.client.BAD_REQUEST:
            raise RunFailed(f"{path}: {response.status} {body[:300].decode(errors='replace')}")
        return body


def _blocks(head: bytes, file: IO[bytes], tail: bytes) -> Iterator[bytes]:
    yield head
    while block := file.read(BLOCK_BYTES):
        yield block
    yield tail


def settings(database: Postgres, folder: Path) -> dict[str, str]:
    return holdfast_runs.settings(database, folder) | _ROOM


@contextmanager
def running(database: Postgres, folder: Path, pipeline: Path = NOOP) -> Iterator[Api]:
    """Runs the API, from the moment at which it answers.

    Its log and its files are in a separate folder."""
    folder = folder / "api"
    folder.mkdir(exist_ok=True)
    used, port = settings(database, folder), free_port()
    token = _token(used)
    command = python("holdfast", "api", pipeline, "--port", port)
    with measure.processes([command], folder, used) as (process,):
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_SECONDS)
        api = Api(port, token, psutil.Process(process.pid), connection)
        _await_answer(api, process, folder)
        try:
            yield api
        finally:
            connection.close()


def _token(used: Mapping[str, str]) -> str:
    """Returns a token of the admin who owns the jobs, created at the first start."""
    known = json.loads(_order(used, "user", "list", "--json"))
    if OWNER not in {user["name"] for user in known}:
        _order(used, "user", "add", OWNER, "--role", "admin", "--no-password")
    return _order(used, "token", "create", OWNER, "--name", "bench").strip()


def _order(used: Mapping[str, str], *words: str) -> str:
    done = subprocess.run(
        python("holdfast", *words),
        env=measure.environment(used),
        cwd=measure.ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise RunFailed(f"holdfast {' '.join(words)}: {done.stderr[-300:]}")
    return done.stdout


def _await_answer(api: Api, process: subprocess.Popen[bytes], folder: Path) -> None:
    deadline = time.monotonic() + READY_SECONDS
    while True:
        try:
            api.read("GET", "/readyz")
            return
        except (OSError, http.client.HTTPException, RunFailed):
            api.connection.close()
            if process.poll() is not None or time.monotonic() > deadline:
                raise RunFailed(measure.tail(folder)) from None
            time.sleep(0.1)
