"""Decides which discovered URLs a source accepts, and why it refuses the others."""

from __future__ import annotations

import ipaddress
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from enum import StrEnum
from urllib.parse import urlsplit

from holdfast.http.addresses import is_public

_LONGEST_URL = 2048
_MOST_EXAMPLES = 5
_PORTS = {"http": 80, "https": 443}


class Refusal(StrEnum):
    MISSING = "MISSING"
    TOO_LONG = "TOO_LONG"
    NOT_HTTP = "NOT_HTTP"
    PRIVATE_ADDRESS = "PRIVATE_ADDRESS"
    OFF_HOST = "OFF_HOST"
    NOT_INCLUDED = "NOT_INCLUDED"
    EXCLUDED = "EXCLUDED"


class Admission:
    """Counts what it refuses, with some examples of each reason."""

    def __init__(
        self,
        hosts: Iterable[str],
        include: Sequence[re.Pattern[str]] = (),
        exclude: Sequence[re.Pattern[str]] = (),
    ) -> None:
        self._hosts = frozenset(host.lower() for host in hosts)
        self._prefixes = tuple(
            f"{scheme}://{host}/" for host in sorted(self._hosts) for scheme in ("https", "http")
        )
        self._include = [pattern.search for pattern in include]
        self._exclude = [pattern.search for pattern in exclude]
        self.counts: Counter[Refusal] = Counter()
        self.examples: dict[Refusal, list[str]] = {}

    def admits(self, url: str) -> bool:
        """Whether the URL is accepted.

        Most URLs are on a host of the source and wanted, and this runs for every one of every
        sitemap: those are accepted without asking what would be the reason against them."""
        if len(url) < _LONGEST_URL and url.startswith(self._prefixes):
            for excluded in self._exclude:
                if excluded(url) is not None:
                    return self._count(Refusal.EXCLUDED, url)
            for included in self._include:
                if included(url) is not None:
                    return True
            return self._count(Refusal.NOT_INCLUDED, url) if self._include else True
        refusal = self.refusal(url)
        return True if refusal is None else self._count(refusal, url)

    def admitted(self, urls: Sequence[str]) -> Sequence[str]:
        """Returns the accepted URLs.

        If all URLs of a sitemap are accepted, which is usual, each costs only the patterns."""
        starts, excludes, includes = self._prefixes, self._exclude, self._include
        if len(excludes) <= 1 and len(includes) == 1:
            excluded, included = excludes[0] if excludes else _never, includes[0]
            wanted = [
                url
                for url in urls
                if url.startswith(starts) and excluded(url) is None and included(url) is not None
            ]
            if len(wanted) == len(urls) and max(map(len, urls), default=0) < _LONGEST_URL:
                return urls
        return [url for url in urls if self.admits(url)]

    def _count(self, refusal: Refusal, url: str) -> bool:
        self.counts[refusal] += 1
        examples = self.examples.setdefault(refusal, [])
        if len(examples) < _MOST_EXAMPLES:
            examples.append(url[:200])
        return False

    def refusal(self, url: str) -> Refusal | None:
        """Returns why the URL is refused; None if it is accepted."""
        where = self.refusal_of_place(url)
        if where is not None:
            return where
        if any(excluded(url) for excluded in self._exclude):
            return Refusal.EXCLUDED
        wanted = not self._include or any(included(url) for included in self._include)
        return None if wanted else Refusal.NOT_INCLUDED

    def refusal_of_place(self, url: str) -> Refusal | None:
        """Returns why the URL is refused, without the patterns, which are about items and not about
        sitemaps."""
        if not url:
            return Refusal.MISSING
        if len(url) >= _LONGEST_URL:
            return Refusal.TOO_LONG
        if url.startswith(self._prefixes):
            return None
        return self._refusal_of_host(url)

    def _refusal_of_host(self, url: str) -> Refusal | None:
        try:
            parts = urlsplit(url)
            host, port = (parts.hostname or "").lower().rstrip("."), parts.port
        except ValueError:
            return Refusal.NOT_HTTP
        if parts.scheme.lower() not in _PORTS or not host:
            return Refusal.NOT_HTTP
        # Another port is another server, which has its own gate and robots.txt.
        place = host if port in (None, _PORTS[parts.scheme.lower()]) else f"{host}:{port}"
        if place in self._hosts:
            return None
        return Refusal.PRIVATE_ADDRESS if _is_private(host) else Refusal.OFF_HOST


def _never(url: str) -> None:
    return None


def _is_private(host: str) -> bool:
    """Whether it is an address or a name that never leads to the open Internet. Names that
    resolve to private addresses are refused when they are fetched."""
    if host == "localhost" or host.endswith((".localhost", ".local", ".internal")):
        return True
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return not is_public(host)
