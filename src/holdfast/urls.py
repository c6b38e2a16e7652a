"""Checks database and broker URLs, and shows them without passwords."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from holdfast.errors import UserError

SQLITE = "sqlite:///"
POSTGRES = "postgresql://"
ACCEPTED_DATABASE = (
    f"`{SQLITE}FILE`, `{SQLITE}/ABSOLUTE/FILE` or `{POSTGRES}USER:PASSWORD@HOST/NAME`"
)


ACCEPTED_BROKER = "`amqp://USER:PASSWORD@HOST/VHOST` or `amqps://…`"
ACCEPTED_PREFIX = "up to 100 letters, digits, `.`, `_` and `-`"
_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,100}")


def default_database_url(data_dir: Path) -> str:
    return f"{SQLITE}{data_dir / 'holdfast.db'}"


def read_database_url(text: str) -> str:
    """Returns the URL in normal form; raises ValueError for a database that is not supported."""
    scheme, separator, rest = text.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        return _postgres_url(POSTGRES + rest)
    if separator and scheme == "sqlite":
        return _sqlite_url(text)
    raise ValueError("neither SQLite nor PostgreSQL")


def _postgres_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.port == 0 or not (parts.netloc or parts.path.strip("/")):
        raise ValueError("it names no server")
    return url


def _sqlite_url(url: str) -> str:
    file = url.removeprefix(SQLITE)
    if file in ("", url) or file.endswith("/") or "?" in file:
        raise ValueError("it names no file")
    if file == ":memory:":
        raise ValueError(
            "an in-memory database is lost with its process and hidden from other workers"
        )
    return url


def sqlite_file(url: str) -> Path | None:
    """Returns the file of an SQLite URL; None for a server."""
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None


def check_files(url: str, names: frozenset[str], setting: str) -> None:
    """Raises UserError for a certificate in the URL that does not exist: drivers report that as a
    server that cannot be reached, and we would wait for it."""
    for name, path in parse_qsl(urlsplit(url).query):
        if name in names and not os.access(path, os.R_OK):
            raise UserError(
                f"{path}, the {name} of {mask_password(url)}, does not exist or is not readable",
                f"Correct {setting}, or the path and permissions of the file.",
            )


def mask_password(url: str) -> str:
    """Returns the URL without its password.

    Masks too much rather than too little, because a password may contain an unescaped @ or /."""
    without = re.sub(r"(?<=://)([^:@/]*):.*@", r"\1:***@", url)
    return re.sub(r"(password=)[^&]*", r"\1***", without, flags=re.IGNORECASE)


def read_broker_url(text: str) -> str:
    """Returns the URL; raises ValueError if it names no RabbitMQ server."""
    parts = urlsplit(text)
    if parts.scheme not in ("amqp", "amqps") or not parts.hostname or parts.port == 0:
        raise ValueError("it names no RabbitMQ server")
    return text


def read_prefix(text: str) -> str:
    if not _PREFIX.fullmatch(text):
        raise ValueError("not a valid prefix of queue names")
    return text
