"""From an uploaded file to a file with the results."""

from __future__ import annotations

import csv
from pathlib import Path
from zipfile import ZipFile

from playwright.sync_api import expect

from tests.pictures import png
from tests.web.conftest import OpenAs, Watch

LIST = "Product title;Brand\nchair;ACME\nmissing;ACME\nbroken leg;ACME\n=SUM(A1);ACME\n"


def test_preview_and_dry_run_of_many_columns_scroll_within_the_page(
    ada: str, open_as: OpenAs, tmp_path: Path
) -> None:
    path = tmp_path / "wide.csv"
    names = ["title", *(f"A rather long name of column {number}" for number in range(30))]
    path.write_text(f"{','.join(names)}\n{','.join(['broken leg'] * 31)}\n", encoding="utf-8")
    page = open_as(ada, "/new?pipeline=lengths")
    page.set_input_files("input[type=file]", path)
    page.wait_for_url("**/new/files/**")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#dry-run tbody tr")).to_have_count(1)
    for width in (1360, 390):
        page.set_viewport_size({"width": width, "height": 844})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_upload_to_export(ada: str, open_as: OpenAs, tmp_path: Path) -> None:
    path = tmp_path / "list.csv"
    path.write_text(LIST, encoding="utf-8")
    page = open_as(ada, "/new?pipeline=lengths")
    page.set_input_files("input[type=file]", path)
    page.wait_for_url("**/new/files/**")

    expect(page.get_by_text("semicolon")).to_be_visible()
    expect(page.locator("dd", has_text="utf-8")).to_be_visible()
    page.get_by_label("New name of Product title").select_option("title")

    page.get_by_role("button", name="Dry run").click()
    tried = page.locator("#dry-run tbody tr")
    expect(tried).to_have_count(4)
    expect(tried.nth(0)).to_contain_text("chair")
    expect(tried.nth(2)).to_contain_text("PARSE_ERROR")

    page.get_by_role("button", name="Start job").click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator("#job-head .badge").first).to_have_text("done")
    expect(page.locator("#job-head")).to_contain_text("4 of 4")
    expect(page.locator("#job-head")).to_contain_text("Read as CSV, utf-8, delimiter ';'")
    expect(page.locator("#job-head")).to_contain_text("'Product title' is read as 'title'")
    expect(page.get_by_role("alert")).to_contain_text("1 item failed with PARSE_ERROR")
    rows = page.locator("tr[data-seq]")
    expect(rows).to_have_count(4)
    expect(rows.nth(0)).to_contain_text("chair")
    expect(rows.nth(1)).to_contain_text("not found")

    page.get_by_role("link", name="Export …").click()
    page.get_by_role("radio", name="CSV").check()
    page.get_by_role("button", name="Export", exact=True).click()
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    with Path(download.value.path()).open(encoding="utf-8-sig", newline="") as file:
        table = list(csv.DictReader(file))
    assert [row["status"] for row in table] == ["DONE", "NOT_FOUND", "ERROR", "DONE"]
    assert table[0]["title"] == "chair" and table[0]["length"] == "5"
    assert table[3]["title"] == "'=SUM(A1)"


def test_file_that_is_refused_says_why_in_sentences(
    ada: str, open_as: OpenAs, watch: Watch, tmp_path: Path
) -> None:
    watch.expected = ("422",)
    path = tmp_path / "two.zip"
    with ZipFile(path, "w") as archive:
        archive.writestr("a.csv", "title\noak\n")
        archive.writestr("b.csv", "title\npine\n")
    page = open_as(ada, "/new?pipeline=lengths")
    page.set_input_files("input[type=file]", path)
    message = page.locator("[data-message]")
    expect(message).to_contain_text("not one table: a.csv, b.csv. Put one table into it")


