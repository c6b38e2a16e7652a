"""A session that ends while its page is open: people log in again and continue where they were."""

from __future__ import annotations

import pytest
from playwright.sync_api import Page, expect

from tests.store.checks import execute
from tests.web.conftest import OpenAs, Watch
from tests.web.site import Site

PASSWORD = "a long password of the test"


@pytest.fixture
def expiring(site: Site, ada: str, watch: Watch) -> str:
    """An operator with a password."""
    name = f"{ada}-pw"
    site.add_user(name, password=PASSWORD)
    watch.expected = ("401",)  # of the stream of live counters
    return name


def _expire(site: Site, name: str) -> None:
    query = (
        f"update sessions set expires_at = '2020-01-01T00:00:00.000Z' where user_name = '{name}'"
    )
    site.run(execute(site.parts.store, query))


def _log_in_again(page: Page, name: str) -> None:
    page.get_by_label("Name").fill(name)
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def test_action_asks_for_a_login_and_leads_back_to_the_page(
    site: Site, expiring: str, open_as: OpenAs
) -> None:
    job_id = site.job(expiring, ["one", "two"], pipeline="nobody-works")
    page = open_as(expiring, f"/jobs/{job_id}")
    _expire(site, expiring)
    page.get_by_role("button", name="Pause").click()
    _log_in_again(page, expiring)
    page.wait_for_url(f"{site.url}/jobs/{job_id}")
    assert site.run(site.parts.store.reads.job(job_id)).state == "RUNNING"
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#job-head .badge").first).to_have_text("paused")


def test_further_rows_ask_for_a_login_and_lead_back_to_the_list(
    site: Site, expiring: str, open_as: OpenAs
) -> None:
    job_id = site.job(expiring, [f"title {n}" for n in range(300)], pipeline="nobody-works")
    page = open_as(expiring, f"/jobs/{job_id}?q=status:PENDING")
    expect(page.locator("tr[data-seq]").first).to_be_visible()
    _expire(site, expiring)
    page.evaluate("window.scrollTo(0, document.body.scrollHeight)")
    _log_in_again(page, expiring)
    page.wait_for_url(f"{site.url}/jobs/{job_id}?q=status:PENDING")
