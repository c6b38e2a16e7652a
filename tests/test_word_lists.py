"""Word lists are read, and what is wrong in one is said with its file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from holdfast.errors import InputError
from holdfast.word_lists import WordList

WORDS = """# Praise and blame.
greetings = "hi,  hello there"

[weights]
"2.5" = \"\"\"
good, very
good, nice
\"\"\"
"-1.0" = "bad"

[colors]
red = "scarlet, crimson"
"dark red" = "wine"

[limits]
percent = 30
"""


def _list(folder: Path, text: str) -> WordList:
    file = folder / "words.toml"
    file.write_text(text, encoding="utf-8")
    return WordList(file)


def test_words_groups_and_weights_are_read_in_the_order_of_the_file(tmp_path: Path) -> None:
    words = _list(tmp_path, WORDS)
    assert words.words("greetings") == ["hi", "hello there"]
    assert words.words("colors", "dark red") == ["wine"]
    assert words.groups("colors") == {"red": ["scarlet", "crimson"], "dark red": ["wine"]}
    assert words.weights("weights") == {"good": 2.5, "very good": 2.5, "nice": 2.5, "bad": -1.0}
    assert words.text("colors", "red") == "scarlet, crimson"
    assert words.texts("colors") == {"red": "scarlet, crimson", "dark red": "wine"}
    assert words.names("colors") == ["red", "dark red"]
    assert words.by_word("colors") == {"scarlet": "red", "crimson": "red", "wine": "dark red"}
    assert words.names() == ["greetings", "weights", "colors", "limits"]
    assert words.number("limits", "percent") == 30


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('a = "b"\nc = d', 2, "is not TOML: Invalid value"),
        ('a = "b', 1, "is not TOML"),
        ('\n[colors]\nred = ["scarlet"]\n', 3, "red in colors is ['scarlet'], which is not text"),
        ('colors = "red"', 1, "colors is 'red', which is not a table"),
        ('a = "b"', 1, "the table [colors] is missing"),
        ('[colors]\nred = """\na, b,\nc,\nb\n"""\n', 5, "red in colors has 'b' twice"),
    ],
)
def test_mistake_is_said_with_file_and_line(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        _list(tmp_path, text).groups("colors")
    assert str(caught.value).startswith(f"{tmp_path / 'words.toml'}, line {line}: {message}")


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ('[weights]\n"1.5" = "good"\nhigh = "best"\n', 3, "'high' is not a number"),
        (
            '[weights]\n"1" = "good, best"\n\n"2" = "best"\n',
            4,
            "'best' is in two lists of weights",
        ),
    ],
)
def test_weight_that_is_wrong_is_said_with_file_and_line(
    tmp_path: Path, text: str, line: int, message: str
) -> None:
    with pytest.raises(InputError) as caught:
        _list(tmp_path, text).weights("weights")
    assert str(caught.value).startswith(f"{tmp_path / 'words.toml'}, line {line}: {message}")


def test_value_that_is_missing_is_named(tmp_path: Path) -> None:
    words = _list(tmp_path, WORDS)
    with pytest.raises(InputError, match=r"words\.toml, line 1: farewells is missing"):
        words.words("farewells")
    with pytest.raises(InputError, match=r"words\.toml, line 11: blue in colors is missing"):
        words.words("colors", "blue")
    with pytest.raises(InputError, match=r"words\.toml, line 12: red in colors is not a number"):
        words.number("colors", "red")
    with pytest.raises(InputError, match=r"words\.toml, line 15: most in limits is not a number"):
        words.number("limits", "most")


def test_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"nowhere\.toml cannot be read: No such file"):
        WordList(tmp_path / "nowhere.toml")
    file = tmp_path / "latin.toml"
    file.write_bytes(b'# colors\nred = "ros\xe9"\n')
    with pytest.raises(InputError, match=r"latin\.toml, line 2: is not UTF-8"):
        WordList(file)
