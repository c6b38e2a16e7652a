"""Takes the port that the server listens at, or says who has it."""

from __future__ import annotations

import errno
import socket

from holdfast.errors import UserError

#: All of these are accepted before the first of them can be refused: not too many for the limit
#: on open files.
BACKLOG = 256


def listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=BACKLOG)
    except (OSError, OverflowError) as error:
        raise UserError(
            f"cannot listen at {host}:{port}: {_reason(error)}",
            "Choose another with --port (make up PORT=8080), or stop the program there.",
        ) from error


def _reason(error: Exception) -> str:
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    return "another program listens there" if taken else str(error)
