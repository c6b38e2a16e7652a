"""Accessible: axe-core finds nothing serious, in light, in dark, on a phone."""

from __future__ import annotations

from pathlib import Path

import pytest
from playwright.sync_api import Page

from holdfast.model import ItemStatus
from holdfast.pipeline import Gate
from tests.store.message_scenarios import dead
from tests.web.conftest import OpenAs, Watch
from tests.web.site import Site

AXE = Path(__file__).parent / "vendor" / "axe.min.js"
STATUSES = [ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.NOT_FOUND, ItemStatus.SKIPPED]
PHONE = {"width": 390, "height": 844}
#: Cells that fill half a phone: their text is in a column as narrow as a letter.
LONG_CELLS = "[...document.querySelectorAll('td')].some((td) => td.offsetHeight > innerHeight / 2)"
#: On a phone, cells whose label is over that of the next one, because they have no height.
FLAT_CELLS = (
    "[...document.querySelectorAll('table.cards-on-phone td[data-label]')]"
    ".some((td) => td.offsetHeight > 0 && td.offsetHeight < 12)"
)


@pytest.fixture(scope="module", autouse=True)
def paths(site: Site) -> list[str]:
    """Every page, with something on it."""
    site.add_user("axe", "admin")
    job = f"/jobs/{site.job('axe', [f'title {n}' for n in range(40)], STATUSES)}"
    waiting = f"/jobs/{site.job('axe', ['a', 'b'], pipeline='held')}"
    site.job("axe", ["c"], pipeline="of another host")
    control = site.parts.control("axe")
    site.run(control.switch("pipeline:nothing", True, "for the test"))
    site.run(site.parts.store.gates.declare(Gate("shop.example", 1.0, concurrency=2)))
    budget = Gate("provider.example", requests=500, units=200_000, period=60)
    site.run(site.parts.store.gates.declare(budget))
    site.run(site.parts.store.gates.order("shop.example", 3600, "HTTP 429", "axe"))
    site.run(site.parts.store.messages.keep_dead(dead("order 1", payload=b'{"a": 1}')))
    return [
        "/", "/jobs", "/new", job, f"{job}?q=status:ERROR", f"{job}/pending", f"{job}/errors",
        f"{job}/pace", f"{job}/streams", f"{job}/audit", f"{job}/items/1", f"{job}/items/2",
        f"{job}/reprocess", f"{job}/export", f"{waiting}/cancel", f"{job}/caps", "/pending",
        "/streams", "/gates", "/gates/close?name=shop.example", "/dead-letters",
        "/dead-letters/1", "/ingestion", "/schedules",
        "/audit", "/settings", "/account", "/operations", "/exports", "/nowhere",
    ]  # fmt: skip


def findings(page: Page) -> list[str]:
    page.evaluate(AXE.read_text())
    found = page.evaluate("axe.run(document)")
    assert len(found["passes"]) > 10
    return [
        f"{each['id']}: {each['help']} at {each['nodes'][0]['target']}"
        for each in found["violations"]
        if each["impact"] in ("serious", "critical")
    ]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_no_page_has_serious_findings(
    scheme: str, paths: list[str], open_as: OpenAs, watch: Watch
) -> None:
    watch.expected = ("404",)
    page = open_as("axe", "/", color_scheme=scheme)
    found = {}
    for path in paths:
        page.goto(path)
        found[path] = findings(page)
    assert {path: each for path, each in found.items() if each} == {}


def test_login_has_no_serious_findings(site: Site, open_as: OpenAs) -> None:
    page = open_as("axe", "/account")
    page.get_by_role("button", name="Log out").click()
    page.wait_for_url("**/login")
    assert findings(page) == []
    page.goto(site.login_link("axe"))
    assert findings(page) == []


def test_nothing_is_wider_than_a_phone_nor_any_cell_as_long(
    paths: list[str], open_as: OpenAs, watch: Watch
) -> None:
    watch.expected = ("404",)
    page = open_as("axe", "/", viewport=PHONE)
    wide, long, flat = [], [], []
    for path in paths:
        page.goto(path)
        if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
            wide.append(path)
        if page.evaluate(LONG_CELLS):
            long.append(path)
        if page.evaluate(FLAT_CELLS):
            flat.append(path)
    assert (wide, long, flat) == ([], [], [])


def test_gates_with_budgets_fit_a_laptop(open_as: OpenAs, paths: list[str]) -> None:
    page = open_as("axe", "/gates", viewport={"width": 1280, "height": 800})
    table = page.locator("main .scroller").element_handle()
    assert page.evaluate("(table) => table.scrollWidth <= table.clientWidth", table)
    assert page.get_by_role("link", name="Close …").is_visible()


def test_long_name_of_a_column_covers_nothing_on_a_phone(open_as: OpenAs, paths: list[str]) -> None:
    page = open_as("axe", paths[3], viewport=PHONE)
    cell = page.locator("table.grid td[data-label]:not(.cut)").last
    height = "(td) => td.getBoundingClientRect().height"
    one_line = cell.evaluate(height)
    cell.evaluate("(td) => { td.dataset.label = 'Total Replacement Price of one piece'; }")
    assert cell.evaluate(height) > one_line


def test_menu_unfolds_on_a_phone(open_as: OpenAs, paths: list[str]) -> None:
    page = open_as("axe", "/jobs", viewport=PHONE)
    page.get_by_role("button", name="Menu").click()
    page.get_by_role("link", name="Gates").click()
    page.wait_for_url("**/gates")
