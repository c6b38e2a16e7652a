"""The grid: long, filtered, selected, acted upon."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from holdfast.model import ItemStatus
from tests.web.conftest import OpenAs, Watch
from tests.web.site import Site

DONE, ERROR, MISSING = ItemStatus.DONE, ItemStatus.ERROR, ItemStatus.NOT_FOUND
MANY = 100_000


@pytest.fixture(scope="module")
def long_job(site: Site) -> tuple[str, int]:
    site.add_user("long-list")
    titles = [f"title {number}" for number in range(1, MANY + 1)]
    return "long-list", site.job("long-list", titles, [DONE, DONE, DONE, ERROR])


def _scroll_until(page: Page, seq: int) -> None:
    page.evaluate(
        """() => { window.scrolling = setInterval(
            () => window.scrollTo(0, document.body.scrollHeight), 30); }"""
    )
    page.wait_for_selector(f"tr[data-seq='{seq}']", timeout=60_000, state="attached")
    page.evaluate("clearInterval(window.scrolling)")


def test_scrolling_continues_and_leaves_out_what_is_far(
    long_job: tuple[str, int], open_as: OpenAs
) -> None:
    name, job_id = long_job
    page = open_as(name, f"/jobs/{job_id}")
    expect(page.locator("tr[data-seq]").first).to_have_attribute("data-seq", "1")
    _scroll_until(page, 6100)
    assert page.locator("tr[data-seq]").count() < 4000
    # What was left out comes back, in its place.
    page.evaluate("window.scrollTo(0, document.body.scrollHeight / 2)")
    page.wait_for_function(
        """() => [...document.querySelectorAll('tr[data-seq]')].some((row) => {
            const box = row.getBoundingClientRect();
            return box.top > 0 && box.bottom < innerHeight
                && Number(row.dataset.seq) > 2000 && Number(row.dataset.seq) < 5000; })"""
    )
    seqs = page.locator("tr[data-seq]").evaluate_all("rows => rows.map(row => +row.dataset.seq)")
    assert seqs == sorted(set(seqs))


def test_scrolling_ends_at_the_last_of_100_000_rows(
    long_job: tuple[str, int], open_as: OpenAs
) -> None:
    name, job_id = long_job
    page = open_as(name, f"/jobs/{job_id}?q=row:97000")
    _scroll_until(page, MANY)
    expect(page.locator("tbody.more")).to_have_count(0)


def test_row_can_be_gone_to(long_job: tuple[str, int], open_as: OpenAs) -> None:
    name, job_id = long_job
    page = open_as(name, f"/jobs/{job_id}?q=row:99990")
    expect(page.locator("tr[data-seq]")).to_have_count(11)
    expect(page.locator("tr[data-seq]").first).to_contain_text("title 99990")


def test_filter_is_in_the_address(long_job: tuple[str, int], open_as: OpenAs) -> None:
    name, job_id = long_job
    page = open_as(name, f"/jobs/{job_id}")
    page.keyboard.press("/")
    page.keyboard.type("status:error code:PARSE_ERROR")
    page.keyboard.press("Enter")
    page.wait_for_url("**q=status*")
    expect(page.locator(".matching")).to_have_text("25,000 match")
    expect(page.locator("tr[data-seq]").first).to_contain_text("PARSE_ERROR")
    page.get_by_role("link", name="not found", exact=True).click()
    expect(page.get_by_text("No matching items")).to_be_visible()


def test_filter_that_is_not_understood_says_its_words(
    ada: str, site: Site, open_as: OpenAs, watch: Watch
) -> None:
    watch.expected = ("422",)
    job_id = site.job(ada, ["one"], [DONE])
    page = open_as(ada, f"/jobs/{job_id}?q=colour:red")
    expect(page.locator("main")).to_contain_text("status:ERROR")


def test_rows_are_found_by_what_a_column_holds(long_job: tuple[str, int], open_as: OpenAs) -> None:
    name, job_id = long_job
    page = open_as(name, f"/jobs/{job_id}")
    page.keyboard.press("/")
    page.keyboard.type('title:"title 10*01"')
    page.keyboard.press("Enter")
    page.wait_for_url("**q=title*")
    expect(page.locator(".matching")).to_have_text("1 of the first 10,000 rows match")
    expect(page.locator("tr[data-seq]").first).to_contain_text("title 1001")
    page.get_by_role("button", name="Search further").click()
    expect(page.locator("tr[data-seq='10001']")).to_be_visible()
    expect(page.locator("tr[data-seq='10901']")).to_be_visible()
    page.locator("[data-tick]").first.check()
    expect(page.locator("[data-chosen]")).to_have_text("1 selected")
    page.get_by_role("button", name="Select everything that matches").click()
    expect(page.locator("[data-chosen]")).to_have_text("Everything that matches is selected")
    page.locator("[data-bulk=reprocess]").click()
    expect(page.locator("#dialog-title")).to_have_text("Reprocess everything that matches?")
    expect(page.locator("#dialog")).to_contain_text("1 match in the first 10,000 rows")


def test_value_that_comes_late_is_looked_for_step_by_step(
    long_job: tuple[str, int], open_as: OpenAs
) -> None:
    name, job_id = long_job
    page = open_as(name, f"/jobs/{job_id}?q=title:*99999")
    expect(page.locator("tbody.further")).to_contain_text("No matches in these 10,000 rows.")
    further = page.get_by_role("button", name="Search further")
    for _ in range(8):
        further.click()
        expect(further).not_to_be_focused()  # it is another one
    further.click()
    expect(page.locator("tr[data-seq]")).to_have_attribute("data-seq", "99999")


def test_columns_can_be_chosen(ada: str, site: Site, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["one", "two"], [DONE])
    page = open_as(ada, f"/jobs/{job_id}")
    page.get_by_text("Columns").click()
    page.get_by_label("length").uncheck()
    page.get_by_role("button", name="Apply").click()
    page.wait_for_url("**columns=title*")
    expect(page.locator("table.grid thead")).not_to_contain_text("length")


def _reprocess_all(page: Page, count: int) -> None:
    """What is chosen, errors that never pass too, until the operation is done."""
    page.locator("[data-bulk=reprocess]").click()
    expect(page.locator("#dialog-title")).to_have_text(f"Reprocess {count} items?")
    page.get_by_label("Include permanent errors").check()
    page.get_by_role("button", name=f"Reprocess {count}").click()
    page.wait_for_url("**/operations/*")
    expect(page.locator("#operation .badge")).to_have_text("done")
    expect(page.locator("#operation")).to_contain_text(f"{count}")


def test_everything_that_matches_is_reprocessed_after_a_question_in_numbers(
    ada: str, site: Site, open_as: OpenAs
) -> None:
    job_id = site.job(ada, [f"broken {n}" for n in range(150)] + ["fine"])
    page = open_as(ada, f"/jobs/{job_id}")
    expect(page.locator("#job-head .badge").first).to_have_text("done")
    page.goto(f"/jobs/{job_id}?q=status:ERROR")
    expect(page.locator(".matching")).to_have_text("150 match")
    page.locator("[data-tick]").first.check()
    expect(page.locator("[data-chosen]")).to_have_text("1 selected")
    page.get_by_role("button", name="Select all 150 that match").click()
    expect(page.locator("[data-chosen]")).to_have_text("All 150 matching rows are selected")
    _reprocess_all(page, 150)
    page.goto(f"/jobs/{job_id}/audit")
    expect(page.locator(".timeline")).to_contain_text("reprocess")


def test_everything_is_reprocessed_whose_column_holds_a_value(
    ada: str, site: Site, open_as: OpenAs
) -> None:
    titles = ["broken oak", "broken elm", "oak", "elm"] * 10
    job_id = site.job(ada, titles)
    page = open_as(ada, f"/jobs/{job_id}")
    expect(page.locator("#job-head .badge").first).to_have_text("done")
    page.goto(f"/jobs/{job_id}?q=status:ERROR title:*oak#rows=all")
    _reprocess_all(page, 10)


def test_export_takes_the_filter_along(ada: str, site: Site, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["oak", "elm", "old oak"], [DONE])
    page = open_as(ada, f"/jobs/{job_id}?q=title:*oak")
    page.keyboard.press("e")
    expect(page.locator("select[name=statuses]")).to_have_value("matching")
    page.get_by_role("radio", name="CSV").check()
    page.locator("#dialog").get_by_role("button", name="Export").click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    lines = download.value.path().read_text().splitlines()
    assert [line.split(",")[1] for line in lines] == ["title", "oak", "old oak"]
    page.goto("/exports")
    expect(page.locator("tr[data-row]").first).to_contain_text("values title: *oak")


def test_chosen_rows_still_open_are_left_alone(ada: str, site: Site, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["one", "two", "three"], pipeline="held")
    site.let_go(job_id, 1)
    page = open_as(ada, f"/jobs/{job_id}?q=status:DONE")
    page.locator("tr[data-seq]").wait_for()
    page.goto(f"/jobs/{job_id}#rows=1,2,3")
    page.locator("[data-bulk=reprocess]").click()
    page.get_by_role("button", name="Reprocess 3").click()
    expect(page.locator("#notes")).to_contain_text("2 were still open and left unchanged.")
    site.let_go(job_id, 3)


def test_chosen_rows_are_reprocessed(ada: str, site: Site, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["broken", "fine", "missing"])
    page = open_as(ada, f"/jobs/{job_id}")
    expect(page.locator("#job-head .badge").first).to_have_text("done")
    page.goto(f"/jobs/{job_id}#rows=1,3")
    expect(page.locator("[data-chosen]")).to_have_text("2 selected")
    page.locator("[data-bulk=reprocess]").click()
    expect(page.locator("#dialog-title")).to_have_text("Reprocess 2 items?")
    page.get_by_role("button", name="Reprocess 2").click()
    expect(page.locator("#notes")).to_contain_text("2 items will be processed again.")


def test_chosen_rows_are_skipped(ada: str, site: Site, open_as: OpenAs) -> None:
    # More than the worker takes before the job is paused.
    job_id = site.job(ada, [f"title {n}" for n in range(3000)], pipeline="held")
    site.run(site.parts.control(ada).pause(job_id))
    page = open_as(ada, f"/jobs/{job_id}#rows=2998,3000")
    page.locator("[data-bulk=skip]").click()
    expect(page.locator("#dialog-title")).to_have_text("Skip 2 items?")
    page.get_by_label("Reason, for the audit log").fill("not ours")
    page.get_by_role("button", name="Skip 2").click()
    expect(page.locator("#notes")).to_contain_text("2 items skipped")
    page.goto(f"/jobs/{job_id}?q=status:SKIPPED")
    expect(page.locator("tr[data-seq]").first).to_contain_text("not ours")


def test_cancelling_shows_what_it_will_affect(ada: str, site: Site, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["one", "two"], pipeline="held")
    page = open_as(ada, f"/jobs/{job_id}")
    page.keyboard.press("c")
    expect(page.locator("#dialog")).to_contain_text("open items will be skipped")
    page.get_by_role("button", name="Cancel job").click()
    expect(page.locator("#job-head .badge").first).to_have_text("cancelled")
    site.let_go(job_id, 2)
