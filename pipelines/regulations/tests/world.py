"""Several regulatory sites on one loopback port, told apart by their names, as the real ones
behave: a gazette with 9,551 sitemaps, a tax office with capital letters, a busy one, a slow one.

async with RegulatoryWorld() as world:
    async with world.client() as http:
        await http.get("http://narodne-novine.nn.hr/sitemap.xml")
    assert_polite(world.visits_to("narodne-novine.nn.hr"), spacing=5, at_once=1)
"""

from __future__ import annotations

import gzip
import hashlib
from collections import Counter
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import pairwise
from types import TracebackType

from holdfast.http import HttpClient, HttpOptions
from holdfast_regulations.demo import sitemap_markup
from holdfast_regulations.sources import Source
from holdfast_regulations.sources_file import parse_sources
from pipelines.regulations.tests.documents import ACT_TEXT, act_page, pdf
from tests.http_client import PublicNames, RecordingGates, http_client
from tests.world import Answer, Handler, Raw, Request, Visit, World, redirect, text_answer

GAZETTE = "narodne-novine.nn.hr"
TAX = "porezna-uprava.gov.hr"
FINA, FINA_BARE = "www.fina.hr", "fina.hr"
BUSY = "zauzet.gov.hr"
SLOW = "spor.gov.hr"
NAMES = (GAZETTE, TAX, FINA, FINA_BARE, BUSY, SLOW)
PUBLIC_ADDRESS = "93.184.216.34"
TAX_PAGES = 6
TAX_ON_A_PAGE = 10
LASTMOD = "2024-03-05"

SOURCES = f"""
[[source]]
slug = "gazette"
name = "Narodne novine"
hosts = ["{GAZETTE}"]
verified = 2026-01-11
mode = "sitemap"
include = ['/clanci/', '/eli/']
exclude = ['/oglasi/']
[source.sitemap]
url = "http://{GAZETTE}/sitemap.xml"
children = '/sitemap_(?P<part>[12])_(?P<year>\\d{{4}})_(?P<issue>\\d+)\\.xml'
[source.dates]
url = ['/(?P<year>\\d{{4}})_(?P<month>\\d{{2}})_', '/eli/[a-z]+/(?P<year>\\d{{4}})/']
[source.canonical]
identity = [
  '/clanci/(?P<part>[a-z]+)/(?P<year>\\d{{4}})_\\d{{2}}_(?P<issue>\\d+)_(?P<act>\\d+)\\.html',
  '/eli/(?P<part>[a-z]+)/(?P<year>\\d{{4}})/(?P<issue>\\d+)/(?P<act>\\d+)(?=$|[/?#])',
]

[[source]]
slug = "tax"
name = "Porezna uprava"
hosts = ["{TAX}"]
verified = 2026-01-11
mode = "pagination"
include = ['/hr/[^/]+/\\d+$']
exclude = ['/hr/vijesti/8$']
[source.pagination]
url = "http://{TAX}/hr/vijesti/8"
parameter = "Page"
stop = ["empty", "repeat"]

[[source]]
slug = "fina"
name = "Fina"
hosts = ["{FINA}"]
verified = 2026-01-11
mode = "pagination"
include = ['/novosti/']
[source.pagination]
url = "http://{FINA}/novosti"
[source.archive]
first_year = 2020
issue_url = "http://{FINA}/arhiva/{{year}}/{{issue}}"
"""


def sources() -> dict[str, Source]:
    return parse_sources(SOURCES, "world.toml")


@dataclass(frozen=True, slots=True)
class Issue:
    number: int

    @property
    def year(self) -> int:
        return 1990 + self.number % 35

    @property
    def sitemap(self) -> str:
        """Every tenth one is compressed."""
        return f"/sitemap_1_{self.year}_{self.number}.xml" + (".gz" if self.is_packed else "")

    @property
    def is_packed(self) -> bool:
        return self.number % 10 == 9

    def legacy(self, act: int) -> str:
        month = self.number % 12 + 1
        return f"/clanci/sluzbeni/{self.year}_{month:02}_{self.number}_{act}.html"

    def eli(self, act: int) -> str:
        return f"/eli/sluzbeni/{self.year}/{self.number}/{act}"


