"""Decides what is accepted as a password: long enough, and not a common one.

The list consists of what guesses begin with: well-known passwords, names, words, keyboard rows and
years, combined as people combine them. It is checked without case and with the usual digits for
letters, so that `P4ssw0rd2024!` counts as `password2024`.
"""

from __future__ import annotations

import re
from functools import cache
from itertools import pairwise
from pathlib import Path

from holdfast.errors import UserError

SHORTEST_PASSWORD = 12
LONGEST_PASSWORD = 1000
_WORDS = Path(__file__).with_name("common_passwords.txt")
_LETTERS = str.maketrans("013457@$!|", "oieastasil")
_TRAILING = re.compile(r"[^a-z]+$")
_LEADING = re.compile(r"^[^a-z]+")
_MOST_WORDS = 4
_DISTINCT = 5


def check_password(password: str, user_name: str = "") -> None:
    if len(password) < SHORTEST_PASSWORD:
        raise UserError("the password is too short", f"At least {SHORTEST_PASSWORD} characters.")
    if len(password) > LONGEST_PASSWORD:
        raise UserError("the password is too long", f"At most {LONGEST_PASSWORD} characters.")
    if is_common(password, user_name):
        raise UserError(
            "this password is too common",
            "Use several unrelated words, or let a password manager generate one.",
        )


def is_common(password: str, user_name: str = "") -> bool:
    lowered = password.lower()
    if len(set(lowered)) < _DISTINCT or _is_run(lowered):
        return True
    words = common_words() | ({user_name.lower()} if user_name else set())
    stripped = _LEADING.sub("", _TRAILING.sub("", lowered))
    spelled = lowered.translate(_LETTERS)
    forms = {
        lowered,
        stripped,
        spelled,
        stripped.translate(_LETTERS),
        _LEADING.sub("", _TRAILING.sub("", spelled)),
    }
    letters = {re.sub(r"[^a-z]+", "", form) for form in forms}
    return any(_is_made_of(form, words) for form in letters if form) or bool(forms & words)


def _is_run(text: str) -> bool:
    """Whether it is a run such as `123456789012` or `abcdefghijkl`, or a short piece again and
    again."""
    steps = {ord(after) - ord(before) for before, after in pairwise(text)}
    if steps <= {1, -9} or steps <= {-1, 9}:
        return True
    return any(text == (text[:size] * len(text))[: len(text)] for size in range(1, 5))


def _is_made_of(text: str, words: frozenset[str] | set[str]) -> bool:
    """Whether it consists of common words alone: one, or the same one again, such as
    `passwordpassword`."""
    if text in words:
        return True
    for count in range(2, _MOST_WORDS + 1):
        size, rest = divmod(len(text), count)
        if not rest and text[:size] in words and text[:size] * count == text:
            return True
    return False


@cache
def common_words() -> frozenset[str]:
    return frozenset(_WORDS.read_text().split())
