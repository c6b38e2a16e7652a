"""The sources file: what it may say, and where each mistake is."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from holdfast.errors import InputError
from holdfast_regulations.commands import app
from holdfast_regulations.sources import Mode
from holdfast_regulations.sources_file import (
    SourcesFileError,
    parse_sources,
    read_sources,
    shipped_sources,
)
from tests.docs.described_commands import commands

GOOD = """\
[[source]]
slug = "a"
name = "A"
hosts = ["a.hr"]
verified = 2026-01-01
mode = "pagination"

[source.pagination]
url = "https://a.hr/vijesti"
parameter = "Page"
"""


def mistakes(text: str) -> list[tuple[int, str, str]]:
    with pytest.raises(SourcesFileError) as caught:
        parse_sources(text, "mine.toml")
    return [(m.line, m.field, m.message) for m in caught.value.mistakes]


def test_shipped_sources_are_sound_and_say_when_they_were_verified() -> None:
    sources = shipped_sources()
    assert {"narodne-novine", "porezna-uprava", "fina", "hzzo", "azop"} <= sources.keys()
    gazette = sources["narodne-novine"]
    assert gazette.mode is Mode.SITEMAP
    assert (gazette.gate.min_delay_seconds, gazette.gate.max_delay_seconds) == (5, 10)
    tax = sources["porezna-uprava"]
    assert (tax.gate.min_delay_seconds, tax.gate.max_delay_seconds) == (8, 15)
    assert tax.gate.concurrency == 1
    assert tax.hosts == ("porezna-uprava.gov.hr",)  # www does not resolve
    for source in sources.values():
        assert source.verified >= date(2026, 1, 11)
        assert source.caps.max_urls == 500


def test_file_of_a_user_is_read(tmp_path: Path) -> None:
    path = tmp_path / "sources.toml"
    path.write_text(GOOD)
    source = read_sources(path)["a"]
    assert source.pagination is not None
    assert source.pagination.stops == {"empty"}
    assert source.modes == (Mode.PAGINATION,)


def test_file_that_is_missing_or_not_text_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="cannot be read"):
        read_sources(tmp_path / "none.toml")
    (tmp_path / "latin.toml").write_bytes(b'name = "\xe8"')
    with pytest.raises(InputError, match="not UTF-8"):
        read_sources(tmp_path / "latin.toml")


@pytest.mark.parametrize(
    ("old", "new", "line", "field", "message"),
    [
        ("parameter", "paremeter", 10, "pagination.paremeter", "did you mean parameter?"),
        ('slug = "a"', 'slug = "a"\nincldue = []', 3, "incldue", "did you mean include?"),
        ('slug = "a"', "slug = 'a'\ninclude = ['(']", 3, "include", "not a regular expression"),
        ('slug = "a"', 'slug = "A b"', 2, "slug", "is 'A b'; it must be words of"),
        ('hosts = ["a.hr"]', 'hosts = ["https://a.hr/"]', 4, "hosts", "host name in lower case"),
        ('hosts = ["a.hr"]', "hosts = []", 4, "hosts", "is empty"),
        ('hosts = ["a.hr"]\n', "", 1, "hosts", "is missing"),
        ("2026-01-01", '"soon"', 5, "verified", "date"),
        ('mode = "pagination"', 'mode = "sitemap"', 1, "", "there is no [source.sitemap]"),
        (
            'mode = "pagination"',
            'mode = "crawl"',
            6,
            "mode",
            "is 'crawl'; it must be 'sitemap', 'archive'",
        ),
        ("https://a.hr/vijesti", "file:///etc/passwd", 9, "pagination.url", "http://"),
        ("https://a.hr/vijesti", "https://b.hr/vijesti", 1, "", "not among hosts"),
        ('parameter = "Page"', 'links = "a[["', 10, "pagination.links", "not a CSS selector"),
        (
            'parameter = "Page"',
            'template = "https://a.hr/{stranica}"',
            8,
            "pagination",
            "template must hold {page}",
        ),
        (
            "[source.pagination]",
            "[source.gate]\nmin_delay_seconds = 9\nmax_delay_seconds = 1\n[source.pagination]",
            8,
            "gate",
            "max_delay_seconds (1) is less than min_delay_seconds (9)",
        ),
        (
            "[source.pagination]",
            "[source.canonical]\nidentity = ['/(?P<year>\\d+)']\n[source.pagination]",
            9,
            "canonical.identity",
            "is missing",
        ),
        (
            "[source.pagination]",
            "[source.dates]\nurl = ['/\\d+']\n[source.pagination]",
            9,
            "dates.url",
            "group named year",
        ),
    ],
)
def test_mistake_is_named_with_line_and_field(
    old: str, new: str, line: int, field: str, message: str
) -> None:
    assert old in GOOD
    [(found_line, found_field, found_message)] = mistakes(GOOD.replace(old, new))
    assert (found_line, found_field) == (line, field)
    assert message in found_message


def test_two_sources_with_one_slug_are_refused() -> None:
    assert mistakes(GOOD + GOOD) == [
        (12, "slug", "'a' is the slug of another source, in line 2"),
    ]


def test_all_mistakes_are_shown_at_once_in_order() -> None:
    text = "[sorce]\nx = 1\n" + GOOD.replace("parameter", "paremeter").replace("name", "nmae")
    assert [(line, field) for line, field, _ in mistakes(text)] == [
        (1, "sorce"),
        (3, "name"),
        (5, "nmae"),
        (12, "pagination.paremeter"),
    ]


def test_file_that_is_not_toml_is_shown_with_its_line() -> None:
    [(line, field, message)] = mistakes(GOOD.replace('slug = "a"', "slug = "))
    assert (line, field) == (2, "")
    assert "is not TOML" in message


def test_file_without_a_source_is_refused() -> None:
    assert mistakes("# nothing\n") == [(1, "", "there is no [[source]]")]


def test_every_command_takes_a_sources_file() -> None:
    described = dict(commands(get_command(app)))
    assert {"backfill", "sources check", "sources list", "verify", "warc"} == described.keys()
    for name, command in described.items():
        options = {option for parameter in command.params for option in parameter.opts}
        assert "--sources" in options, name


def test_file_is_checked_by_either_name(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.toml", tmp_path / "bad.toml"
    good.write_text(GOOD)
    bad.write_text(GOOD.replace("slug =", "slig ="))
    runner = CliRunner()
    for words in ([str(good)], ["--sources", str(good)], []):
        assert runner.invoke(app, ["sources", "check", *words]).exit_code == 0
    checked = runner.invoke(app, ["sources", "check", "--sources", str(bad)])
    assert isinstance(checked.exception, SourcesFileError) and "slig" in str(checked.exception)
