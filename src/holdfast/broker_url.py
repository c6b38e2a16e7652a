"""What a broker URL and a prefix of queue names may be."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

ACCEPTED = "`amqp://USER:PASSWORD@HOST/VHOST` or `amqps://…`"
ACCEPTED_PREFIX = "up to 100 letters, digits, `.`, `_` and `-`"
_PREFIX = re.compile(r"[A-Za-z0-9._-]{1,100}")


def read_broker_url(text: str) -> str:
    """The URL; ValueError for one that names no RabbitMQ server."""
    parts = urlsplit(text)
    if parts.scheme not in ("amqp", "amqps") or not parts.hostname or parts.port == 0:
        raise ValueError("no RabbitMQ server is named")
    return text


def read_prefix(text: str) -> str:
    if not _PREFIX.fullmatch(text):
        raise ValueError("not a name of a queue")
    return text
