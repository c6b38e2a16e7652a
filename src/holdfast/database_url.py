"""What a database URL may be, and how it is shown without its password."""

from __future__ import annotations

import os
import re
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

from holdfast.errors import UserError

SQLITE = "sqlite:///"
POSTGRES = "postgresql://"
ACCEPTED = f"`{SQLITE}FILE`, `{SQLITE}/ABSOLUTE/FILE` or `{POSTGRES}USER:PASSWORD@HOST/NAME`"


def default_database_url(data_dir: Path) -> str:
    return f"{SQLITE}{data_dir / 'holdfast.db'}"


def read_database_url(text: str) -> str:
    """The URL in the one form that the program uses; ValueError for a database it cannot use."""
    scheme, separator, rest = text.partition("://")
    if separator and scheme in ("postgresql", "postgres"):
        return _postgres_url(POSTGRES + rest)
    if separator and scheme == "sqlite":
        return _sqlite_url(text)
    raise ValueError("neither SQLite nor PostgreSQL")


def _postgres_url(url: str) -> str:
    parts = urlsplit(url)
    if parts.port == 0 or not (parts.netloc or parts.path.strip("/")):
        raise ValueError("no server is named")
    return url


def _sqlite_url(url: str) -> str:
    file = url.removeprefix(SQLITE)
    if file in ("", url) or file.endswith("/") or "?" in file:
        raise ValueError("no file is named")
    if file == ":memory:":
        raise ValueError("nothing would outlive the process, and no second worker could see it")
    return url


def sqlite_file(url: str) -> Path | None:
    """The file of an SQLite URL; None for a server."""
    return Path(url.removeprefix(SQLITE)) if url.startswith(SQLITE) else None


def check_files(url: str, names: frozenset[str], setting: str) -> None:
    """UserError for a certificate that the URL names and that is not there: drivers take that
    for a server that is gone, and it would be waited for."""
    for name, path in parse_qsl(urlsplit(url).query):
        if name in names and not os.access(path, os.R_OK):
            raise UserError(
                f"{path}, the {name} of {mask_password(url)}, is not there or cannot be read",
                f"Mend {setting}, or the file's place and rights.",
            )


def mask_password(url: str) -> str:
    """The URL fit to be shown. Masks too much rather than too little: a password may itself
    hold an unescaped @ or /."""
    without = re.sub(r"(?<=://)([^:@/]*):.*@", r"\1:***@", url)
    return re.sub(r"(password=)[^&]*", r"\1***", without, flags=re.IGNORECASE)
