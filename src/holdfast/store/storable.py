"""Text that every database accepts, whatever a pipeline or another program gave."""

from __future__ import annotations


def storable_text(text: str, characters: int) -> str:
    """No NUL, no lone surrogates, and not longer than `characters`."""
    return text[:characters].replace("\0", "\ufffd").encode("utf-8", "replace").decode()


def storable_key(key: str | None) -> str | None:
    """A key that had to be escaped stays distinct from all others."""
    if key is None or ("\0" not in key and key.isprintable()):
        return key
    return key.encode("unicode_escape").decode()
