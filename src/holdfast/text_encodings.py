"""Knows the text encodings that are accepted when a file or a server names one."""

from __future__ import annotations

import codecs

#: Python's own notations and those of addresses. No text is saved in them, some decode to what no
#: database accepts, and punycode takes quadratic time.
_REFUSED = frozenset(
    {"unicode-escape", "raw-unicode-escape", "utf-7", "idna", "punycode", "undefined"}
)
_NAME_CHARACTERS = 40


def codec_named(name: str) -> str | None:
    """Returns the normal name of a text codec; None if there is none of that name."""
    if len(name) > _NAME_CHARACTERS:
        return None
    try:
        b"".decode(name)
        "".encode(name)
        found = codecs.lookup(name).name
    except (LookupError, ValueError):  # a name with a NUL is a ValueError
        return None
    return None if found in _REFUSED else found
