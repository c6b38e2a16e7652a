"""What an operator may set about HTTP; the defaults suit strangers' web sites."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HttpOptions:
    user_agent: str = "holdfast"
    timeout_seconds: float = 30.0  # a whole call with its redirects; not the wait at a gate
    connect_timeout_seconds: float = 10.0
    max_bytes: int = 20 * 1024 * 1024  # of a body, as sent and as decoded
    max_redirects: int = 5
    max_connections: int = 100
    obey_robots: bool = True
    follow_off_host: bool = True
    allow_private_addresses: bool = False
    throttle_seconds: float = 30.0  # how long a gate closes when a 429 does not say
    max_retry_after_seconds: float = 3600.0
