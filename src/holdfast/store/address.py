"""What a database URL says: which database, and where its file is."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit


def is_sqlite(url: str) -> bool:
    return url.startswith("sqlite:")


def sqlite_path(url: str) -> Path:
    """`sqlite:///data.db` is relative, `sqlite:////var/data.db` absolute."""
    return Path(unquote(url.removeprefix("sqlite:///")))


def masked(url: str) -> str:
    """The URL without its password, for people to read."""
    parts = urlsplit(url)
    if not parts.password:
        return url
    place = parts.netloc.rsplit("@", 1)[1]
    return urlunsplit(parts._replace(netloc=f"{parts.username}:***@{place}"))
