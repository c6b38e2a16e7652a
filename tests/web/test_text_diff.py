"""What changed in a text: nothing is lost, small changes are small, hostile texts are bounded."""

from __future__ import annotations

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from holdfast.server import text_diff
from holdfast.server.text_diff import compare, compare_versions

TEXTS = st.lists(
    st.sampled_from(["the ", "bridge ", "was\n", "built", "\n", "", " ", "old\r\n", "é "]),
    max_size=40,
).map("".join)


@given(TEXTS, TEXTS)
@settings(max_examples=300)
def test_both_texts_can_be_put_together_again(earlier: str, later: str) -> None:
    changes = list(compare(earlier, later))
    assert "".join(text for kind, text in changes if kind != "new") == earlier
    assert "".join(text for kind, text in changes if kind != "gone") == later
    assert all(text for _, text in changes)


def test_a_changed_word_is_all_that_changed() -> None:
    earlier = "Call to order.\nThe bridge was discussed.\nAdjourned."
    later = "Call to order.\nThe ferry was discussed.\nAdjourned."
    assert list(compare(earlier, later)) == [
        ("same", "Call to order.\n"),
        ("same", "The "),
        ("gone", "bridge"),
        ("new", "ferry"),
        ("same", " was discussed.\n"),
        ("same", "Adjourned."),
    ]


def test_added_and_removed_lines() -> None:
    assert list(compare("a\nc\n", "a\nb\nc\n")) == [
        ("same", "a\n"),
        ("new", "b\n"),
        ("same", "c\n"),
    ]
    assert list(compare("a\nb\nc\n", "a\nc\n")) == [
        ("same", "a\n"), ("gone", "b\n"), ("same", "c\n"),
    ]  # fmt: skip
    assert list(compare("", "a")) == [("new", "a")]
    assert list(compare("", "")) == []


def test_shortest_edit_is_found() -> None:
    """As short as the longest common subsequence allows, which is counted the slow way."""
    rng = random.Random(5)
    for _ in range(200):
        old = [rng.choice("abc") for _ in range(rng.randrange(12))]
        new = [rng.choice("abc") for _ in range(rng.randrange(12))]
        changes = list(compare(" ".join(old), " ".join(new)))
        same = sum(len(text.split()) for kind, text in changes if kind == "same")
        tokens = _common(_spaced(old), _spaced(new))
        kept = sum(len(text_diff._WORDS.findall(text)) for kind, text in changes if kind == "same")
        assert kept == tokens and same <= len(old)


def _spaced(words: list[str]) -> list[str]:
    return text_diff._WORDS.findall(" ".join(words))


def _common(old: list[str], new: list[str]) -> int:
    rows = [[0] * (len(new) + 1) for _ in range(len(old) + 1)]
    for a, one in enumerate(old):
        for b, other in enumerate(new):
            match = rows[a][b] + 1 if one == other else max(rows[a][b + 1], rows[a + 1][b])
            rows[a + 1][b + 1] = match
    return rows[-1][-1]


def test_texts_that_would_take_long_are_replaced_as_a_whole() -> None:
    """Thousands of words with nothing but a few of them in common, again and again."""
    rng = random.Random(7)
    earlier = " ".join(rng.choice("ab") + str(rng.randrange(40)) for _ in range(20_000))
    later = " ".join(rng.choice("ab") + str(rng.randrange(40)) for _ in range(20_000))
    steps = text_diff._Steps(10_000)
    changes = list(compare(earlier, later, steps))
    assert [kind for kind, _ in changes if kind != "same"] == ["gone", "new"]
    # The words are counted once each, and a round of edits is finished before the count is read.
    assert -90_000 < steps.left < 0


async def test_versions_share_what_may_be_done_and_long_ones_are_not_compared() -> None:
    assert await compare_versions(["c", "b", "b"]) == [
        [("gone", "b"), ("new", "c")],
        [("same", "b")],
    ]
    assert await compare_versions(["only"]) == []
    long = "x" * 400_001
    assert await compare_versions([long, "a", "b"]) == [None, [("gone", "b"), ("new", "a")]]
    words = [" ".join(str(rng.random()) for _ in range(2_000)) for rng in map(random.Random, "abc")]
    replaced, not_compared = await compare_versions(words)
    assert replaced == [("gone", words[1]), ("new", words[0])]
    assert not_compared is None
