"""The labelled set, and what the analysis reaches on it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

import holdfast_posts as posts
from bench.quality.posts.measuring import (
    NATURAL,
    REVIEW,
    SETS,
    macro_f1,
    measure,
    read_labelled,
)
from holdfast.errors import UserError
from tests.quality.command import measured

_HEADER = b"language\tsentiment\tintent\ttext\n"


def test_set_is_large_and_has_every_label_in_both_languages() -> None:
    labelled = read_labelled()
    assert len(labelled) >= 400
    assert len({post.text for post in labelled}) == len(labelled)
    intents = Counter((post.language, post.intent) for post in labelled)
    assert len(intents) == 14
    assert min(intents.values()) >= 25


def test_analysis_is_better_than_simple_ways() -> None:
    for score in measure(read_labelled()):
        assert score.ours > score.words + 0.1 > score.majority, score
        assert score.ours >= (0.65 if score.task == "sentiment" else 0.85), score


@pytest.mark.parametrize("path", [NATURAL, REVIEW], ids=lambda path: path.stem)
def test_natural_posts_are_many_and_are_analysed_better_than_in_simple_ways(path: Path) -> None:
    natural = read_labelled(path)
    assert len(natural) >= 150
    assert {post.text for post in natural}.isdisjoint(post.text for post in read_labelled())
    for score in measure(natural):
        assert score.ours > score.words + 0.1 > score.majority, score
        assert score.ours >= 0.8, score


def test_table_of_the_documentation_is_what_is_measured() -> None:
    page = Path(posts.__file__).parent / "docs" / "quality.md"
    names = {"en": "English", "vi": "Vietnamese"}
    rows = [
        f"| {path.stem} | {score.task} | {names[score.language]} | {score.posts} |"
        f" {score.ours:.3f} | {score.words:.3f} | {score.majority:.3f} |"
        for path in SETS
        for score in measure(read_labelled(path))
        if score.language in names
    ]
    text = page.read_text(encoding="utf-8")
    assert [row for row in rows if row not in text] == []


def test_macro_f1() -> None:
    assert macro_f1(["a", "b"], ["a", "b"]) == 1
    assert macro_f1(["a", "b"], ["a", "a"]) == pytest.approx((2 / 3 + 0) / 2)
    assert macro_f1(["a", "a"], ["b", "b"]) == 0


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        (_HEADER, "has no posts"),
        (b"", "does not begin with the columns"),
        (b"\xed\xa0\xff", "UTF-8"),
        (_HEADER + b"en\tGOOD\tLEAD\tx", "'GOOD'"),
        (_HEADER + b"en\tPOSITIVE\tLEAD", "3 columns"),
    ],
)
def test_mistakes_in_a_file_of_labels_are_named(
    tmp_path: Path, content: bytes, reason: str
) -> None:
    path = tmp_path / "mine.tsv"
    path.write_bytes(content)
    with pytest.raises(UserError, match=reason):
        read_labelled(path)


def test_file_of_labels_may_come_from_a_spreadsheet(tmp_path: Path) -> None:
    path = tmp_path / "mine.tsv"
    path.write_bytes(
        b"\xef\xbb\xbf" + _HEADER.replace(b"\n", b"\r\n") + b"en\tPOSITIVE\tLEAD\tx\r\n"
    )
    assert [post.text for post in read_labelled(path)] == ["x"]


def test_command_measures_posts_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.tsv").write_bytes(_HEADER + b"en\tPOSITIVE\tDISCUSSION\tI love this phone\n")
    scores = json.loads(measured("posts", "--file", tmp_path / "mine.tsv", "--json").stdout)
    assert {(score["set"], score["task"], score["ours"]) for score in scores} == {
        ("mine", "sentiment", 1.0),
        ("mine", "intent", 1.0),
    }
    refused = measured("posts", "--file", tmp_path / "theirs.tsv")
    assert refused.returncode == 1 and "there is no file" in refused.stderr
