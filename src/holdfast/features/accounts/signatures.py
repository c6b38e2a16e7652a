"""Signed requests: only someone who knows the secret can have sent one, just now, and once.

The header reads `t=SECONDS,n=NONCE,v1=HEX`: the time of sending, a text that is used once, and the
HMAC-SHA256 of `SECONDS.NONCE.PATH.BODY`.
"""

from __future__ import annotations

import hashlib
import hmac
import re
from datetime import datetime

from holdfast.features.accounts.nonces import Nonces

HEADER = "X-Holdfast-Signature"
TOLERANCE_SECONDS = 300.0
_PARTS = re.compile(r"t=([0-9]{1,12}),n=([A-Za-z0-9_-]{16,100}),v1=([0-9a-f]{64})")


def sign(secret: str, path: str, body: bytes, nonce: str, now: datetime) -> str:
    """Returns the header's value for a body that is sent now."""
    at = str(int(now.timestamp()))
    return f"t={at},n={nonce},v1={_mac(secret, at, nonce, path, body)}"


async def wrong_signature(
    nonces: Nonces, scope: str, secret: str, path: str, body: bytes, header: str, now: datetime
) -> str | None:
    """Returns what is wrong with the signature, or None.

    A nonce counts only once the rest was right."""
    parts = _PARTS.fullmatch(header)
    if parts is None:
        return "The signature is malformed"
    at, nonce, given = parts.groups()
    if not hmac.compare_digest(_mac(secret, at, nonce, path, body), given):
        return "The signature is wrong"
    if abs(now.timestamp() - int(at)) > TOLERANCE_SECONDS:
        return "The signature is too old, or from a clock that is wrong"
    if not await nonces.use_nonce(scope, nonce):
        return "The request was sent before"
    return None


def _mac(secret: str, at: str, nonce: str, path: str, body: bytes) -> str:
    signed = f"{at}.{nonce}.{path}.".encode() + body
    return hmac.new(secret.encode(), signed, hashlib.sha256).hexdigest()
