"""Free loopback ports for servers that a test stops and starts again."""

from __future__ import annotations

import random
import socket

#: Below the range from which Linux takes the ports of outgoing connections. From within it, a
#: client that keeps calling a stopped server's port is in the end connected to itself.
_PORTS = range(20_000, 32_000)


def free_port() -> int:
    """A port that nobody listens on at this moment."""
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind(("127.0.0.1", port))
            except OSError:
                continue
            return port
    raise OSError("no free port on loopback")