def test_options_that_the_pipeline_declares_are_fields_of_the_form(
    ada: str, open_as: OpenAs, tmp_path: Path
) -> None:
    path = tmp_path / "titles.csv"
    path.write_text("title\noak\n", encoding="utf-8")
    page = open_as(ada, "/new?pipeline=repeated")
    page.set_input_files("input[type=file]", path)
    page.wait_for_url("**/new/files/**")
    expect(page.get_by_label("times (optional) How often")).to_have_attribute("placeholder", "2")
    page.get_by_label("times (optional) How often").fill("3")
    page.get_by_label("between").select_option("+")
    page.get_by_label("loud").select_option("true")
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#dry-run tbody tr")).to_contain_text("OAK+OAK+OAK")
    page.get_by_role("button", name="Start job").click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator("tr[data-seq]")).to_contain_text("OAK+OAK+OAK")


def test_images_are_looked_at_and_become_items(ada: str, open_as: OpenAs, tmp_path: Path) -> None:
    paths = [tmp_path / "oak chair.png", tmp_path / "stool.png"]
    for number, path in enumerate(paths):
        path.write_bytes(png(40 + number, 30))
    page = open_as(ada, "/new?pipeline=pictures")
    page.set_input_files("input[type=file]", paths)
    page.wait_for_url("**/new/images*")
    shown = page.locator(".images li")
    expect(shown).to_have_count(2)
    expect(shown.first).to_contain_text("40 × 30")
    for number in range(2):  # not by a script: the page's policy allows none while it waits
        image = page.locator(".images img").nth(number)
        expect(image).to_have_js_property("naturalWidth", 40 + number)
    page.get_by_role("button", name="Dry run").click()
    expect(page.locator("#dry-run tbody tr")).to_have_count(2)
    expect(page.locator("#dry-run tbody tr").first).to_contain_text("done")
    page.get_by_role("button", name="Start job").click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator("#job-head")).to_contain_text("2 of 2")
    expect(page.locator("tr[data-seq]").first).to_contain_text("oak chair.png")


def test_broken_image_is_refused_with_a_reason(
    ada: str, open_as: OpenAs, tmp_path: Path, watch: Watch
) -> None:
    watch.expected = ("422",)
    (tmp_path / "photo.png").write_bytes(png()[:40])
    page = open_as(ada, "/new?pipeline=pictures")
    page.set_input_files("input[type=file]", tmp_path / "photo.png")
    expect(page.locator("[data-message]")).to_contain_text("photo.png is a damaged image")


def test_another_pipeline_is_chosen_for_the_same_file(
    ada: str, open_as: OpenAs, tmp_path: Path
) -> None:
    (tmp_path / "list.csv").write_text("title\nchair\n", encoding="utf-8")
    page = open_as(ada, "/new?pipeline=lengths")
    page.set_input_files("input[type=file]", tmp_path / "list.csv")
    page.wait_for_url("**/new/files/**")
    page.get_by_text("Options and limits").click()
    page.locator("[data-go-pipeline]").select_option("repeated")
    page.wait_for_url("**pipeline=repeated*")
    expect(page.get_by_label("between")).to_be_visible()


def test_what_is_not_a_table_is_refused_with_a_reason(
    ada: str, open_as: OpenAs, tmp_path: Path, watch: Watch
) -> None:
    watch.expected = ("422",)
    path = tmp_path / "list.csv"
    path.write_bytes(b"%PDF-1.7 not a table")
    page = open_as(ada, "/new?pipeline=lengths")
    page.set_input_files("input[type=file]", path)
    expect(page.locator("[data-message]")).to_contain_text("PDF")


def test_renamed_column_is_what_the_pipeline_sees(
    ada: str, open_as: OpenAs, tmp_path: Path
) -> None:
    path = tmp_path / "other.csv"
    path.write_text("what\nchair\n", encoding="utf-8")
    page = open_as(ada, "/new?pipeline=lengths")
    page.set_input_files("input[type=file]", path)
    page.wait_for_url("**/new/files/**")
    expect(page.get_by_text("No column for title")).to_be_visible()
    page.get_by_label("New name of what").select_option("title")
    expect(page.get_by_text("No column for title")).to_be_hidden()
    page.get_by_role("button", name="Start job").click()
    page.wait_for_url("**/jobs/*")
    expect(page.locator("#job-head")).to_contain_text("1 of 1")
    page.locator("tr[data-seq] a.open").click()
    expect(page.locator("pre").first).to_contain_text('"title": "chair"')
    expect(page.locator("pre").last).to_contain_text('"what": "chair"')  # as it came