class RegulatoryWorld:
    """`issues` sitemaps of `acts` acts each; the first act of an issue is listed in both forms.

    With `addresses`, each host is an address of the loopback network instead of a name, for
    processes that cannot be given a resolver."""

    def __init__(
        self, *, issues: int = 9551, acts: int = 3, port: int = 0, addresses: bool = False
    ) -> None:
        self.issues = [Issue(number) for number in range(1, issues + 1)]
        self.acts = acts
        self.versions: dict[str, str] = {}  # path on the gazette -> text of the act now
        self.replaced: dict[str, Answer] = {}  # path on the gazette -> what it answers instead
        self.refusals: Counter[str] = Counter()  # path on the busy host -> refusals still to come
        self.retry_after = 2
        self.lastmod: str | None = LASTMOD
        self.daily = _missing_page()  # the page of each year under /dnevno on the gazette
        self._addresses = addresses
        place = "0.0.0.0" if addresses else "127.0.0.1"
        self._world = World(otherwise=self._answer, port=port, address=place)
        self._sites: dict[str, Handler] = {
            GAZETTE: self._gazette,
            TAX: _tax,
            FINA: _fina,
            FINA_BARE: lambda request: redirect(f"http://{FINA}{request.target}", 301),
            BUSY: self._busy,
            SLOW: _slow,
        }
        self._by_sitemap = {issue.sitemap: issue for issue in self.issues}

    async def __aenter__(self) -> RegulatoryWorld:
        await self._world.__aenter__()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self._world.__aexit__(kind, error, trace)

    @property
    def port(self) -> int:
        return self._world.port

    def host(self, name: str) -> str:
        """The host as URLs name it."""
        return f"127.0.0.{2 + NAMES.index(name)}:{self.port}" if self._addresses else name

    def sources(self, text: str = SOURCES) -> str:
        """The sources file with these hosts."""
        for name in sorted(NAMES, key=len, reverse=True):  # www.fina.hr before fina.hr
            text = text.replace(f'"{name}"', f'"{self.host(name)}"')
            text = text.replace(f"//{name}/", f"//{self.host(name)}/")
        return text

    @property
    def visits(self) -> Sequence[Visit]:
        return self._world.visits

    def visits_to(self, host: str) -> list[Visit]:
        shown = self.host(host).partition(":")[0]
        return [visit for visit in self._world.visits if host_of(visit) == shown]

    @asynccontextmanager
    async def client(self, gates: RecordingGates | None = None) -> AsyncIterator[HttpClient]:
        """A client for which these names, and no others, exist."""
        names = PublicNames(self.port, {name: [PUBLIC_ADDRESS] for name in NAMES})
        async with http_client(HttpOptions(), gates, network=names.checked()) as client:
            yield client

    def _answer(self, request: Request) -> Answer | Raw:
        if self.refusals[request.path] > 0:
            return self._refusal(request)
        asked = request.headers.get("host", "")
        name = next(
            (name for name in NAMES if asked in (name, self.host(name), f"{name}:{self.port}")), ""
        )
        site = self._sites.get(name)
        answer = site(request) if site is not None else text_answer("no such host", 421)
        assert isinstance(answer, Answer | Raw)
        return answer

    @property
    def _gazette_url(self) -> str:
        return f"http://{self.host(GAZETTE)}"

    def _gazette(self, request: Request) -> Answer:
        if request.path in self.replaced:
            return self.replaced[request.path]
        if request.path == "/robots.txt":
            lines = f"User-agent: *\nDisallow: /oglasi\nSitemap: {self._gazette_url}/sitemap.xml\n"
            return text_answer(lines)
        if request.path == "/sitemap.xml":
            return _conditional(request, self._index(), "application/xml")
        issue = self._by_sitemap.get(request.path)
        if issue is not None:
            body = self._sitemap(issue)
            return _conditional(
                request, gzip.compress(body, mtime=0) if issue.is_packed else body, "text/xml"
            )
        if request.path.startswith("/dnevno/"):
            page = Answer(200, act_page(request.path), {"Content-Type": "text/html"})
            return page if "akt" in request.path else self.daily
        if request.path.startswith(("/clanci/sluzbeni/", "/eli/sluzbeni/")):
            body = act_page(request.path, self.versions.get(request.path, ACT_TEXT))
            return _conditional(request, body, "text/html; charset=utf-8")
        return _missing_page()

    def _index(self) -> bytes:
        places = [*(issue.sitemap for issue in self.issues), "/sitemap_3_2024_1.xml"]
        urls = [f"{self._gazette_url}{place}" for place in places]
        return markup("sitemapindex", urls, self.lastmod)

    def _sitemap(self, issue: Issue) -> bytes:
        paths = [issue.eli(1), *(issue.legacy(act) for act in range(1, self.acts + 1))]
        urls = [f"{self._gazette_url}{path}" for path in paths]
        return markup("urlset", urls, self.lastmod)

    def _busy(self, request: Request) -> Answer:
        """A host that has no robots.txt."""
        if request.path == "/robots.txt":
            return text_answer("", 404)
        return Answer(200, act_page(request.path), {"Content-Type": "text/html"})

    def _refusal(self, request: Request) -> Answer:
        """As often as `refusals` says: 503 for paths under /503, else 429."""
        self.refusals[request.path] -= 1
        status = 503 if request.path.startswith("/503") else 429
        return Answer(status, b"", {"Retry-After": str(self.retry_after)})


