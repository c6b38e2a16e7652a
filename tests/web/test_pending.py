"""The page of pending items: filtered, selected, skipped."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from holdfast.model import ItemStatus
from tests.web.conftest import OpenAs, Watch
from tests.web.site import Site


def _rows(page: Page) -> list[str]:
    rows = page.locator("tr[data-seq]")
    return [row.get_attribute("data-seq") or "" for row in rows.all()]


def test_open_items_are_filtered_by_job_pipeline_and_day(
    site: Site, ada: str, open_as: OpenAs
) -> None:
    one = site.job(ada, ["a", "b"], pipeline="nobody-works", name="one.csv")
    other = site.job(ada, ["c"], pipeline="nobody-either", name="other.csv")
    page = open_as(ada, "/pending")
    assert sorted(_rows(page)) == sorted([f"{one}-1", f"{one}-2", f"{other}-1"])
    page.get_by_role("textbox", name="Job").fill(f"#{other}")
    page.get_by_role("button", name="Filter").click()
    expect(page.locator("tr[data-seq]")).to_have_count(1)
    assert _rows(page) == [f"{other}-1"]
    page.get_by_role("link", name="Clear").click()
    page.get_by_role("combobox", name="Pipeline").select_option("nobody-works")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_role("combobox", name="Pipeline")).to_have_value("nobody-works")
    assert sorted(_rows(page)) == [f"{one}-1", f"{one}-2"]
    page.get_by_role("link", name="Clear").click()
    page.get_by_label("until").fill("2020-01-01")
    page.get_by_role("button", name="Filter").click()
    expect(page.get_by_text("No open item matches this filter.")).to_be_visible()


def test_selected_items_of_several_jobs_are_skipped(site: Site, ada: str, open_as: OpenAs) -> None:
    one = site.job(ada, ["a", "b"], pipeline="nobody-works")
    other = site.job(ada, ["c"], pipeline="nobody-works")
    page = open_as(ada, "/pending")
    page.locator(f"tr[data-seq='{one}-2'] [data-tick]").check()
    page.locator(f"tr[data-seq='{other}-1'] [data-tick]").check()
    page.get_by_role("button", name="Skip …").click()
    expect(page.get_by_text("Skip 2 items of 2 jobs?")).to_be_visible()
    page.get_by_label("Reason").fill("not needed")
    page.get_by_role("button", name="Skip 2").click()
    expect(page.get_by_text("Skipped: 2.")).to_be_visible()
    assert _rows(page) == [f"{one}-1"]
    item = site.run(site.parts.console.items.item(one, 2))
    assert item is not None and item["status"] == ItemStatus.SKIPPED


def test_rows_of_other_owners_cannot_be_skipped(
    site: Site, ada: str, open_as: OpenAs, watch: Watch
) -> None:
    watch.expected = ("404",)
    site.add_user(f"other-{ada}")
    foreign = site.job(f"other-{ada}", ["a"], pipeline="nobody-works")
    page = open_as(ada, f"/pending/bulk?kind=skip&seqs={foreign}-1")
    page.get_by_role("button", name="Skip 1").click()
    expect(page.get_by_text(f"There is no job {foreign}")).to_be_visible()
    item = site.run(site.parts.console.items.item(foreign, 1))
    assert item is not None and item["status"] in (None, ItemStatus.PENDING)
