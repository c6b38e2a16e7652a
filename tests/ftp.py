"""A real FTP server on loopback, in a thread of its own."""

from __future__ import annotations

import logging
import threading
import warnings
from collections.abc import Callable
from datetime import UTC, datetime
from ipaddress import ip_address
from pathlib import Path
from types import TracebackType

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

with warnings.catch_warnings():
    # It uses a module that Python 3.12 removes, and brings its own copy from then on.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import DTPHandler, FTPHandler, TLS_DTPHandler, TLS_FTPHandler
    from pyftpdlib.servers import FTPServer

USER, PASSWORD = "ada", "s3cret"


class FtpFolder:
    """Serves a folder. `drops`: the next download breaks off after that many bytes. `read` is
    called when one begins. With a `certificate`, a file that also has its key, only over TLS."""

    def __init__(self, folder: Path, certificate: Path | None = None) -> None:
        logging.getLogger("pyftpdlib").setLevel(logging.CRITICAL)
        self.folder = folder
        self.drops: int | None = None
        self.read: Callable[[], None] = lambda: None
        authorizer = DummyAuthorizer()
        authorizer.add_user(USER, PASSWORD, str(folder), perm="elradfmwMT")
        outer = self

        class Data(TLS_DTPHandler if certificate else DTPHandler):  # type: ignore[misc]
            def send(self, data: bytes) -> int:
                if outer.drops is None or self.cmd_channel.is_listing:
                    return int(super().send(data))
                sent = int(super().send(data[: outer.drops]))
                outer.drops = None
                self.close()
                self.cmd_channel.close()
                return sent

        class Handler(TLS_FTPHandler if certificate else FTPHandler):  # type: ignore[misc]
            dtp_handler = Data
            use_sendfile = False  # it would pass by `Data.send`
            is_listing = True
            unicode_errors = "surrogateescape"  # names as they are, like most servers

            def ftp_RETR(self, file: str) -> object:
                self.is_listing = False
                outer.read()
                return super().ftp_RETR(file)

        if certificate:
            Handler.certfile = str(certificate)
            Handler.tls_control_required = Handler.tls_data_required = True
        self._scheme = "ftps" if certificate else "ftp"
        Handler.authorizer = authorizer
        Handler.banner = "ready"
        self._server = FTPServer(("127.0.0.1", 0), Handler)
        self.port = self._server.socket.getsockname()[1]
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._running = True

    def _serve(self) -> None:
        while self._running:
            self._server.serve_forever(timeout=0.05, blocking=False)
        self._server.close_all()

    @property
    def address(self) -> str:
        return f"{self._scheme}://{USER}@127.0.0.1:{self.port}/"

    def __enter__(self) -> FtpFolder:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._running = False
        self._thread.join(5)


def self_signed(path: Path, address: str) -> Path:
    """A certificate for an address, with its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, address)])
    day = datetime(2026, 1, 1, tzinfo=UTC)
    built = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(1)
        .not_valid_before(day)
        .not_valid_after(day.replace(year=2126))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address(address))]), False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), True)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    path.write_bytes(private + built.public_bytes(Encoding.PEM))
    return path
