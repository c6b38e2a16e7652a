"""Pages that change by themselves while something happens."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.web.conftest import OpenAs
from tests.web.site import Site


def test_progress_moves_without_a_reload(site: Site, ada: str, open_as: OpenAs) -> None:
    job_id = site.job(ada, [f"title {n}" for n in range(40)], pipeline="held")
    page = open_as(ada, f"/jobs/{job_id}")
    page.evaluate("window.stayed = true")
    seen = page.locator("#job-head [data-fill=finished]")
    expect(seen).to_have_text("0")
    site.let_go(job_id, 10)
    expect(seen).to_have_text("10")
    expect(page.locator(".tabs [data-count=open]")).to_have_text("30")
    site.let_go(job_id, 5)
    expect(seen).to_have_text("15")
    assert page.evaluate("window.stayed")


def test_job_that_ends_says_so(site: Site, ada: str, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["one", "two"], pipeline="held")
    page = open_as(ada, f"/jobs/{job_id}")
    expect(page.locator("#job-head .badge").first).to_have_text("running")
    site.let_go(job_id, 2)
    expect(page.locator("#job-head .badge").first).to_have_text("done")
    expect(page.locator("#job-head")).to_contain_text("2 of 2")


def test_pause_can_be_taken_back(site: Site, ada: str, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["one", "two"], pipeline="held")
    page = open_as(ada, f"/jobs/{job_id}")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#job-head .badge").first).to_have_text("paused")
    expect(page.get_by_text("Nothing starts until someone resumes it.")).to_be_visible()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("#job-head .badge").first).to_have_text("running")
    site.let_go(job_id, 2)


def test_overview_shows_what_runs(site: Site, ada: str, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["one", "two"], pipeline="held", name="now.csv")
    page = open_as(ada, "/")
    row = page.locator(f"li[data-job='{job_id}']")
    expect(row).to_contain_text("now.csv")
    expect(row.locator("[data-fill=finished]")).to_have_text("0")
    site.let_go(job_id, 1)
    expect(row.locator("[data-fill=finished]")).to_have_text("1")
    site.let_go(job_id, 1)


def test_list_of_jobs_is_live(site: Site, ada: str, open_as: OpenAs) -> None:
    job_id = site.job(ada, ["one", "two", "three"], pipeline="held")
    page = open_as(ada, "/jobs")
    bar = page.locator(f"tr[data-job='{job_id}'] [data-part=done]")
    expect(bar).to_have_attribute("width", re.compile(r"^0(\.0)?$"))
    site.let_go(job_id, 3)
    expect(bar).to_have_attribute("width", "100")
