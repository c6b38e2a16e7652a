"""Shows what changed between the versions of a text, for a page with its history.

Lines are compared first, then the words of lines that changed. The texts are not ours, so the work
is counted: what would take too long is shown as replaced as a whole.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal

_LINES = re.compile(r"[^\n]*\n|[^\n]+")
_WORDS = re.compile(r"\s+|\S+")
_MOST_STEPS = 300_000  # for all versions of a text: about half a second
_MOST_CHARACTERS = 400_000  # of two versions

#: A stretch of the later text (`same`, `new`), or of the earlier one (`gone`).
Change = tuple[Literal["same", "gone", "new"], str]
#: From, to in the earlier; from, to in the later.
_Block = tuple[int, int, int, int]


async def compare_versions(texts: Sequence[str]) -> list[list[Change] | None]:
    """Compares each text after the first with the one before.

    The result is None if they are too long, or too many. It runs in a thread, because comparing
    takes time."""
    return await asyncio.to_thread(_compare_all, texts)


def _compare_all(texts: Sequence[str]) -> list[list[Change] | None]:
    steps = _Steps(_MOST_STEPS)
    return [
        list(compare(earlier, later, steps))
        if steps.left > 0 and len(earlier) + len(later) <= _MOST_CHARACTERS
        else None
        for later, earlier in pairwise(texts)
    ]


class _Steps:
    """How many steps are left."""

    def __init__(self, left: int) -> None:
        self.left = left


def compare(earlier: str, later: str, steps: _Steps | None = None) -> Iterator[Change]:
    steps = steps or _Steps(_MOST_STEPS)
    old, new = _LINES.findall(earlier), _LINES.findall(later)
    for kind, old_lines, new_lines in _changes(old, new, steps):
        if kind == "same":
            yield "same", new_lines
        else:
            yield from _compare_words(old_lines, new_lines, steps)


def _compare_words(earlier: str, later: str, steps: _Steps) -> Iterator[Change]:
    for kind, old, new in _changes(_WORDS.findall(earlier), _WORDS.findall(later), steps):
        if kind == "same":
            yield "same", new
        else:
            if old:
                yield "gone", old
            if new:
                yield "new", new


def _changes(
    old: Sequence[str], new: Sequence[str], steps: _Steps
) -> Iterator[tuple[Literal["same", "changed"], str, str]]:
    old_at = new_at = 0
    for old_from, old_to, new_from, new_to in _equal_blocks(old, new, steps):
        if old_from > old_at or new_from > new_at:
            yield "changed", "".join(old[old_at:old_from]), "".join(new[new_at:new_from])
        if old_to > old_from:
            same = "".join(new[new_from:new_to])
            yield "same", same, same
        old_at, new_at = old_to, new_to


def _equal_blocks(old: Sequence[str], new: Sequence[str], steps: _Steps) -> list[_Block]:
    """Returns the blocks that both have, in order; the last one is empty, at their ends."""
    steps.left -= len(old) + len(new)
    shorter = min(len(old), len(new))
    head = next((at for at in range(shorter) if old[at] != new[at]), shorter)
    rest = shorter - head
    tail = next((at for at in range(rest) if old[-1 - at] != new[-1 - at]), rest)
    old_end, new_end = len(old) - tail, len(new) - tail
    numbers: dict[str, int] = {}
    middle = _shortest_edit(
        [numbers.setdefault(text, len(numbers)) for text in old[head:old_end]],
        [numbers.setdefault(text, len(numbers)) for text in new[head:new_end]],
        steps,
    )
    blocks = [(head + a, head + b, head + c, head + d) for a, b, c, d in middle]
    end = (len(old), len(old), len(new), len(new))
    return [(0, head, 0, head), *blocks, (old_end, len(old), new_end, len(new)), end]


def _shortest_edit(old: Sequence[int], new: Sequence[int], steps: _Steps) -> list[_Block]:
    """Compares by the greedy algorithm of E.

    W. Myers (1986): from both beginnings, how far 0, 1, 2 … edits reach on each diagonal. Returns
    nothing in common if that takes more steps than are left."""
    reach, trace = {1: 0}, []
    for edits in range(len(old) + len(new) + 1):
        trace.append(reach.copy())
        for diagonal in range(-edits, edits + 1, 2):
            x = start = _next_start(reach, diagonal, edits)
            while x < len(old) and x - diagonal < len(new) and old[x] == new[x - diagonal]:
                x += 1
            reach[diagonal] = x
            steps.left -= 1 + x - start
            if x >= len(old) and x - diagonal >= len(new):
                return _walk_back(trace, len(old), len(new))
        if steps.left < 0:
            return []
    return []


def _next_start(reach: dict[int, int], diagonal: int, edits: int) -> int:
    down = diagonal == -edits or (diagonal != edits and reach[diagonal - 1] < reach[diagonal + 1])
    return reach[diagonal + 1] if down else reach[diagonal - 1] + 1


def _walk_back(trace: Sequence[dict[int, int]], x: int, y: int) -> list[_Block]:
    blocks: list[_Block] = []
    for edits in range(len(trace) - 1, -1, -1):
        start = _next_start(trace[edits], x - y, edits)
        length = x - start
        if length:
            blocks.append((start, x, y - length, y))
        x, y = start, y - length
        came_down = edits and x == trace[edits].get(x - y + 1)
        x, y = (x, y - 1) if came_down else (x - 1, y)
    return blocks[::-1]
