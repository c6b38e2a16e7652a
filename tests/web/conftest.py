"""A real Chromium, once a module; each test opens pages as its own user.

Every page is watched: errors on its console and requests that leave the host fail the test.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from holdfast.kernel.database.migrate import upgrade
from tests.fixtures import sqlite_url_of
from tests.web.site import Site

CHROMIUM_MISSING = "chromium is missing; run tests/servers, or install Debian's package chromium"
_WAIT_MS = 60_000
expect.set_options(timeout=_WAIT_MS)

OpenAs = Callable[..., Page]


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Not the session's: while it is open, no other test of this process can run a loop."""
    path = shutil.which("chromium")
    if path is None:
        pytest.fail(CHROMIUM_MISSING, pytrace=False)
    with sync_playwright() as playwright:
        arguments = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = playwright.chromium.launch(executable_path=path, args=arguments)
        yield browser
        browser.close()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """The session's pages, on SQLite; tests keep apart by their users."""
    folder = tmp_path_factory.mktemp("site")
    url = sqlite_url_of(folder / "holdfast.db")
    upgrade(url)
    with Site(url, folder) as site:
        yield site


@pytest.fixture(autouse=True)
def nothing_stays_held(site: Site) -> Iterator[None]:
    """Items that still wait would keep the worker from the next test's."""
    yield
    site.let_all_go()


@pytest.fixture
def ada(site: Site) -> str:
    """An operator of the test's own."""
    name = f"ada-{uuid4().hex[:8]}"
    site.add_user(name)
    return name


@pytest.fixture
def root(site: Site) -> str:
    """An admin of the test's own."""
    name = f"root-{uuid4().hex[:8]}"
    site.add_user(name, "admin")
    return name


class Watch:
    """What went wrong on any page of a test, or left the host."""

    def __init__(self, url: str) -> None:
        self._url = url
        self.expected: tuple[str, ...] = ()
        self.seen: list[str] = []

    def follow(self, context: BrowserContext) -> None:
        context.on("console", self._console)
        context.on("weberror", lambda error: self.seen.append(f"script: {error.error}"))
        context.on("request", self._request)

    def _console(self, message: Any) -> None:
        if message.type in ("error", "warning"):
            self.seen.append(f"console: {message.text} {message.location.get('url', '')}")

    def _request(self, request: Any) -> None:
        if not request.url.startswith((self._url, "data:", "blob:")):
            self.seen.append(f"left the host: {request.url}")

    @property
    def problems(self) -> list[str]:
        return [each for each in self.seen if not any(word in each for word in self.expected)]


@pytest.fixture
def watch(site: Site) -> Iterator[Watch]:
    watch = Watch(site.url)
    yield watch
    assert watch.problems == []


@pytest.fixture
def open_as(browser: Browser, site: Site, watch: Watch, tmp_path: Path) -> Iterator[OpenAs]:
    """`open_as(name, "/jobs")`: a page of a logged-in user, in a separate browser."""
    contexts: list[BrowserContext] = []

    def open_as(name: str, path: str = "/", **options: Any) -> Page:
        options.setdefault("viewport", {"width": 1280, "height": 800})
        context = browser.new_context(base_url=site.url, **options)
        context.set_default_timeout(_WAIT_MS)
        contexts.append(context)
        watch.follow(context)
        page = context.new_page()
        page.goto(site.login_link(name))
        page.get_by_role("button", name="Log in").click()
        page.wait_for_url(f"{site.url}/")
        page.goto(path)
        return page

    yield open_as
    for context in contexts:
        context.close()
