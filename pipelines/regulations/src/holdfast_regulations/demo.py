"""A gazette and a news page for the demo: acts in two URL forms, some of which change, move or
disappear, as those of real sources do."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from urllib.parse import urlsplit

from holdfast.demo.goods import fate
from holdfast.demo.part import NOT_FOUND, Ask, DemoPart, Reply, Sample

_SOURCES = """\
# The sources of the demo.

[[source]]
slug = "harbour-gazette"
name = "Harbour Gazette"
hosts = ["{host}"]
verified = 2026-11-16
mode = "sitemap"
include = ['/acts/', '/eli/']
[source.sitemap]
url = "{url}/sitemap.xml"
children = '/issue-(?P<year>\\d{{4}})-(?P<issue>\\d+)\\.xml'
[source.dates]
url = ['/acts/[a-z]+/(?P<year>\\d{{4}})_(?P<month>\\d{{2}})_', '/eli/[a-z]+/(?P<year>\\d{{4}})/']
[source.canonical]
identity = [
  '/acts/(?P<part>[a-z]+)/(?P<year>\\d{{4}})_\\d{{2}}_(?P<issue>\\d+)_(?P<act>\\d+)\\.html',
  '/eli/(?P<part>[a-z]+)/(?P<year>\\d{{4}})/(?P<issue>\\d+)/(?P<act>\\d+)(?=$|[/?#])',
]
[source.missing]
home = ["/regulations/"]
[source.gate]
min_delay_seconds = 0
max_delay_seconds = 0
concurrency = 8

[[source]]
slug = "harbour-news"
name = "News of the harbour office"
hosts = ["{host}"]
verified = 2026-11-16
mode = "pagination"
include = ['/news/\\d+$']
[source.pagination]
url = "{url}/news"
parameter = "page"
stop = ["empty"]
[source.gate]
min_delay_seconds = 0
max_delay_seconds = 0
concurrency = 8
"""
_YEAR = 2026
_ISSUES, _ACTS = 10, 8
_NEWS_PAGES, _ON_A_PAGE = 4, 10
_AMENDED_SECONDS = 120  # then some acts have other words
_MATTERS = (
    "mooring fees", "the dredging of the inner harbour", "fishing quotas", "the fire brigade",
    "dangerous goods on quays", "pilotage", "the opening hours of the lock", "waste from ships",
    "the lighthouse", "licences of ferries", "noise at night", "the fish market",
)  # fmt: skip
_KINDS = ("Ordinance", "Decision", "Regulation", "Correction of the decision")
_PARAGRAPHS = 6


def environment(url: str) -> dict[str, str]:
    return {}


def files(url: str) -> dict[str, tuple[str, str]]:
    # Another name of the same host, as the other demo servers have: they share its gate.
    url = url.replace("127.0.0.1", "localhost")
    text = _SOURCES.format(host=urlsplit(url).netloc, url=url)
    return {"HOLDFAST_REGULATIONS_SOURCES": ("regulations-sources.toml", text)}


def answer(ask: Ask) -> Reply:
    base = ask.url
    if ask.path == "sitemap.xml":
        places = [f"issue-{_YEAR}-{issue}.xml" for issue in range(1, _ISSUES + 1)]
        return _sitemap("sitemapindex", base, places)
    if ask.path.startswith("issue-"):
        return _issue(base, int(ask.path.rpartition("-")[2].removesuffix(".xml")))
    if ask.path == "news":
        return _news(base, int(ask.query.get("page", "1")))
    if ask.path.startswith(("acts/", "eli/", "news/")):
        return _document(base, ask)
    return _page("Harbour Gazette", "<p>Official publications of the harbour.</p>")


def _issue(base: str, issue: int) -> Reply:
    """Lists an issue; its first act is listed in both forms."""
    acts = [f"acts/official/{_YEAR}_{issue:02}_{issue}_{act}.html" for act in range(1, _ACTS + 1)]
    places = [f"eli/official/{_YEAR}/{issue}/1", *acts]
    return _sitemap("urlset", base, places)


def _sitemap(root: str, base: str, places: list[str]) -> Reply:
    body = sitemap_markup(root, [f"{base}/{place}" for place in places])
    return Reply(body, content_type="application/xml")


def sitemap_markup(root: str, urls: Iterable[str], lastmod: str | None = None) -> str:
    """Returns a `urlset`, or a `sitemapindex`."""
    element = "sitemap" if root == "sitemapindex" else "url"
    end = f"</loc><lastmod>{lastmod}</lastmod></{element}>" if lastmod else f"</loc></{element}>"
    entries = "".join([f"<{element}><loc>{url}{end}" for url in urls])
    space = "http://www.sitemaps.org/schemas/sitemap/0.9"
    return f'<?xml version="1.0"?><{root} xmlns="{space}">{entries}</{root}>'


def _news(base: str, page: int) -> Reply:
    first = (page - 1) * _ON_A_PAGE + 1 if page <= _NEWS_PAGES else 1
    numbers = range(first, first + _ON_A_PAGE) if page <= _NEWS_PAGES else range(0)
    links = "".join(
        f'<li><a href="{base}/news/{n}">{_matter(f"news {n}")}</a></li>' for n in numbers
    )
    return _page("News", f"<ul>{links}</ul>")


def _document(base: str, ask: Ask) -> Reply:
    """Returns a document.

    Most exist; a few redirect home, say that they are missing, or are gone."""
    fortune = fate(f"fortune {ask.path}", 40)
    if fortune == 0:
        return Reply("moved", 302, "text/plain", {"Location": f"{base}/"})
    if fortune == 1:
        return _page("Page not found", "<p>We are sorry.</p>")
    if fortune == 2:
        return NOT_FOUND
    amended = ask.uptime_seconds > _AMENDED_SECONDS and fate(f"amended {ask.path}", 5) == 0
    title = f"{_KINDS[fate(f'kind {ask.path}', len(_KINDS))]} on {_matter(ask.path)}"
    day = f"{_YEAR}-{1 + fate(f'month {ask.path}', 10):02}-{1 + fate(f'day {ask.path}', 28):02}"
    return _page(title, _articles(ask.path, amended), day)


def _matter(seed: str) -> str:
    return _MATTERS[fate(f"matter {seed}", len(_MATTERS))]


def _articles(path: str, amended: bool) -> str:
    words = [
        f"<p>Article {n}. On {_matter(f'{path} {n}')}: every user of the harbour pays"
        f" {10 + fate(f'{path} {n}', 90) + (5 if amended and n == 2 else 0)} crowns, within"
        f" {1 + fate(f'days {path} {n}', 30)} days, to the harbour office.</p>"
        for n in range(1, _PARAGRAPHS + 1)
    ]
    if amended:
        words.append("<p>The amount in article 2 was amended.</p>")
    return "".join(words)


def _page(title: str, content: str, day: str = "") -> Reply:
    published = f'<meta property="article:published_time" content="{day}">' if day else ""
    body = (
        f'<!DOCTYPE html><html lang="en"><head><title>{escape(title)}</title>{published}</head>'
        f"<body><nav><a href='/'>Home</a></nav><main><h1>{escape(title)}</h1>{content}</main>"
        "</body></html>"
    )
    return Reply(body, content_type="text/html; charset=utf-8", delay_seconds=0.03)


async def fill(sample: Sample) -> None:
    """Reads all sources once."""
    if await sample.fetch("regulations_any_run", {}):
        return
    await sample.control.request(sample.pipeline, {"run_by": "demo"})


DEMO = DemoPart(answer, environment, fill, files)
