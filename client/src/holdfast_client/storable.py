"""Makes text that every database accepts, whatever a pipeline or another program gave."""

from __future__ import annotations

import hashlib

#: In characters, of at most four bytes each.
_LONGEST_KEY, _KEPT = 500, 400


def storable_text(text: str, characters: int) -> str:
    """Returns the text without NUL and lone surrogates, and not longer than `characters`."""
    return text[:characters].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def storable_key(key: str | None) -> str | None:
    """Returns the key as it is stored; one that had to be escaped or shortened stays distinct from
    all others. PostgreSQL's indexes do not take values of more than 2,700 bytes."""
    if key is None:
        return None
    if key.isprintable() and len(key) <= _LONGEST_KEY:
        return key
    shown = key if key.isprintable() else key.encode("unicode_escape").decode()
    # The digest is of the key itself: another key may be written like the escapes of this one.
    digest = hashlib.sha256(key.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{shown[:_KEPT]}…{digest}"
