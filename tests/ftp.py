"""A real FTP server on loopback, in a thread of its own."""

from __future__ import annotations

import logging
import threading
import warnings
from pathlib import Path
from types import TracebackType

with warnings.catch_warnings():
    # It uses a module that Python 3.12 removes, and brings its own copy from then on.
    warnings.simplefilter("ignore", DeprecationWarning)
    from pyftpdlib.authorizers import DummyAuthorizer
    from pyftpdlib.handlers import FTPHandler
    from pyftpdlib.servers import FTPServer

USER, PASSWORD = "ada", "s3cret"


class FtpFolder:
    """Serves a folder. `drops`: the next download breaks off after that many bytes."""

    def __init__(self, folder: Path) -> None:
        logging.getLogger("pyftpdlib").setLevel(logging.CRITICAL)
        self.folder = folder
        self.drops: int | None = None
        authorizer = DummyAuthorizer()
        authorizer.add_user(USER, PASSWORD, str(folder), perm="elradfmwMT")
        outer = self

        class Handler(FTPHandler):  # type: ignore[misc]
            def ftp_RETR(self, file: str) -> object:
                if outer.drops is not None:
                    outer.drops = None
                    Path(file).write_bytes(Path(file).read_bytes())
                    self.close_when_done()
                    return None
                return super().ftp_RETR(file)

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
        return f"ftp://{USER}@127.0.0.1:{self.port}/"

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
