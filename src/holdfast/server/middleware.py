"""ASGI middleware: allowed hosts, limits on request bodies, security headers, traces."""

from __future__ import annotations

import re
from dataclasses import dataclass

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.errors import TooLarge
from holdfast.observe import tracing
from holdfast.server.problems import answer

CONTENT_SECURITY_POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "font-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
_HEADERS = {
    "Content-Security-Policy": CONTENT_SECURITY_POLICY,
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
    # A login link must not be passed on as a referrer.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
#: How long browsers use only TLS, after a visit over TLS.
_HSTS = f"max-age={365 * 86_400}"
#: Limit of a body that is not a file.
MAX_BODY_BYTES = 1 << 20
#: Room for the other fields and the boundaries of a form with a file.
_FORM_BYTES = 1 << 20
_UPLOADS = ("/api/files", "/api/jobs")
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")


#: A name or an address with an optional port; nothing that could redirect a link elsewhere.
_HOST = re.compile(r"(\[[0-9a-f:.]{2,45}\]|[a-z0-9._-]{1,253})(?::[0-9]{1,5})?", re.ASCII)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
#: Requested by address, and independent of the host.
_PROBES = ("/healthz", "/readyz")


@dataclass(frozen=True, slots=True)
class AllowedNames:
    names: frozenset[str]
    #: Also allow the address that the connection was made to: the client knows it anyway, and
    #: no other site can make a browser send it as its own name.
    own_address: bool = False

    def allow(self, name: str, own: str) -> bool:
        wider = (f"*.{name.partition('.')[2]}", "*")
        if name in self.names or any(pattern in self.names for pattern in wider):
            return True
        return self.own_address and name == own


def hosts_of(setting: str, listening_at: str) -> AllowedNames:
    """Returns the configured names; without any, those under which this server is reached by
    default."""
    names = frozenset(name.strip().lower().rstrip(".") for name in setting.split(","))
    if names - {""}:
        return AllowedNames(names - {""})
    return AllowedNames(frozenset((*_LOOPBACK, listening_at.lower())), own_address=True)


class AllowedHosts:
    """Refuses requests for other hosts: our links contain the host name, and a site that points
    its own name at this server could read whatever its visitors may read here."""

    def __init__(self, app: ASGIApp, hosts: AllowedNames) -> None:
        self._app = app
        self._hosts = hosts

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http" and not self._allows(scope):
            refusal = answer(
                400,
                "the request names a host that this server does not answer for",
                "HOLDFAST_ALLOWED_HOSTS lists the hosts that it answers for.",
            )
            await refusal(scope, receive, send)
            return
        await self._app(scope, receive, send)

    def _allows(self, scope: Scope) -> bool:
        given = Headers(scope=scope).get("host", "").lower()
        if scope["path"] in _PROBES or not given:
            return True
        own = (scope.get("server") or ("",))[0]
        host = _HOST.fullmatch(given)
        return host is not None and self._hosts.allow(host[1].strip("[]").rstrip("."), own)


class Encrypted:
    """Marks requests as encrypted, for servers behind TLS termination whose proxy does not say so
    with each request."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["scheme"] = "https"
        await self._app(scope, receive, send)


class Traced:
    """Assigns what a request creates to the trace that its `traceparent` header names."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        with tracing.received(Headers(scope=scope).get("traceparent")):
            await self._app(scope, receive, send)


class SecurityHeaders:
    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                for name, value in _HEADERS.items():
                    headers.setdefault(name, value)
                if scope["path"].startswith("/api/"):
                    headers.setdefault("Cache-Control", "no-store")
                if scope["scheme"] == "https":
                    headers.setdefault("Strict-Transport-Security", _HSTS)
            await send(message)

        await self._app(scope, receive, send_with_headers)


class RequestLimits:
    """Refuses bodies that declare or turn out to be too large, and URLs with a NUL, which no
    database can store, or with a control character in the path."""

    def __init__(self, app: ASGIApp, max_upload_bytes: int) -> None:
        self._app = app
        self._max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if b"%00" in scope["query_string"]:
            await answer(400, "the URL contains a NUL character")(scope, receive, send)
            return
        if _CONTROL.search(scope["path"]):
            # Without a line break at its end, the path may be another one.
            await answer(400, "the path contains a control character")(scope, receive, send)
            return
        if {b"content-length", b"transfer-encoding"} <= {name for name, _ in scope["headers"]}:
            # A proxy that trusts the other header would see different requests than we do.
            await _two_lengths()(scope, receive, send)
            return
        limit, named_limit = self._limit_of(scope)
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or int(declared) > limit:
            await answer(413, _too_large(named_limit))(scope, receive, send)
            return
        read = 0

        async def receive_within_limit() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit:
                raise TooLarge(_too_large(named_limit))
            return message

        await self._app(scope, receive_within_limit, send)

    def _limit_of(self, scope: Scope) -> tuple[int, int]:
        # Only forms are streamed to disk; any other body is read into memory.
        kind = Headers(scope=scope).get("content-type", "").lower()
        is_form = kind.startswith("multipart/form-data")
        if is_form and scope["method"] == "POST" and _takes_file(scope):
            return self._max_upload_bytes + _FORM_BYTES, self._max_upload_bytes
        return MAX_BODY_BYTES, MAX_BODY_BYTES


def _takes_file(scope: Scope) -> bool:
    """Whether the route streams a form to disk; extensions have such routes too."""
    state = getattr(scope.get("app"), "state", None)
    added: tuple[str, ...] = getattr(state, "uploads", ())
    return any(_fits(scope["path"], path) for path in (*_UPLOADS, *added))


def _fits(path: str, template: str) -> bool:
    given, wanted = path.split("/"), template.split("/")
    return len(given) == len(wanted) and all(
        part == named or named.startswith("{") for part, named in zip(given, wanted, strict=True)
    )


def _two_lengths() -> ASGIApp:
    return answer(
        400,
        "the request has both Content-Length and Transfer-Encoding",
        "Send one of them.",
        headers={"Connection": "close"},
    )


def _too_large(limit: int) -> str:
    return f"the body is larger than {limit:,} bytes"
