"""A hook of MkDocs: the `docs` folder of each installed extension becomes extensions/NAME/ of the
site, with a section in the navigation. Pages are in order of their names, index.md first.

Links between these folders and docs/ are written as they work in the repository."""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from holdfast.kernel.database.extension_folders import extension_folders

_LINK = re.compile(r"\]\((?P<path>[^)#\s:]+\.md)")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """A page without a title in the navigation has that of its first heading."""
    sections: list[Any] = []
    for name, folder in _folders():
        pages = sorted(folder.rglob("*.md"), key=lambda page: (page.stem != "index", page))
        uris = [_uri(name, folder, page) for page in pages]
        sections.append({name.capitalize(): uris})
    if sections and config.nav is not None:
        config.nav.insert(_before_glossary(config.nav), {"Extensions": sections})
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for name, folder in _folders():
        for path in sorted(each for each in folder.rglob("*") if each.is_file()):
            uri = _uri(name, folder, path)
            files.append(File.generated(config, uri, abs_src_path=str(path)))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """A link to a file of the repository becomes one to its page of the site."""
    pages = {
        Path(file.abs_src_path).resolve(): file.src_uri
        for file in files.documentation_pages()
        if file.abs_src_path is not None
    }
    place, uri = Path(str(page.file.abs_src_path)).parent, posixpath.dirname(page.file.src_uri)

    def on_site(link: re.Match[str]) -> str:
        target = pages.get((place / link["path"]).resolve())
        return link[0] if target is None else f"]({posixpath.relpath(target, uri or '.')}"

    return _LINK.sub(on_site, markdown)


def _folders() -> Iterator[tuple[str, Path]]:
    for name, package in extension_folders().items():
        if (package / "docs").is_dir():
            yield name, package / "docs"


def _uri(name: str, folder: Path, path: Path) -> str:
    return f"extensions/{name}/{path.relative_to(folder).as_posix()}"


def _before_glossary(nav: list[Any]) -> int:
    titles = [next(iter(section)) for section in nav]
    return titles.index("Glossary")
