"""Options of an operator about HTTP; the defaults suit other people's web sites."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import version

from holdfast.pipeline import Gate
from holdfast.settings import setting


def _user_agent() -> str:
    return f"holdfast/{version('holdfast')} (+contact unset)"


@dataclass(frozen=True, slots=True)
class HttpOptions:
    user_agent: str = setting(
        _user_agent,
        "User-Agent of `ctx.http`; include how to contact you.",
        name="HTTP_USER_AGENT",
        kind="header",
        shown="`holdfast/VERSION (+contact unset)`",
    )
    timeout_seconds: float = setting(  # of a whole call with its redirects, not the wait at a gate
        30.0, "Time limit for a response.", 0.01, 3600, name="HTTP_TIMEOUT_SECONDS"
    )
    max_bytes: int = setting(  # as sent and as decoded
        20 * 1024 * 1024,
        "Largest response body that is read.",
        1,
        1024 * 1024 * 1024,
        name="HTTP_MAX_BYTES",
    )
    obey_robots: bool = setting(True, "Obey robots.txt.", name="HTTP_OBEY_ROBOTS")
    spacing_seconds: float = setting(
        0.0,
        "Minimum time between two requests to a host, across all workers.",
        0,
        86_400,
        name="HTTP_SPACING_SECONDS",
    )
    concurrency: int = setting(
        8,
        "Maximum number of requests to a host at once, across all workers.",
        1,
        10_000,
        name="HTTP_CONCURRENCY",
    )
    allow_private_addresses: bool = setting(
        False, "Allow `ctx.http` to reach loopback and private addresses."
    )
    connect_timeout_seconds: float = 10.0
    max_redirects: int = 5
    max_connections: int = 100
    follow_off_host: bool = True
    throttle_seconds: float = 30.0  # how long a gate closes if a 429 does not say
    max_retry_after_seconds: float = 3600.0

    @property
    def gate(self) -> Gate:
        """The gate of a host that has none of its own."""
        return Gate("", self.spacing_seconds, concurrency=self.concurrency)
