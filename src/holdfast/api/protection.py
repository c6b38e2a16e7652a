"""What stands before every route: limits on bodies, and headers that keep browsers careful."""

from __future__ import annotations

from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from holdfast.api.problems import TooLarge, answer

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
    # A login link must not travel on as a referrer.
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
}
#: A form has other fields and boundaries beside its file.
_FORM_BYTES = 1 << 20
_UPLOADS = ("/api/files", "/api/jobs")


class CarefulHeaders:
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
            await send(message)

        await self._app(scope, receive, send_with_headers)


class RequestLimits:
    """Refuses what says that it is too large, stops reading what turns out to be, and lets no NUL
    through in an address: no database takes it, and nobody means it."""

    def __init__(self, app: ASGIApp, max_body_bytes: int, max_upload_bytes: int) -> None:
        self._app = app
        self._max_body_bytes = max_body_bytes
        self._max_upload_bytes = max_upload_bytes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if b"%00" in scope["query_string"] or "\0" in scope["path"]:
            await answer(400, "the address has a NUL character in it")(scope, receive, send)
            return
        limit, shown = self._limit_of(scope)
        declared = Headers(scope=scope).get("content-length", "0")
        if not declared.isdecimal() or int(declared) > limit:
            await answer(413, _too_large(shown))(scope, receive, send)
            return
        read = 0

        async def receive_within_limit() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > limit:
                raise TooLarge(_too_large(shown))
            return message

        await self._app(scope, receive_within_limit, send)

    def _limit_of(self, scope: Scope) -> tuple[int, int]:
        # Only forms go to disk as they come; any other body is read into memory.
        kind = Headers(scope=scope).get("content-type", "").lower()
        is_form = kind.startswith("multipart/form-data")
        if scope["path"] in _UPLOADS and scope["method"] == "POST" and is_form:
            return self._max_upload_bytes + _FORM_BYTES, self._max_upload_bytes
        return self._max_body_bytes, self._max_body_bytes


def _too_large(limit: int) -> str:
    return f"the body is larger than {limit:,} bytes"
