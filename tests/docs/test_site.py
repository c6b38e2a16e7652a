"""The documentation site: every link leads somewhere, and it has the pages of each extension."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.kernel.database.extension_folders import extension_folders

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that it was built into, without a warning."""
    folder = tmp_path_factory.mktemp("site")
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    return folder


@pytest.mark.slow
def test_site_has_the_pages_of_extensions(site: Path) -> None:
    navigation = (site / "index.html").read_text()
    for name, folder in extension_folders().items():
        pages = [page.relative_to(folder / "docs") for page in (folder / "docs").rglob("*.md")]
        assert pages, f"{name} has docs"
        for page in pages:
            path = f"extensions/{name}/{page.with_suffix('.html')}"
            assert (site / path).is_file() and path in navigation


@pytest.mark.slow
def test_links_between_the_core_and_extensions_are_those_of_the_site(site: Path) -> None:
    """In the pages they are written as they work in the repository."""
    start = (site / "index.html").read_text()
    guide = (site / "extensions" / "catalog" / "price-a-list.html").read_text()
    assert 'href="extensions/catalog/price-a-list.html"' in start.split("<article")[1]
    assert 'href="../../how-to/be-polite.html"' in guide.split("<article")[1]


def test_start_page_leads_to_every_page() -> None:
    docs = ROOT / "docs"
    start = (docs / "index.md").read_text()
    folders = [docs, *(folder / "docs" for folder in extension_folders().values())]
    pages = [page for folder in folders for page in folder.rglob("*.md")]
    listed = [page for page in pages if page.parent.name != "adr" and page != docs / "index.md"]
    assert [page for page in listed if f"({os.path.relpath(page, docs)})" not in start] == []
