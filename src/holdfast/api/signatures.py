"""Signed webhooks: a body that only who knows the secret can have sent, and only just now.

The header reads `t=SECONDS,v1=HEX`: the time of sending, and the HMAC-SHA256 of `SECONDS.BODY`.
"""

from __future__ import annotations

import hashlib
import hmac
from datetime import datetime

from holdfast.errors import NotAllowed

HEADER = "X-Holdfast-Signature"
TOLERANCE_SECONDS = 300.0


def sign(secret: bytes, body: bytes, now: datetime) -> str:
    """The header's value for a body that is sent now."""
    at = str(int(now.timestamp()))
    return f"t={at},v1={_mac(secret, at, body)}"


def check_signature(secret: bytes, body: bytes, header: str, now: datetime) -> None:
    """Refuses a body whose signature is wrong or old: a recorded request cannot be sent again
    later."""
    parts = dict(part.partition("=")[::2] for part in header.split(","))
    at, given = parts.get("t", ""), parts.get("v1", "")
    dated = at.isascii() and at.isdecimal()
    if not dated or not hmac.compare_digest(_mac(secret, at, body).encode(), given.encode()):
        raise NotAllowed("the signature is wrong", f"Sign the body as {HEADER}.", log_in=True)
    if abs(now.timestamp() - int(at)) > TOLERANCE_SECONDS:
        raise NotAllowed(
            f"the signature is older than {TOLERANCE_SECONDS:.0f} s",
            "Sign each request when it is sent, by a clock that is right.",
            log_in=True,
        )


def _mac(secret: bytes, at: str, body: bytes) -> str:
    return hmac.new(secret, f"{at}.".encode() + body, hashlib.sha256).hexdigest()
