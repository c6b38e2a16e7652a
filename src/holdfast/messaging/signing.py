"""Signed messages: only someone who knows the shared key can have created one.

The header's `signature` is the HMAC-SHA256 of the whole message as it is sent, computed while the
signature itself is 64 zeros. So it needs no canonical form of JSON, in any language. Holdfast
refuses the same message a second time by its id; one that is older than it remembers is refused for
its age.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta

from holdfast.errors import NotAllowed
from holdfast.kernel.arrivals.idempotency import KEYS_DAYS
from holdfast.settings import setting

ZEROS = "0" * 64
#: How much a sender's clock may be ahead.
_AHEAD = timedelta(minutes=5)


@dataclass(frozen=True, slots=True)
class MessageTrust:
    """Decides which messages to trust: with a key, unsigned ones start nothing.

    `memory`: how long the id of a message that was taken is refused."""

    key: str = setting(
        "",
        "Key shared with programs that send messages. With it, only signed messages are followed,"
        " and they may name an owner.",
        name="MESSAGE_KEY",
        secret=True,
        shown="none",
    )
    memory: timedelta = timedelta(days=KEYS_DAYS)

    def check(self, payload: bytes, signature: str | None, owner: str | None) -> None:
        """Refuses a wrong signature, a missing one if there is a key, and an unsigned owner's
        name."""
        if signature is not None and not (self.key and _fits(self.key, payload, signature)):
            raise NotAllowed("the signature is wrong", "Sign it with HOLDFAST_MESSAGE_KEY.")
        if signature is None and self.key:
            raise NotAllowed("the message is not signed", "Sign it with HOLDFAST_MESSAGE_KEY.")
        if signature is None and owner is not None:
            raise NotAllowed(
                "only a signed message may name an owner",
                "Set HOLDFAST_MESSAGE_KEY and sign it, or leave `owner` out.",
            )

    def check_age(self, created_at: datetime, now: datetime) -> None:
        """Checks the age of a signed message: anyone who has a copy could send it again after its
        id is forgotten. It counts as too old a little earlier, because the clocks of senders
        differ."""
        ahead = min(_AHEAD, self.memory / 4)
        if not now - self.memory + ahead <= created_at <= now + ahead:
            raise NotAllowed(
                f"the signed message was created at {created_at.isoformat()}, which is not recent",
                "Send a new one, signed again.",
            )


def sign(payload: bytes, key: str) -> bytes:
    """Returns the message with its signature in place of the zeros."""
    return payload.replace(ZEROS.encode(), _mac(key, payload).encode(), 1)


def _fits(key: str, payload: bytes, signature: str) -> bool:
    given = signature.encode()
    unsigned = payload.replace(given, ZEROS.encode(), 1)
    return hmac.compare_digest(_mac(key, unsigned).encode(), given)


def _mac(key: str, payload: bytes) -> str:
    return hmac.new(key.encode(), payload, hashlib.sha256).hexdigest()
