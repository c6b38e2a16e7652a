"""The pages of a fleet, whose workers are told by messages what to do."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from tests.rabbitmq import RabbitServer
from tests.separate_hosts import Hosts, hosts_of_fleet


@pytest.fixture
def hosts(
    postgres_url: str, broker_url: str, rabbit_server: RabbitServer, tmp_path: Path
) -> Iterator[Hosts]:
    with hosts_of_fleet(postgres_url, broker_url, rabbit_server, tmp_path) as opened:
        yield opened


def test_upload_moves_without_a_reload_and_is_exported(
    hosts: Hosts, browser: Browser, tmp_path: Path
) -> None:
    server, client = hosts.api()
    (link,) = re.findall(r"http://\S+/login/\S+", server.said())
    path = tmp_path / "list.csv"
    path.write_text("title\n" + "".join(f"row {number}\n" for number in range(100)))
    context = browser.new_context(base_url=str(client.base_url))
    context.set_default_timeout(60_000)
    page = context.new_page()
    page.goto(link)
    page.get_by_role("button", name="Log in").click()
    page.wait_for_url("**/")
    page.goto("/new?pipeline=lengths")
    page.set_input_files("input[type=file]", path)
    page.wait_for_url("**/new/files/**")
    page.get_by_role("button", name="Start job").click()
    page.wait_for_url("**/jobs/*")
    head = page.locator("#job-head")
    expect(head).to_contain_text("no live worker has the pipeline lengths")

    hosts.relay()
    hosts.worker()
    expect(head).to_contain_text("100 of 100")
    expect(head.locator(".badge").first).to_have_text("done")

    page.get_by_role("link", name="Export …").click()
    page.get_by_role("radio", name="CSV").check()
    page.get_by_role("button", name="Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    with Path(download.value.path()).open(encoding="utf-8-sig", newline="") as file:
        assert {row["status"] for row in csv.DictReader(file)} == {"DONE"}
    context.close()
