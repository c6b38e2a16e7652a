"""Reads schema.org data in the attributes of a page: itemscope, itemtype and itemprop."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

_VOID = frozenset(("area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta",
                   "source", "track", "wbr"))  # fmt: skip
_VALUES = {"a": "href", "area": "href", "link": "href", "img": "src", "data": "value"}
_SILENT = frozenset(("script", "style", "template"))
_LONGEST = 2000
_MOST_TEXTS = 4  # within each other


@dataclass(slots=True)
class _Open:
    """An element that has not ended: the item that it began, or the property whose text it is."""

    tag: str
    item: dict[str, Any] | None = None
    owner: dict[str, Any] | None = None
    names: tuple[str, ...] = ()
    parts: list[str] = field(default_factory=list)
    room: int = _LONGEST


class _Items(HTMLParser):
    """Collects items.

    `top` are those that belong to no other, as the JSON-LD that would say the same."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.top: list[dict[str, Any]] = []
        self._open: list[_Open] = []
        self._tags: Counter[str] = Counter()
        self._items: list[dict[str, Any]] = []
        self._texts: list[_Open] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = dict(attrs)
        element = self._opened(tag, given)
        if tag in _VOID:
            return
        self._open.append(element)
        self._tags[tag] += 1
        if element.item is not None:
            self._items.append(element.item)
        elif element.names and len(self._texts) < _MOST_TEXTS:
            self._texts.append(element)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)  # only void elements end here

    def _opened(self, tag: str, given: dict[str, str | None]) -> _Open:
        owner = self._items[-1] if self._items else None
        names = tuple((given.get("itemprop") or "").split()) if owner is not None else ()
        if "itemscope" in given:
            item: dict[str, Any] = {"@type": (given.get("itemtype") or "").split()}
            if owner is None or not names:
                self.top.append(item)
            else:
                _add(owner, names, item)
            return _Open(tag, item)
        value = given.get("content", given.get(_VALUES.get(tag, "content")))
        if value is None:
            return _Open(tag, owner=owner, names=names)
        if owner is not None:
            _add(owner, names, value)
        return _Open(tag)

    def handle_endtag(self, tag: str) -> None:
        """Ends an element, and whatever was left open within it."""
        while self._tags[tag]:
            element = self._open.pop()
            self._tags[element.tag] -= 1
            if element.item is not None:
                self._items.pop()
            elif self._texts and self._texts[-1] is element:
                self._texts.pop()
                if element.owner is not None:
                    _add(element.owner, element.names, " ".join("".join(element.parts).split()))
            if element.tag == tag:
                return

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1].tag not in _SILENT:
            for element in self._texts:
                if element.room > 0:
                    element.parts.append(data[: element.room])
                    element.room -= len(data)


def _add(owner: dict[str, Any], names: tuple[str, ...], value: Any) -> None:
    """Adds a value: only the first text counts; items, such as offers, become a list."""
    for name in names:
        if name not in owner:
            owner[name] = value
        elif isinstance(value, dict):
            if not isinstance(owner[name], list):
                owner[name] = [owner[name]]
            owner[name].append(value)


def microdata(html: str) -> list[dict[str, Any]]:
    """Returns the items of a page that belong to no other, each with its properties."""
    parser = _Items()
    parser.feed(html)
    return parser.top
