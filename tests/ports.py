"""Free loopback ports for servers that a test stops and starts again."""

from __future__ import annotations

import random
import socket

#: Below the range from which Linux takes the ports of outgoing connections. From within it, a
#: client that keeps calling a stopped server's port is in the end connected to itself.
_PORTS = range(20_000, 32_000)

#: Kept open for as long as this process lives, so that no other test process takes the same port.
_claims: list[socket.socket] = []


def free_port() -> int:
    """A port that no program listens on at this moment and no other test process was given."""
    for port in random.SystemRandom().sample(_PORTS, len(_PORTS)):
        if _nobody_listens(port) and _claim(port):
            return port
    raise OSError("no free port on loopback")


def _nobody_listens(port: int) -> bool:
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def _claim(port: int) -> bool:
    """A name in Linux's abstract space: one process has it, and it goes with that process."""
    claim = socket.socket(socket.AF_UNIX)
    try:
        claim.bind(f"\0holdfast-test-port-{port}")
    except OSError:
        claim.close()
        return False
    _claims.append(claim)
    return True
