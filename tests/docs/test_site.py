"""The documentation site: every link leads somewhere, and it has the pages of each extension."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from holdfast.store.extension_folders import extension_folders

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.slow
def test_site_is_built_without_a_warning_and_has_the_pages_of_extensions(tmp_path: Path) -> None:
    built = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert built.returncode == 0, built.stderr
    navigation = (tmp_path / "index.html").read_text()
    for name, folder in extension_folders().items():
        pages = [page.relative_to(folder / "docs") for page in (folder / "docs").rglob("*.md")]
        assert pages, f"{name} has docs"
        for page in pages:
            path = f"extensions/{name}/{page.with_suffix('.html')}"
            assert (tmp_path / path).is_file() and path in navigation


def test_start_page_leads_to_every_page() -> None:
    start = (ROOT / "docs" / "index.md").read_text()
    pages = [page.relative_to(ROOT / "docs") for page in (ROOT / "docs").rglob("*.md")]
    for name, folder in extension_folders().items():
        docs = folder / "docs"
        pages += [Path("extensions", name, page.relative_to(docs)) for page in docs.rglob("*.md")]
    listed = [page for page in pages if page.parent.name != "adr" and page != Path("index.md")]
    assert [page for page in listed if f"({page})" not in start] == []
