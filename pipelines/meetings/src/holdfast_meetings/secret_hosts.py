"""Decides which sites receive the service's secrets: those that settings name."""

from __future__ import annotations

from functools import cache
from typing import NamedTuple
from urllib.parse import urlsplit

_PORTS = {"http": 80, "https": 443}


class _Site(NamedTuple):
    """A site that receives secrets.

    `host` begins with a dot if it covers all names under a domain."""

    scheme: str
    host: str
    port: int

    def includes(self, other: _Site) -> bool:
        if (self.scheme, self.port) != (other.scheme, other.port):
            return False
        if self.host.startswith("."):
            return other.host.endswith(self.host)
        return other.host == self.host


def receives_secrets(url: str, template: str, more: str) -> bool:
    """Whether the site receives the secrets.

    `template` is where towns are by default, `more` names other hosts, separated by commas: `host`,
    `*.domain`, `host:port`; `http://host` if the secrets may go unencrypted."""
    site = _site(url)
    return site is not None and any(known.includes(site) for known in _known(template, more))


@cache
def _known(template: str, more: str) -> tuple[_Site, ...]:
    named = [part.strip() for part in more.split(",") if part.strip()]
    urls = [template, *(part if "://" in part else f"https://{part}" for part in named)]
    sites = (_site(url.replace("{subdomain}", "*")) for url in urls)
    return tuple(site for site in map(_widened, sites) if site is not None)


def _widened(site: _Site | None) -> _Site | None:
    """Returns `*.civic.band` as `.civic.band`. A star without a domain matches nothing."""
    if site is None or "*" not in site.host:
        return site
    _, star, domain = site.host.rpartition("*.")
    return site._replace(host=f".{domain}") if star and "." in domain else None


def _site(url: str) -> _Site | None:
    try:
        parts = urlsplit(url)
        port = parts.port or _PORTS.get(parts.scheme)
    except ValueError:
        return None
    if not parts.hostname or port is None or parts.username is not None:
        return None
    return _Site(parts.scheme, parts.hostname.rstrip("."), port)
