"""The review page in a real browser, driven by keys alone."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from holdfast.kernel.database.migrate import upgrade
from pipelines.linker.tests.entity_world import make_world
from pipelines.linker.tests.linker_site import LinkerSite
from tests.fixtures import sqlite_url_of
from tests.store.checks import fetch
from tests.web.conftest import OpenAs, Watch
from tests.web.site import Site
from tests.web.test_access import PHONE, findings

DECISIONS = 50
ADAMS = {"name": "Douglas Adams"}


@pytest.fixture(scope="module")
def linker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LinkerSite]:
    folder = tmp_path_factory.mktemp("linker")
    url = sqlite_url_of(folder / "holdfast.db")
    upgrade(url)
    with LinkerSite(url, folder, make_world(1)) as linker:
        yield linker


@pytest.fixture(scope="module")
def site(linker: LinkerSite) -> Site:
    return linker.site


def _current(page: Page) -> int:
    return int(page.locator(".linker-card").get_attribute("data-seq") or 0)


def _rulings(site: Site, job_id: int) -> list[tuple[Any, ...]]:
    async def read() -> list[tuple[Any, ...]]:
        query = (
            "select seq, version, kind, author from rulings where job_id = :job"
            " order by seq, version"
        )
        return await fetch(site.parts.store, query, job=job_id)

    return site.run(read())


# From a key to the next card on the screen.
_STOPWATCH = """
window.seconds = [];
let pressed = 0;
document.addEventListener("keydown", () => { pressed = performance.now(); }, true);
new MutationObserver(() => requestAnimationFrame(() => {
  if (pressed) window.seconds.push((performance.now() - pressed) / 1000);
  pressed = 0;
})).observe(document.getElementById("review"), { childList: true });
"""


def _print_seconds(page: Page) -> None:
    seconds = sorted(page.evaluate("window.seconds"))
    middle, late = seconds[len(seconds) // 2], seconds[int(len(seconds) * 0.95)]
    print(f"{len(seconds)} decisions: p50 {middle:.3f} s, p95 {late:.3f} s to the next entry")


def test_fifty_decisions_by_keys_alone(linker: LinkerSite, site: Site, open_as: OpenAs) -> None:
    ann = linker.person("ann")
    project = linker.project(ann, [ADAMS] * (DECISIONS + 3), "fifty")
    job_id = project["datasets"][0]["jobId"]
    page = open_as("ann", "/linker")
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    page.wait_for_url("**/linker/projects/*")
    page.keyboard.press("r")
    page.wait_for_url("**/review")
    expect(page.locator(".linker-card")).to_have_attribute("data-seq", "1")
    page.evaluate(_STOPWATCH)
    for number in range(DECISIONS):
        seq = _current(page)
        page.keyboard.press("n" if number % 10 == 9 else "1")
        if number == 4:
            expect(page.locator(".linker-card")).not_to_have_attribute("data-seq", str(seq))
            page.keyboard.press("u")
            expect(page.locator(".linker-card")).to_have_attribute("data-seq", str(seq))
            page.keyboard.press("1")
        expect(page.locator(".linker-card")).not_to_have_attribute("data-seq", str(seq))
    _print_seconds(page)
    skipped = _current(page)
    page.keyboard.press("s")
    expect(page.locator(".linker-card")).not_to_have_attribute("data-seq", str(skipped))
    expect(page.locator("#decided")).to_have_text(str(DECISIONS))
    expect(page.locator("#left")).to_have_text("3")
    at = f"/api/projects/{project['id']}"
    done = linker.until(
        ann, project["id"], lambda p: p["figures"]["states"]["reviewed"] == DECISIONS
    )
    assert done["figures"]["states"]["awaiting_review"] == 3
    rulings = _rulings(site, job_id)
    undone = [each for each in rulings if each[1] > 1]
    assert len(rulings) == DECISIONS + 2, "each decision is stored once"
    assert [each[2] for each in undone] == ["revoke", "choose"]
    states = {task["item"] for task in ann.get(f"{at}/tasks?state=reviewed").json()["tasks"]}
    assert states == {"Q42", None}


def test_second_reviewer_sees_what_the_first_decided(
    linker: LinkerSite, site: Site, open_as: OpenAs, watch: Watch
) -> None:
    watch.expected = ("409",)
    ben = linker.person("ben")
    linker.person("root", "admin")
    project = linker.project(ben, [ADAMS] * 3, "two")
    path = f"/linker/projects/{project['id']}/review"
    first, second = open_as("ben", path), open_as("root", path)
    first.keyboard.press("1")
    expect(first.locator(".linker-card")).to_have_attribute("data-seq", "2")
    linker.until(ben, project["id"], lambda p: p["figures"]["states"]["reviewed"] == 1)
    second.keyboard.press("n")
    expect(second.locator("#notes")).to_contain_text("ben has decided")
    expect(second.locator(".linker-decided")).to_have_text("ben decided: Q42")
    rulings = _rulings(site, project["datasets"][0]["jobId"])
    assert [(each[0], each[2], each[3]) for each in rulings] == [(1, "choose", "ben")]
    second.keyboard.press("s")
    second.keyboard.press("/")
    second.keyboard.type("Q937")
    second.keyboard.press("Enter")
    expect(second.locator(".linker-card")).to_have_attribute("data-seq", "3")


@pytest.mark.parametrize(
    "options", [{}, {"color_scheme": "dark"}, {"viewport": PHONE}], ids=["light", "dark", "phone"]
)
def test_pages_can_be_used_by_everybody(
    linker: LinkerSite, open_as: OpenAs, options: dict[str, Any]
) -> None:
    name = f"cat-{len(str(options))}"
    cat = linker.person(name)
    row = {"name": "Douglas Adams", "born": "1952", "type": "Q5", "occupation": "Q33999"}
    project = linker.project(cat, [row, ADAMS], "seen")
    table = b"Who,Born,Remarks\nDouglas Adams,1952,x\n"
    file_id = cat.post("/api/files", files={"file": ("who.csv", table)}).json()["id"]
    at = f"/projects/{project['id']}"
    page = open_as(name, "/linker", **options)
    for path in ("", at, f"{at}/review", f"{at}/datasets/{file_id}"):
        page.goto(f"/linker{path}")
        page.wait_for_load_state("load")
        assert findings(page) == [], path
