"""One-time codes by time (TOTP, RFC 6238, on RFC 4226): SHA-1, six digits, thirty seconds."""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from datetime import datetime
from urllib.parse import quote

_STEP_SECONDS = 30
_DIGITS = 6
_SECRET_BYTES = 20
#: A phone's clock may be a step off, and a code may be typed late.
_DRIFT = (0, -1, 1)


def new_secret() -> str:
    """Returns a secret in the letters that authenticator apps accept."""
    return base64.b32encode(secrets.token_bytes(_SECRET_BYTES)).decode()


def step_at(now: datetime) -> int:
    return int(now.timestamp()) // _STEP_SECONDS


def code_at(secret: str, step: int, digits: int = _DIGITS) -> str:
    key = base64.b32decode(secret)
    digest = hmac.new(key, step.to_bytes(8, "big"), hashlib.sha1).digest()
    offset = digest[-1] & 0x0F
    number = int.from_bytes(digest[offset : offset + 4], "big") & 0x7FFFFFFF
    return str(number % 10**digits).zfill(digits)


def fitting_step(secret: str, code: str, now: datetime) -> int | None:
    """Returns the step whose code it is. All steps are compared, each in constant time."""
    given = code.replace(" ", "").encode()
    here = step_at(now)
    fitting = None
    for drift in _DRIFT:
        if hmac.compare_digest(code_at(secret, here + drift).encode(), given):
            fitting = here + drift
    return fitting


def address(secret: str, user_name: str) -> str:
    """Returns the address that an app reads from a QR code, or opens."""
    name = quote(f"Holdfast:{user_name}", safe="")
    return (
        f"otpauth://totp/{name}?secret={secret}&issuer=Holdfast&algorithm=SHA1&digits=6&period=30"
    )
