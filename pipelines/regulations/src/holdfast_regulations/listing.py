"""Pages of listings: what a walker is given, what it answers, and the links of a page."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Set
from dataclasses import dataclass, field
from typing import NamedTuple
from urllib.parse import urldefrag, urljoin, urlsplit

from selectolax.lexbor import LexborHTMLParser, LexborNode

from holdfast.errors import DiscoveryError
from holdfast.model import Json
from holdfast_regulations.admission import Admission
from holdfast_regulations.dates import Period, read_date
from holdfast_regulations.nesting import is_too_nested

_DATE_ANCESTORS = 4
_LONGEST_TITLE = 300
_LONGEST_PAGE = 10_000_000
_NOBODY = "\0"  # not in any href: the parser replaces NULs

#: Elements by their address, each with the only wanted link in it; None if there are several.
Owners = Mapping[int, str | None]


@dataclass(frozen=True, slots=True)
class Fetched:
    """A reply, as far as walkers need it."""

    url: str  # as requested
    status: int
    text: str
    final_url: str = ""
    link_header: str = ""

    @property
    def place(self) -> str:
        return self.final_url or self.url

    @property
    def is_missing(self) -> bool:
        return self.status in (404, 410)

    def check(self) -> None:
        """Refuses an error reply: it is never a page, and never an end."""
        if not 200 <= self.status < 300:
            raise DiscoveryError(f"{self.url} answered {self.status}")
        if _is_home(self.place) and not _is_home(self.url):
            raise DiscoveryError(f"{self.url} redirects to the home page")


class Found(NamedTuple):
    """A URL as it was discovered."""

    url: str
    title: str = ""
    published: Period | None = None


@dataclass(frozen=True, slots=True)
class Walked:
    """What a page led to: URLs, and where to continue. `end` is the source's own word for it."""

    found: list[Found]
    cursor: Json | None
    end: bool = False
    notes: Json = field(default_factory=dict)


class ListingPage:
    def __init__(self, fetched: Fetched) -> None:
        if len(fetched.text) > _LONGEST_PAGE or is_too_nested(fetched.text):
            raise DiscoveryError(f"{fetched.url} is too large or too nested for a listing")
        self._tree = LexborHTMLParser(fetched.text)
        base = self._tree.css_first("base[href]")
        href = base.attributes.get("href") if base is not None else None
        self._base = urljoin(fetched.place, href) if href else fetched.place

    def found(self, selector: str, admission: Admission, date: str | None = None) -> list[Found]:
        """Returns the wanted links in their order, each once."""
        nodes: dict[str, LexborNode] = {}
        for node, url in self.links(selector):
            if url not in nodes and admission.admits(url):
                nodes[url] = node
        owners = self._owners({node.attributes.get("href") for node in nodes.values()})
        return [
            Found(
                url,
                " ".join(node.text().split())[:_LONGEST_TITLE],
                date_near(node, date, owners) if date else None,
            )
            for url, node in nodes.items()
        ]

    def _owners(self, hrefs: Set[str | None]) -> Owners:
        """Returns the only link in each element.

        Every element is looked at twice at most: once for its first link, once for its second.
        Looking for other links from each link on would take quadratic time."""
        owners: dict[int, str | None] = {}
        for link in self._tree.css("a[href]"):
            href = link.attributes.get("href")
            around: LexborNode | None = link if href in hrefs else None
            while around is not None:
                owner = owners.setdefault(around.mem_id, _NOBODY)
                if owner is None or owner == href:
                    break
                owners[around.mem_id] = href if owner == _NOBODY else None
                around = around.parent
        return owners

    def links(self, selector: str) -> Iterator[tuple[LexborNode, str]]:
        """Yields absolute http(s) URLs without their fragments; a selector may also name what is
        around the links."""
        for chosen in self._tree.css(selector):
            for node in [chosen] if chosen.attributes.get("href") else chosen.css("a[href]"):
                url = self.absolute(node.attributes.get("href"))
                if url is not None:
                    yield node, url

    def first_link(self, selector: str) -> str | None:
        return next((url for _, url in self.links(selector)), None)

    def absolute(self, href: str | None) -> str | None:
        if not href or href.startswith("#"):
            return None
        try:
            url = urldefrag(urljoin(self._base, href.strip())).url
        except ValueError:
            return None
        return url if url.startswith(("http://", "https://")) else None


def date_near(node: LexborNode, selector: str, owners: Owners) -> Period | None:
    """Returns the date of the listing entry that the link belongs to: looked for further and
    further out, as far as no other entry's link is in sight."""
    href = node.attributes.get("href")
    around: LexborNode | None = node
    for _ in range(_DATE_ANCESTORS):
        if around is None or owners.get(around.mem_id, href) != href:
            return None
        element = around.css_first(selector)
        if element is not None:
            return read_date(element.attributes.get("datetime") or element.text())
        around = around.parent
    return None


def _is_home(url: str) -> bool:
    parts = urlsplit(url)
    return parts.path in ("", "/") and not parts.query