def _tax(request: Request) -> Answer:
    """Knows `Page` and no `page`; clamps beyond the last page; sends old addresses home."""
    if request.path == "/hr/vijesti/8":
        page = min(max(int(request.query.get("Page", 1)), 1), TAX_PAGES)
        return _listing(range(page * TAX_ON_A_PAGE, (page + 1) * TAX_ON_A_PAGE))
    if request.path.endswith(".aspx"):
        return redirect(f"http://{TAX}/")
    if request.path == "/":
        return Answer(200, act_page("Porezna uprava"), {"Content-Type": "text/html"})
    if request.path.startswith("/hr/vijest-"):
        return Answer(200, act_page(request.path), {"Content-Type": "text/html"})
    if request.path == "/hr/nestalo/1":  # 200, and means 404
        body = "<html><title>Stranica nije pronađena</title><body>Žao nam je.</body></html>"
        return text_answer(body, 200, "text/html")
    if request.path == "/hr/obrazac.pdf":
        return Answer(200, pdf("Obrazac za prijavu poreza"), {"Content-Type": "application/pdf"})
    return _missing_page()


def _fina(request: Request) -> Answer:
    """A listing with rel=next, and an archive by issue; /media is not for robots."""
    if request.path == "/robots.txt":
        return text_answer("User-agent: *\nDisallow: /media\n")
    if request.path.startswith("/arhiva/"):  # two issues a year, none in 2022
        _, _, year, issue = request.path.split("/")
        if int(issue) > 2 or year == "2022":
            return _missing_page()
        links = "".join(f'<a href="/novosti/{year}-{issue}-{n}">n</a>' for n in range(3))
        return text_answer(f"<html><body>{links}</body></html>", 200, "text/html")
    if request.path == "/novosti":
        page = int(request.query.get("page", 1))
        further = f'<a rel="next" href="?page={page + 1}">Dalje</a>' if page < 4 else ""
        links = "".join(f'<a href="/novosti/{page}-{n}">n</a>' for n in range(5))
        return text_answer(f"<html><body>{links}{further}</body></html>", 200, "text/html")
    return Answer(200, act_page(request.path), {"Content-Type": "text/html"})


