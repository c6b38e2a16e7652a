"""Hosts on one machine: network namespaces, each joined to ours by a cable that can be pulled."""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

HOSTS_MISSING = (
    "Network namespaces need root and the command `ip`. Run the tests as root, as `make test` in a "
    "container does, with Debian's iproute2 (`make test` installs it)."
)


def can_make_hosts() -> bool:
    return os.getuid() == 0 and shutil.which("ip") is not None


@dataclass(frozen=True, slots=True)
class Host:
    """`server_address` is ours, as this host sees it."""

    name: str
    cable: str
    server_address: str

    def command(self, *arguments: str) -> list[str]:
        """The command line that runs this on the host."""
        return ["ip", "netns", "exec", self.name, *arguments]

    def cut_off(self) -> None:
        """Nothing passes any more, in either direction, without notice."""
        _ip("link", "set", self.cable, "down")

    def heal(self) -> None:
        _ip("link", "set", self.cable, "up")


@contextmanager
def hosts(count: int) -> Iterator[list[Host]]:
    """Removed afterwards with all that they are made of; processes on them must have ended."""
    token = secrets.token_hex(3)
    block = 100 + secrets.randbelow(100)
    with ExitStack() as stack:
        yield [
            stack.enter_context(_host(f"hf-{token}-{number}", f"10.{block}.{number}"))
            for number in range(count)
        ]


@contextmanager
def _host(name: str, network: str) -> Iterator[Host]:
    host = Host(name, f"{name}-a", f"{network}.1")
    far = f"{name}-b"
    _ip("netns", "add", name)
    try:
        _ip("link", "add", host.cable, "type", "veth", "peer", "name", far, "netns", name)
        _ip("address", "add", f"{host.server_address}/24", "dev", host.cable)
        _ip("link", "set", host.cable, "up")
        _ip("-n", name, "address", "add", f"{network}.2/24", "dev", far)
        _ip("-n", name, "link", "set", far, "up")
        _ip("-n", name, "link", "set", "lo", "up")
        yield host
    finally:
        _ip("netns", "delete", name)  # takes the cable with it


def _ip(*arguments: str) -> None:
    done = subprocess.run(["ip", *arguments], capture_output=True, text=True)
    if done.returncode:
        raise OSError(f"ip {' '.join(arguments)}: {done.stderr.strip()}")
