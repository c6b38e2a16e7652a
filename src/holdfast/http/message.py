"""One request as it is sent, and how a redirect changes it. Nothing here does I/O."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import urlencode

import httpx2
import orjson

from holdfast.errors import ItemError

_HOST = re.compile(rb"[a-z0-9._-]+|[0-9a-fA-F:.]+")  # the second is IPv6
_REDIRECTS = frozenset({301, 302, 303, 307, 308})
# Headers of a caller that are kept on the way to another origin. Anything else may be a secret that
# was meant for the first one.
_HARMLESS = frozenset({"accept", "accept-language", "content-type"})
_ABOUT_BODY = frozenset({"content-type", "content-length", "content-encoding"})


@dataclass(frozen=True, slots=True)
class Message:
    method: str
    url: httpx2.URL
    headers: Mapping[str, str]  # the caller's headers, with names in lower case
    body: bytes = b""

    @property
    def host(self) -> str:
        """The name of the gate: the host in lower case, with its port unless that is the
        default."""
        name = self.url.raw_host.decode("ascii").rstrip(".").lower()
        name = f"[{name}]" if ":" in name else name
        return name if self.url.port is None else f"{name}:{self.url.port}"

    @property
    def label(self) -> str:
        """The request as shown to people, without the query, which may contain a key."""
        query = "?…" if self.url.query else ""
        return f"{self.method} {self.url.copy_with(query=None)}{query}"


def compose(
    method: str,
    url: str,
    *,
    params: Mapping[str, Any] | None = None,
    headers: Mapping[str, str] | None = None,
    json: Any = None,
    data: Mapping[str, Any] | None = None,
    content: bytes | str | None = None,
) -> Message:
    parsed = checked_url(url)
    if params:
        given = {name: value for name, value in params.items() if value is not None}
        parsed = parsed.copy_merge_params(given)
    body, content_type = _body(json, data, content)
    own = {name.lower(): value for name, value in (headers or {}).items()}
    if content_type:
        own.setdefault("content-type", content_type)
    return Message(method.upper(), parsed, own, body)


def checked_url(url: str | httpx2.URL) -> httpx2.URL:
    """Returns the URL without its fragment; raises INVALID_URL if it is not one."""
    try:
        parsed = httpx2.URL(url)
    except (httpx2.InvalidURL, TypeError, ValueError) as error:
        raise ItemError("INVALID_URL", f"{str(url)[:200]!r}: {error}") from error
    if parsed.scheme not in ("http", "https"):
        raise ItemError(
            "INVALID_URL", f"{str(url)[:200]!r} does not start with http:// or https://"
        )
    if not _HOST.fullmatch(parsed.raw_host) or not _can_be_port(parsed.port):
        raise ItemError("INVALID_URL", f"{str(url)[:200]!r} names no usable host")
    if parsed.userinfo:
        raise ItemError(
            "INVALID_URL",
            f"the URL of {parsed.host} contains a password; use an Authorization header",
        )
    return parsed.copy_with(fragment=None) if parsed.fragment else parsed


def redirected(message: Message, status: int, location: str | None) -> Message | None:
    """Returns the request that a redirect asks for; None if the reply is not a redirect."""
    if status not in _REDIRECTS or not location:
        return None
    try:
        target = message.url.join(location)
    except (httpx2.InvalidURL, ValueError) as error:
        raise ItemError(
            "INVALID_URL", f"{message.label} redirects to an invalid URL: {error}"
        ) from error
    following = replace(message, url=checked_url(target))
    if _becomes_get(message.method, status):
        kept = {n: v for n, v in message.headers.items() if n not in _ABOUT_BODY}
        following = replace(following, method="GET", headers=kept, body=b"")
    if not same_origin(message.url, following.url):
        kept = {n: v for n, v in following.headers.items() if n in _HARMLESS}
        following = replace(following, headers=kept)
    return following


def check_hop(message: Message, following: Message, passed: Sequence[str], off_host: bool) -> None:
    """Refuses a redirect that goes in circles, off the host, or from https to http."""
    shown = f"{message.label} redirects to {following.url.copy_with(query=None)}"
    if str(following.url) in passed and following.method == message.method:
        raise ItemError("INVALID_RESPONSE", f"{shown}: a redirect loop")
    if message.url.scheme == "https" and following.url.scheme == "http":
        raise ItemError("INVALID_RESPONSE", f"{shown}: from https to http is refused")
    if not off_host and message.host != following.host:
        raise ItemError("INVALID_RESPONSE", f"{shown}: another host is refused")


def same_origin(one: httpx2.URL, other: httpx2.URL) -> bool:
    return (one.scheme, one.netloc) == (other.scheme, other.netloc)


def _can_be_port(port: int | None) -> bool:
    return port is None or 0 < port < 65536


def _becomes_get(method: str, status: int) -> bool:
    if status == 303:
        return method != "HEAD"
    return status in (301, 302) and method == "POST"


def _body(
    json: Any, data: Mapping[str, Any] | None, content: bytes | str | None
) -> tuple[bytes, str | None]:
    if sum(part is not None for part in (json, data, content)) > 1:
        raise TypeError("give only one of json, data and content")
    if json is not None:
        return orjson.dumps(json), "application/json"
    if data is not None:
        return urlencode(data, doseq=True).encode(), "application/x-www-form-urlencoded"
    if isinstance(content, str):
        return content.encode(), "text/plain; charset=utf-8"
    return content or b"", None
