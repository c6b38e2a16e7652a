"""Checks whether the parser can read a page in reasonable time.

For nested elements it takes quadratic time, and each paragraph after open formatting elements
repeats all of them. No page of a listing needs either, so tags are counted before.
"""

from __future__ import annotations

import re
from collections import Counter

_TAG = re.compile(r"<(/?)([a-zA-Z][a-zA-Z0-9]{0,20})")
_DEEPEST = 1_000
_MOST_REPEATED = 3_000_000
#: Never open for long: they have no content, or the next of their kind ends them.
_FLAT = frozenset({
    "area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "param", "source",
    "track", "wbr", "html", "head", "body", "p", "li", "dt", "dd", "td", "th", "tr", "tbody",
    "thead", "tfoot", "option", "optgroup", "colgroup", "caption",
})  # fmt: skip
_FORMATTING = frozenset({
    "a", "b", "big", "code", "em", "font", "i", "nobr", "s", "small", "strike", "strong", "tt", "u",
})  # fmt: skip


def is_too_nested(html: str) -> bool:
    """Whether it is nested too deep, in one pass.

    Elements that faulty pages leave open count as nested, because the parser nests them."""
    open_tags: Counter[str] = Counter()
    depth = formatting = repeated = 0
    for tag in _TAG.finditer(html):
        name = tag[2].lower()
        repeated += formatting
        if repeated > _MOST_REPEATED:
            return True
        if name in _FLAT or (tag[1] and not open_tags[name]):
            continue
        step = -1 if tag[1] else 1
        open_tags[name] += step
        depth += step
        formatting += step if name in _FORMATTING else 0
        if depth > _DEEPEST:
            return True
    return False