def _slow(request: Request) -> Answer | Raw:
    """Sends its page in ten pieces, a tenth of a second apart."""
    if request.path == "/robots.txt":
        return text_answer("", 404)
    body = act_page(request.path)
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: {len(body)}\r\n\r\n"
    size = len(body) // 10 + 1
    pieces: list[bytes | float] = [head.encode()]
    for start in range(0, len(body), size):
        pieces += [0.1, body[start : start + size]]
    return Raw(pieces)


def _listing(numbers: range) -> Answer:
    links = "".join(f'<li><a href="/hr/vijest-{n}/{n}">Vijest {n}</a></li>' for n in numbers)
    return text_answer(f"<html><body><ul>{links}</ul></body></html>", 200, "text/html")


def _missing_page() -> Answer:
    return text_answer("<html>no such page</html>", 404, "text/html")


def markup(root: str, urls: Sequence[str], lastmod: str | None = LASTMOD) -> bytes:
    return sitemap_markup(root, urls, lastmod).encode()


def _conditional(request: Request, body: bytes, content_type: str) -> Answer:
    etag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    if request.headers.get("if-none-match") == etag:
        return Answer(304, b"", {"ETag": etag})
    return Answer(200, body, {"Content-Type": content_type, "ETag": etag})


# --- what the log proves ---


def host_of(visit: Visit) -> str:
    return visit.request.headers.get("host", "").partition(":")[0]


def gaps(visits: Sequence[Visit]) -> list[float]:
    """Seconds between the starts of neighbouring requests."""
    starts = sorted(visit.started_at for visit in visits)
    return [later - earlier for earlier, later in pairwise(starts)]


def most_at_once(visits: Sequence[Visit]) -> int:
    """The most requests that were being answered at one moment."""
    changes = [(visit.started_at, 1) for visit in visits]
    changes += [(visit.finished_at, -1) for visit in visits if visit.finished_at is not None]
    at_once = most = 0
    for _, change in sorted(changes):  # at the same moment an end comes before a start
        at_once += change
        most = max(most, at_once)
    return most


def silences(visits: Sequence[Visit]) -> list[tuple[float, float]]:
    """From each reply that asks for patience to the end of what it asks for."""
    found = []
    for visit in visits:
        if isinstance(visit.answer, Answer) and visit.finished_at is not None:
            asked = visit.answer.headers.get("Retry-After")
            if asked is not None:
                found.append((visit.finished_at, visit.finished_at + float(asked)))
    return found


def assert_polite(
    visits: Sequence[Visit], *, spacing: float, at_once: int, tolerance: float = 0.0
) -> None:
    """No two requests closer than the spacing, no more at once than allowed, and silence while
    the server asks for it. `tolerance` is for the way from the gate to the server."""
    assert len(visits) > 1, "too few requests to prove anything"
    closest = min(gaps(visits))
    assert closest >= spacing - tolerance, f"two requests {closest:.3f} s apart, not {spacing} s"
    most = most_at_once(visits)
    assert most <= at_once, f"{most} requests at once, {at_once} allowed"
    assert_silent(visits, silences(visits), tolerance)


def assert_silent(
    visits: Sequence[Visit], closed: Sequence[tuple[float, float]], tolerance: float = 0.0
) -> None:
    for begin, end in closed:
        for visit in visits:
            early = begin < visit.started_at < end - tolerance
            assert not early, (
                f"{visit.request.target} came {end - visit.started_at:.3f} s before the gate opened"
            )


def assert_never_asked(visits: Sequence[Visit], disallowed: Callable[[str], bool]) -> None:
    asked = [visit.request.target for visit in visits if disallowed(visit.request.path)]
    assert not asked, f"requested though disallowed: {asked[:5]}"


def answered_twice(visits: Sequence[Visit]) -> list[str]:
    """Targets whose whole reply was sent more than once: work that was done again."""
    sent = Counter(
        f"{host_of(visit)}{visit.request.target}"
        for visit in visits
        if visit.finished_at is not None
        and visit.request.path != "/robots.txt"
        and (isinstance(visit.answer, Raw) or (visit.answer and visit.answer.status == 200))
    )
    return sorted(target for target, count in sent.items() if count > 1)
