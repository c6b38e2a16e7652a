"""Every relative link of every page leads somewhere, as read in the repository.

tests/docs/test_site.py checks the same links as the documentation site has them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
CODE = re.compile(r"^```.*?^```|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?![a-z]+:)([^)\s#]*)(?:#([^)\s]+))?")
HEADING = re.compile(r"^#+ +(.+?) *$", re.MULTILINE)


def pages() -> Iterator[Path]:
    for place in sorted(ROOT.iterdir()):
        if place.suffix == ".md":
            yield place
        elif place.is_dir() and not place.name.startswith(".") and place.name != "site":
            yield from sorted(place.rglob("*.md"))


def broken_links(page: Path) -> list[str]:
    broken = []
    for path, anchor in LINK.findall(CODE.sub("", page.read_text())):
        target = page.parent / path if path else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(f"{path}#{anchor}" if anchor else path)
    return broken


def anchors(page: Path) -> set[str]:
    """The headings as GitHub and MkDocs name them."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    headings = (
        re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading) for heading in HEADING.findall(text)
    )
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", [pytest.param(p, id=str(p.relative_to(ROOT))) for p in pages()])
def test_links_of_a_page_lead_to_files_and_headings(page: Path) -> None:
    assert broken_links(page) == []


def test_broken_links_are_found(tmp_path: Path) -> None:
    (tmp_path / "other.md").write_text("# A `word` & another\n")
    page = tmp_path / "page.md"
    page.write_text(
        "[a](other.md) [b](other.md#a-word--another) [c](https://a.example/x) `[d](none.md)`\n"
        "[e](none.md) [f](other.md#none) [g](#none)\n"
    )
    assert broken_links(page) == ["none.md", "other.md#none", "#none"]


def test_no_text_refers_to_a_paper_that_is_not_in_the_repository() -> None:
    paper = re.compile(r"\bdocument 0\d\d|[\"(]W\d+\b|\bof the document\W*\"\"\"", re.IGNORECASE)
    texts = [
        *pages(),
        *(path for name in ("src", "tests", "bench") for path in (ROOT / name).rglob("*.py")),
    ]
    found = {path for path in texts if paper.search(path.read_text())} - {Path(__file__)}
    assert found == set()
