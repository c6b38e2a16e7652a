"""Everything by keyboard."""

from __future__ import annotations

from playwright.sync_api import expect

from holdfast.model import ItemStatus
from tests.web.conftest import OpenAs
from tests.web.site import Site

DONE = ItemStatus.DONE


def test_g_and_a_letter_go_to_a_page(ada: str, open_as: OpenAs) -> None:
    page = open_as(ada, "/")
    page.keyboard.press("g")
    page.keyboard.press("j")
    page.wait_for_url("**/jobs")
    page.keyboard.press("g")
    page.keyboard.press("s")
    page.wait_for_url("**/streams")


def test_rows_are_walked_selected_and_opened(ada: str, site: Site, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["one", "two", "three"], [DONE])
    page = open_as(ada, f"/jobs/{job_id}")
    for key in "jjjkx":
        page.keyboard.press(key)
    expect(page.locator("tr.here")).to_have_attribute("data-seq", "2")
    expect(page.locator("[data-chosen]")).to_have_text("1 selected")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/jobs/{job_id}/items/2")
    page.keyboard.press("j")
    page.wait_for_url(f"**/jobs/{job_id}/items/3")


def test_p_pauses_and_resumes(ada: str, site: Site, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["one", "two"], pipeline="held")
    page = open_as(ada, f"/jobs/{job_id}")
    page.keyboard.press("p")
    expect(page.locator("#job-head .badge").first).to_have_text("paused")
    page.wait_for_load_state("load")  # keys are heard once the new page's scripts run
    page.keyboard.press("p")
    expect(page.locator("#job-head .badge").first).to_have_text("running")
    site.let_go(job_id, 2)


def test_question_mark_lists_the_keys(ada: str, open_as: OpenAs) -> None:
    page = open_as(ada, "/jobs")
    page.keyboard.press("?")
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.get_by_role("heading", name="Keyboard shortcuts")).to_be_hidden()


def test_letters_in_a_field_are_text(ada: str, site: Site, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["one"], [DONE])
    page = open_as(ada, f"/jobs/{job_id}")
    page.keyboard.press("/")
    page.keyboard.type("jxe?")
    expect(page.locator("#filter")).to_have_value("jxe?")
    expect(page.locator("dialog[open]")).to_have_count(0)


def test_e_asks_for_an_export(ada: str, site: Site, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["one"], [DONE])
    page = open_as(ada, f"/jobs/{job_id}")
    page.keyboard.press("e")
    expect(page.locator("#dialog-title")).to_contain_text("Export")


def test_first_tab_skips_to_the_content(ada: str, open_as: OpenAs) -> None:
    page = open_as(ada, "/jobs")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#content")).to_be_focused()
