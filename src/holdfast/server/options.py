"""Options of an operator for serving HTTP."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.settings import setting


@dataclass(frozen=True, slots=True)
class ServerOptions:
    db_ingest_enabled: bool = setting(
        True, "`false` refuses uploads over HTTP, like the flag `ingest`.", aliased=True
    )
    trusted_proxies: str = setting(
        "",
        "Addresses of proxies, separated by commas, whose X-Forwarded headers are trusted.",
        shown="none",
    )
    https: bool = setting(
        False,
        "All clients use TLS, which ends at a proxy in front of this server; cookies require it.",
    )
    allowed_hosts: str = setting(
        "",
        "Host names that requests may use, separated by commas: `a.org`, `*.a.org`, `*` for any.",
        shown="loopback and the address it listens on",
    )
