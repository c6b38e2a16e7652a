"""Requests at random over every route of API and pages, as no one, reader, operator and admin.

Each owner's rows carry a marker of their own. A reply to an operator or to an unknown client that
has another's marker in it, a status of 500, and (in the long run) a reply that takes more than two
seconds, are findings.
"""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote, urlencode

import httpx2

OWNERS = ("alice", "bob")
#: What an owner's rows, files, names and errors have in them.
MARKERS = {name: f"marker-of-{name}-7f3a" for name in OWNERS}
ROLES = {None: "anonymous", "rita": "reader", "alice": "operator", "bob": "operator",
         "root": "admin"}  # fmt: skip
SLOW_SECONDS = 2.0
#: Never ends; locks out the caller, or everyone; slow by design.
LEFT_OUT = re.compile(
    r"/api/events|/events\b|/live|/logout|/api/session($|/password|/link)|/login|/account/password"
    r"|/account/second-factor|/api/users|/api/flags|/api/kill-switches|/settings/|/kickoff|/static"
    r"|/tokens/.*(revoke|\{)"
)
_METHODS = ("GET", "POST", "PUT", "PATCH", "DELETE")
_TEXTS = (
    "", "0", "1", "-1", "2", "9" * 30, "1e400", "nan", "true", "null", "[]", "{}", "a" * 3000,
    "\x00", "a\x00b", "\U0001f600", "\u202e", "%00", "../../etc/passwd", "' or 1=1 --", '"',
    "<script>alert(1)</script>", "{{7*7}}", "DONE", "RUNNING", "ERROR", "csv", "xlsx", "utf-16",
    "lengths", "shelves", "meetings", "full", "incremental", "agenda", "minutes", "nonsense",
    "2026-01-31", "2026-13-45", "2026-01-01T00:00:00Z", "title:oak", "a:b:c", "*", "%", "_", "\\",
    "all", "pipeline:lengths", "0 6 * * *", "UTC", "Europe/Zagreb", "/tmp", "a.csv", "oak",
)  # fmt: skip
_FIELDS = (
    "pipeline", "fileId", "fileIds", "options", "encoding", "delimiter", "sheet", "maxItems",
    "statuses", "code", "since", "until", "value", "format", "withInput", "after", "pageSize",
    "states", "pipelines", "state", "type", "mode", "words", "q", "kind", "filter", "scope",
    "itemIds", "reason", "name", "days", "cron", "zone", "job_ids", "file_id", "image_ids",
    "max_items", "subdomain", "url", "force", "next", "takeOver", "durationMs", "resetAttempts",
    "text", "column", "files", "csrf", "from", "to", "seconds", "status", "page",
)  # fmt: skip


@dataclass(slots=True)
class Findings:
    requests: int = 0
    statuses: Counter[int] = field(default_factory=Counter)
    by_role: Counter[str] = field(default_factory=Counter)
    errors: list[str] = field(default_factory=list)
    leaks: list[str] = field(default_factory=list)
    slow: list[str] = field(default_factory=list)
    slowest: float = 0.0

    def __str__(self) -> str:
        return (
            f"{self.requests:,} requests, {dict(self.by_role)}, statuses "
            f"{dict(sorted(self.statuses.items()))}, {len(self.errors)} server errors, "
            f"{len(self.leaks)} leaks, {len(self.slow)} over {SLOW_SECONDS:.0f} s, slowest "
            f"{self.slowest:.2f} s"
        )


class WildRequests:
    """`clients` is one for each name in ROLES, logged in by token (None: not logged in)."""

    def __init__(
        self, routes: list[tuple[str, str]], clients: dict[str | None, Any], seed: int
    ) -> None:
        self._routes = [route for route in routes if not LEFT_OUT.search(route[1])]
        self._clients = clients
        self._rng = random.Random(seed)
        self.findings = Findings()

    async def send(self, number: int) -> Findings:
        names = list(self._clients)
        for _ in range(number):
            await self._send_one(self._rng.choice(names))
        return self.findings

    async def _send_one(self, name: str | None) -> None:
        rng, found = self._rng, self.findings
        method, path = rng.choice(self._routes)
        if rng.random() < 0.05:
            method = rng.choice(_METHODS)
        address = self._address(path)
        asked = self._body() if method != "GET" else {}
        if rng.random() < 0.1:
            asked.setdefault("headers", {})["HX-Request"] = "true"
        label = f"{ROLES[name]} {name}: {method} {address[:300]} {str(asked)[:300]}"
        begun = time.perf_counter()
        try:
            reply = await self._clients[name].request(method, address, **asked)
        except httpx2.InvalidURL:
            return
        seconds = time.perf_counter() - begun
        found.requests += 1
        found.statuses[reply.status_code] += 1
        found.by_role[ROLES[name]] += 1
        found.slowest = max(found.slowest, seconds)
        if reply.status_code >= 500 and reply.status_code != 503:
            found.errors.append(f"{reply.status_code} {label}")
        if seconds > SLOW_SECONDS:
            found.slow.append(f"{seconds:.1f} s {label}")
        self._look_for_leaks(name, label, reply.text)

    def _look_for_leaks(self, name: str | None, label: str, text: str) -> None:
        if name in ("rita", "root"):
            return  # they see everything
        for owner, marker in MARKERS.items():
            if owner != name and marker in text:
                self.findings.leaks.append(f"{owner}'s row: {label}")

    def _address(self, path: str) -> str:
        filled = re.sub(r"\{[^}]*\}", lambda _: quote(self._segment(), safe=""), path)
        if self._rng.random() < 0.5:
            return filled
        pairs = [(self._rng.choice(_FIELDS), self._text()) for _ in range(self._rng.randint(1, 4))]
        return f"{filled}?{urlencode(pairs, errors='replace')}"

    def _segment(self) -> str:
        """Mostly an id that exists."""
        if self._rng.random() < 0.8:
            return str(self._rng.randint(1, 12))
        return self._text()[:300] or "x"

    def _text(self) -> str:
        return self._rng.choice(_TEXTS)

    def _value(self, depth: int = 0) -> Any:
        kind = self._rng.randint(0, 7 if depth < 2 else 4)
        if kind <= 1:
            return self._text()
        if kind == 2:
            return self._rng.choice([0, 1, -1, 2, 5, 2**31, 2**53, 2**63, 1.5, 1e300])
        if kind == 3:
            return self._rng.choice([True, False, None])
        if kind == 4:
            return self._rng.randint(1, 12)
        if kind == 5:
            return [self._value(depth + 1) for _ in range(self._rng.randint(0, 3))]
        return self._object(depth + 1)

    def _object(self, depth: int = 0) -> dict[str, Any]:
        names = (self._rng.choice(_FIELDS) for _ in range(self._rng.randint(0, 5)))
        return {name: self._value(depth) for name in names}

    def _body(self) -> dict[str, Any]:
        kind = self._rng.randint(0, 9)
        if kind <= 4:
            return {"json": self._object()}
        if kind <= 7:
            return {"data": {name: str(value) for name, value in self._object().items()}}
        if kind == 8:
            data = {name: str(value)[:1000] for name, value in self._object().items()}
            rows = self._rng.choice([b"title\noak\n", b"", b"\x00\xff\xfe", b"a,a\n1,2\n", b"{}"])
            return {"files": {"file": (self._text()[:100] or "x", rows)}, "data": data}
        content = self._rng.choice([b"", b"{", b"\xff\xfe", b"[" * 500, b"null", b'"x"'])
        return {"content": content, "headers": {"Content-Type": "application/json"}}
