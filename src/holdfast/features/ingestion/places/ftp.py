"""Watches a folder of an FTP server, with or without TLS."""

from __future__ import annotations

import asyncio
import ftplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from io import BytesIO
from itertools import count
from pathlib import Path
from typing import TypeVar

from holdfast.features.ingestion.places.contract import (
    DONE,
    FAILED,
    REASON,
    Arrived,
    FileTrouble,
    PlaceTrouble,
    is_wanted,
    numbered,
    with_ending,
)
from holdfast.files.contract import Meter
from holdfast.stored_files import Written

T = TypeVar("T")
_TIMEOUT_SECONDS = 30.0
_BLOCK = 1 << 16
_MOST_FILES = 10_000


@dataclass(frozen=True, slots=True)
class FtpServer:
    host: str
    port: int
    user: str
    folder: str
    tls: bool
    password: str = field(default="", repr=False)


class _CheckedTls(ftplib.FTP_TLS):
    """Checks the certificate, which ftplib does not do by itself.

    Data connections continue the session of the first connection, which many servers require."""

    def ntransfercmd(self, cmd: str, rest: int | str | None = None) -> tuple[socket.socket, int]:
        connection, size = ftplib.FTP.ntransfercmd(self, cmd, rest)
        assert isinstance(self.sock, ssl.SSLSocket)
        wrapped = self.context.wrap_socket(
            connection, server_hostname=self.host, session=self.sock.session
        )
        return wrapped, size or 0


class FtpPlace:
    """A folder of an FTP server.

    Each step uses a new connection: servers close idle ones, and a scan takes long."""

    def __init__(self, server: FtpServer) -> None:
        self._server = server

    async def arrivals(self) -> list[Arrived]:
        return await self._do(_list)

    async def fetch(self, file: Arrived, target: Path, max_bytes: int) -> Written:
        given_up = threading.Event()
        try:
            return await self._do(lambda ftp: _fetch(ftp, file, target, max_bytes, given_up))
        finally:
            given_up.set()  # a thread cannot be cancelled

    async def accept(self, file: Arrived) -> None:
        await self._do(lambda ftp: _move(ftp, file, DONE))

    async def refuse(self, file: Arrived, reason: str) -> None:
        def refuse(ftp: ftplib.FTP) -> None:
            moved = _move(ftp, file, FAILED)
            if moved is not None:
                beside = f"{FAILED}/{with_ending(moved, REASON)}"
                ftp.storbinary(f"STOR {_sent(beside)}", BytesIO(f"{reason}\n".encode()))

        await self._do(refuse)

    async def clear(self, name: str) -> None:
        def clear(ftp: ftplib.FTP) -> None:
            with suppress(ftplib.error_perm):
                ftp.delete(_sent(name))

        await self._do(clear)

    async def _do(self, step: Callable[[ftplib.FTP], T]) -> T:
        def in_thread() -> T:
            with self._connected() as ftp:
                return step(ftp)

        return await asyncio.to_thread(in_thread)

    @contextmanager
    def _connected(self) -> Iterator[ftplib.FTP]:
        """Connects; passes on none of the server's texts, which may repeat the password."""
        server = self._server
        ftp = _CheckedTls(context=ssl.create_default_context()) if server.tls else ftplib.FTP()
        ftp.encoding = "latin-1"  # any bytes: UTF-8 names are only a convention
        is_ready = False
        try:
            ftp.connect(server.host, server.port, timeout=_TIMEOUT_SECONDS)
            ftp.login(_sent(server.user), _sent(server.password))
            if isinstance(ftp, ftplib.FTP_TLS):
                ftp.prot_p()
            if server.folder:
                ftp.cwd(_sent(server.folder))
            is_ready = True
            yield ftp
        except (ftplib.Error, OSError, EOFError, ValueError) as error:
            text = _received(str(error)).encode("utf-8", "replace").decode()
            text = text.replace(server.password, "…") if server.password else text
            # The server refused one thing; the connection works.
            is_refusal = is_ready and isinstance(error, ftplib.error_perm | ValueError)
            raise (FileTrouble if is_refusal else PlaceTrouble)(
                f"{server.host}: {_reason(error, text)}{_advice(server, error)}"
            ) from None
        finally:
            with suppress(*ftplib.all_errors):
                ftp.close()


def _reason(error: Exception, text: str) -> str:
    if isinstance(error, OSError) and error.strerror:
        return error.strerror
    return text or "the connection broke"


def _advice(server: FtpServer, error: Exception) -> str:
    """Returns a hint, because a server says only that it refuses the login."""
    is_refused = isinstance(error, ftplib.error_perm) and str(error).startswith("530")
    if server.password or not is_refused:
        return ""
    return " HOLDFAST_INGEST_PASSWORDS has no password for this adapter."


def _received(text: str) -> str:
    """Reads what a server sent as UTF-8; other bytes are kept as Python keeps those of files."""
    return text.encode("latin-1", "replace").decode("utf-8", "surrogateescape")


def _sent(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("latin-1")


def _list(ftp: ftplib.FTP) -> list[Arrived]:
    found = []
    for wire_name, facts in ftp.mlsd(facts=["type", "size", "modify"]):
        name = _received(wire_name)
        if facts.get("type", "").lower() == "file" and is_wanted(name) and "/" not in name:
            found.append(Arrived(name, int(facts.get("size", 0)), facts.get("modify", "")))
            if len(found) >= _MOST_FILES:
                break
    return sorted(found, key=lambda file: file.name)


def _fetch(
    ftp: ftplib.FTP, file: Arrived, target: Path, max_bytes: int, given_up: threading.Event
) -> Written:
    meter = Meter(max_bytes)
    with target.open("xb") as copy:

        def take(block: bytes) -> None:
            if given_up.is_set():
                raise TimeoutError("the file takes too long")
            meter.add(block)
            copy.write(block)

        ftp.retrbinary(f"RETR {_sent(file.name)}", take, _BLOCK)
    if meter.size != file.size:
        raise FileTrouble(f"{file.shown} has {meter.size:,} bytes instead of {file.size:,}")
    if file not in _list(ftp):
        raise FileTrouble(f"{file.shown} changed while it was read")
    return meter.written(file.name)


def _move(ftp: ftplib.FTP, file: Arrived, where: str) -> str | None:
    """Moves a file; returns its name there, or None if it was moved before, or another file has its
    name now."""
    with suppress(ftplib.error_perm):
        ftp.mkd(where)
    taken = {_received(name) for name, _ in ftp.mlsd(where, facts=["type"])}
    names = (numbered(file.name, number) for number in count(1))
    name = next(name for name in names if name not in taken)
    if file not in _list(ftp):  # last: a file is moved only if it is as it was listed
        return None
    ftp.rename(_sent(file.name), _sent(f"{where}/{name}"))
    return name
