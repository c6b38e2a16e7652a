"""Takes the port that the server listens at, or says who has it."""

from __future__ import annotations

import errno
import socket

from holdfast.errors import UserError


def listening(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except (OSError, OverflowError) as error:
        raise UserError(
            f"cannot listen at {host}:{port}: {_reason(error)}",
            "Choose another with --port (make up PORT=8080), or stop the program there.",
        ) from error


def _reason(error: Exception) -> str:
    taken = isinstance(error, OSError) and error.errno == errno.EADDRINUSE
    return "another program listens there" if taken else str(error)
