"""Standing jobs on the pages: opened, found while idle, given the rows of files."""

from __future__ import annotations

import re
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.web.conftest import OpenAs, Watch
from tests.web.site import Site


def test_standing_job_is_opened_and_found_while_idle(ada: str, open_as: OpenAs) -> None:
    page = open_as(ada, "/new?pipeline=repeated")
    standing = page.locator("section", has_text="Or records that come later")
    standing.get_by_label("times (optional) How often").fill("3")
    standing.get_by_role("button", name="Keep a job open for records").click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator("#job-head .badge").first).to_have_text("idle")
    number = page.url.rpartition("/")[2]

    page.goto("/new?pipeline=repeated")
    expect(page.get_by_text("Your standing job of repeated is open")).to_be_visible()
    expect(page.get_by_role("link", name=f"job {number}")).to_be_visible()

    page.goto("/jobs")
    page.get_by_label("Filter by state").get_by_role("link", name="idle").click()
    page.wait_for_url(re.compile(r"/jobs\?states=IDLE$"))
    expect(page.locator("tr[data-job]")).to_have_count(1)
    expect(page.locator("tr[data-job] .badge")).to_have_text("idle")
    expect(page.get_by_role("link", name="idle")).to_have_attribute("aria-current", "true")


def test_rows_of_a_file_are_added_to_a_standing_job(
    ada: str, open_as: OpenAs, tmp_path: Path
) -> None:
    path = tmp_path / "more.csv"
    path.write_text("Product title;Nr\nchair;1\nmissing;2\nchair;1\n", encoding="utf-8")
    page = open_as(ada, "/new?pipeline=lengths")
    page.get_by_role("button", name="Keep a job open for records").click()
    page.wait_for_url("**/jobs/*")
    job = page.url
    expect(page.get_by_text("holdfast add")).to_be_visible()
    page.get_by_role("link", name="Add a file …").click()
    page.wait_for_url("**/new?into=*")
    expect(page.get_by_role("heading", name="Add a file to job")).to_be_visible()
    expect(page.get_by_text("Or records that come later")).to_have_count(0)
    page.set_input_files("input[type=file]", path)
    page.wait_for_url("**/new/files/**")
    expect(page.get_by_role("button", name="Start job")).to_have_count(0)
    page.get_by_text("Change how the file is read").click()
    page.get_by_role("button", name="Re-read file").click()
    page.wait_for_url(re.compile("into="))
    page.get_by_label("New name of Product title").select_option("title")
    page.get_by_label("Key (optional)").select_option("Nr")
    page.get_by_role("button", name="Add rows to job").click()
    page.wait_for_url(job)
    expect(page.get_by_text("2 records added, 1 already known.")).to_be_visible()
    rows = page.locator("tr[data-seq]")
    expect(rows).to_have_count(2)
    expect(page.locator("#job-head .badge").first).to_have_text("idle")
    expect(page.locator("#job-head")).to_contain_text("2 of 2")
    page.reload()
    expect(rows.nth(0)).to_contain_text("chair")
    expect(rows.nth(1)).to_contain_text("not found")


def test_column_that_keeps_its_name_in_the_preview_is_not_read_as_a_field(
    ada: str, open_as: OpenAs, tmp_path: Path
) -> None:
    path = tmp_path / "more.csv"
    path.write_text("Title;other\nmissing;chair\n", encoding="utf-8")
    page = open_as(ada, "/new?pipeline=lengths")
    page.get_by_role("button", name="Keep a job open for records").click()
    page.wait_for_url("**/jobs/*")
    job = page.url
    page.get_by_role("link", name="Add a file …").click()
    page.wait_for_url("**/new?into=*")
    page.set_input_files("input[type=file]", path)
    page.wait_for_url("**/new/files/**")
    expect(page.get_by_label("New name of Title")).to_have_value("title")
    page.get_by_label("New name of Title").select_option("keep name")
    page.get_by_label("New name of other").select_option("title")
    page.get_by_role("button", name="Add rows to job").click()
    page.wait_for_url(job)
    row = page.locator("tr[data-seq]")
    expect(row).to_contain_text("done")
    expect(row).to_contain_text("chair")
    expect(row).to_contain_text("missing, chair")  # the input, as it came
    expect(row).not_to_contain_text("{")


def test_state_changes_in_the_list_and_on_the_page_while_one_looks(
    ada: str, site: Site, open_as: OpenAs
) -> None:
    page = open_as(ada, "/new?pipeline=held")
    page.get_by_role("button", name="Keep a job open for records").click()
    page.wait_for_url("**/jobs/*")
    job_id = int(page.url.rpartition("/")[2])
    listed = open_as(ada, "/jobs")
    token = site.run(site.parts.accounts.make_token(ada, "test", None, "tester")).value

    def add(page: Page) -> None:
        headers = {"Authorization": f"Bearer {token}"}
        path = f"/api/jobs/{job_id}/items"
        assert page.request.post(path, data=[{"title": "oak"}], headers=headers).ok

    badge = listed.locator(f'tr[data-job="{job_id}"] .badge')
    expect(badge).to_have_text("idle")
    add(listed)
    expect(badge).to_have_text("running")
    expect(page.locator("#job-head .badge").first).to_have_text("running")
    site.let_go(job_id, 1)
    expect(badge).to_have_text("idle")
    expect(page.locator("#job-head .badge").first).to_have_text("idle")
    expect(page.locator("tr[data-seq]")).to_contain_text("done")


def test_admin_adds_a_file_to_the_standing_job_of_another(
    ada: str, root: str, open_as: OpenAs, tmp_path: Path
) -> None:
    path = tmp_path / "more.csv"
    path.write_text("title\nchair\n", encoding="utf-8")
    page = open_as(ada, "/new?pipeline=lengths")
    page.get_by_role("button", name="Keep a job open for records").click()
    page.wait_for_url("**/jobs/*")
    job = page.url
    page = open_as(root, job)
    page.get_by_role("link", name="Add a file …").click()
    page.wait_for_url("**/new?into=*")
    page.set_input_files("input[type=file]", path)
    page.wait_for_url("**/new/files/**")
    page.get_by_role("button", name="Add rows to job").click()
    page.wait_for_url(job)
    expect(page.get_by_text("1 record added, 0 already known.")).to_be_visible()


def test_file_for_a_job_that_accepts_none_is_refused(
    ada: str, site: Site, open_as: OpenAs, watch: Watch
) -> None:
    watch.expected = ("409",)
    job_id = site.job(ada, ["oak"])
    page = open_as(ada, f"/new?into={job_id}")
    expect(page.get_by_text("is not a standing job and accepts no records")).to_be_visible()


def test_chart_of_one_moment_shows_ten_seconds(ada: str, open_as: OpenAs) -> None:
    page = open_as(ada, "/jobs")
    drawn = "import('/static/charts.js').then(charts => charts.timeRange({data: [[5, %s]]}, 5))"
    assert [page.evaluate(drawn % last) for last in (5, 60)] == [[5, 15], [5, 60]]
