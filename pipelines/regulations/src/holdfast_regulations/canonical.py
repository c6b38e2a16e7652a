"""Names what was discovered: the canonical key identifies an item, its URL is what is fetched.

Two URLs with one key are one item. Folding a trailing slash, a fragment or the order of parameters
may change what a server answers, so it is done to the key only, never to the URL.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from hashlib import sha256 as _sha256
from typing import NamedTuple
from urllib.parse import unquote_plus

from ada_url import URL

_ID_HEX_DIGITS = 32  # 128 bits
_NUMBERS = ("year", "issue", "act")
_MOST_ISSUES = 10_000
_UNRESERVED = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~")
_ESCAPE = re.compile(r"%([0-9A-Fa-f]{2})")
# Already normal: nothing to lower, decode, sort or drop except a slash at the end. Most URLs of a
# sitemap are, and a WHATWG parse costs ten times this match.
_PLAIN = re.compile(r"(https?)://([a-z0-9-]+(?:\.[a-z0-9-]+)*\.[a-z]+)(/[A-Za-z0-9_~./-]*)")
_DOTS = re.compile(r"/\.\.?(?:/|$)")

#: Parameters that say where a reader came from; no server is known to answer differently.
TRACKERS = ("utm_*", "fbclid", "gclid", "dclid", "msclkid", "igshid", "mc_cid", "mc_eid")


class InvalidUrl(ValueError):
    """Raised for a URL that no browser would accept."""


class Identity(NamedTuple):
    """A legal act: part of the gazette, year, number of the issue, number of the act."""

    part: str
    year: int
    issue: int
    act: str

    @property
    def eli(self) -> str:
        """The path of the act's European Legislation Identifier."""
        return f"/eli/{self.part}/{self.year}/{self.issue}/{self.act}"


@dataclass(frozen=True, slots=True)
class CanonicalRules:
    """How one source's URLs are folded. The defaults fold what nearly all servers treat alike."""

    keep_trailing_slash: bool = False
    keep_fragment: bool = False
    fold_www: bool = False
    fold_scheme: bool = False
    drop_parameters: tuple[str, ...] = TRACKERS
    identity: tuple[re.Pattern[str], ...] = ()


DEFAULT_RULES = CanonicalRules()


def canonical_key(url: str, rules: CanonicalRules = DEFAULT_RULES) -> str:
    """Returns the same key for all URLs that mean one thing at this source."""
    return key_maker(rules)(url)


def key_maker(rules: CanonicalRules) -> Callable[[str], str]:
    """Returns `canonical_key` for many URLs: it runs for every URL of every sitemap, so groups are
    referred to by their numbers, and what the acts of an issue share is computed once."""
    acts = [
        (p.search, [p.groupindex[n] for n in ("part", *_NUMBERS) if n in p.groupindex])
        for p in rules.identity
    ]
    starts: dict[tuple[str | None, ...], str] = {}

    def key(url: str) -> str:
        for search, numbers in acts:
            match = search(url)
            if match is not None:
                groups = match.group(*numbers)
                start = starts.get(groups[:-1])
                if start is None:
                    if len(starts) >= _MOST_ISSUES:
                        starts.clear()
                    start = starts[groups[:-1]] = _start_of_issue(*groups[:-1])
                return start + (groups[-1].lstrip("0") or "0")
        return canonical_url(url, rules)

    return key


def _start_of_issue(*groups: str | None) -> str:
    *part, year, issue = groups
    return f"act:/eli/{(part and part[0]) or ''}/{int(year or 0)}/{int(issue or 0)}/"


def item_id(slug: str, key: str) -> str:
    """Returns `backfill-{slug}-{128 bits}`: the same for the same source and canonical key, for
    ever."""
    return f"backfill-{slug}-{_sha256(key.encode()).hexdigest()[:_ID_HEX_DIGITS]}"


def backfill_id(slug: str, url: str, rules: CanonicalRules = DEFAULT_RULES) -> str:
    return item_id(slug, canonical_key(url, rules))


def identity_of(url: str, patterns: Sequence[re.Pattern[str]]) -> Identity | None:
    """Returns the act behind a URL, whichever form it has; None if no pattern matches."""
    for pattern in patterns:
        match = pattern.search(url)
        if match is not None:
            year, issue, act = match.group(*_NUMBERS)
            part = match["part"] if "part" in pattern.groupindex else None
            return Identity(part or "", int(year), int(issue), act.lstrip("0") or "0")
    return None


def canonical_url(url: str, rules: CanonicalRules = DEFAULT_RULES) -> str:
    """Returns the folded URL. Raises InvalidUrl."""
    plain = _PLAIN.fullmatch(url)
    if plain is not None and _DOTS.search(plain[3]) is None:
        return _joined(plain[1], plain[2], plain[3], "", "", rules)
    try:
        parsed = URL(url.strip())
    except ValueError as error:
        raise InvalidUrl(f"{url[:200]!r} is not an absolute URL") from error
    return _joined(
        parsed.protocol.removesuffix(":"),
        parsed.host,
        _escapes(parsed.pathname),
        _query(parsed.search.removeprefix("?"), rules.drop_parameters),
        _escapes(parsed.hash) if rules.keep_fragment else "",
        rules,
    )


def _joined(
    scheme: str, host: str, path: str, query: str, fragment: str, rules: CanonicalRules
) -> str:
    if rules.fold_scheme and scheme == "http":
        scheme = "https"
    if rules.fold_www:
        host = host.removeprefix("www.")
    if not rules.keep_trailing_slash:
        path = path.rstrip("/") or "/"
    return f"{scheme}://{host}{path}{'?' if query else ''}{query}{fragment}"


def _query(text: str, dropped: Sequence[str]) -> str:
    """Returns the parameters in the order of their names. Repeated ones keep their order."""
    named = [(unquote_plus(part.partition("=")[0]), part) for part in text.split("&") if part]
    kept = [pair for pair in named if not any(fnmatchcase(pair[0], p) for p in dropped)]
    return "&".join(_escapes(part) for _, part in sorted(kept, key=lambda pair: pair[0]))


def _escapes(text: str) -> str:
    """Returns the text with upper-case escapes, and none for characters that need none (RFC 3986,
    6.2.2)."""
    if "%" not in text:
        return text
    return _ESCAPE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    value = int(match[1], 16)
    return chr(value) if value in _UNRESERVED else match[0].upper()
