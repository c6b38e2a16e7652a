"""Options that a pipeline declares: read in their types, refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import UserError
from holdfast.options import Option, checked_options, whole_options

DECLARED = [
    Option("mode", choices=["full", "new"], default="full"),
    Option("most", int),
    Option("share", float),
    Option("loud", bool, default=False),
    Option("word"),
]


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ({}, {}),
        ({"most": "7", "share": "0.5", "loud": "yes", "mode": "new"},
         {"most": 7, "share": 0.5, "loud": True, "mode": "new"}),
        ({"most": 7.0, "share": 1, "loud": False}, {"most": 7, "share": 1.0, "loud": False}),
    ],
)  # fmt: skip
def test_values_are_read_in_their_types(given: dict[str, Any], read: dict[str, Any]) -> None:
    assert checked_options("demo", DECLARED, given) == read
    assert whole_options("demo", DECLARED, given) == {"mode": "full", "loud": False, **read}


@pytest.mark.parametrize(
    "given",
    [
        {"other": 1}, {"mode": "old"}, {"most": "x"}, {"most": True}, {"most": "1e400"},
        {"most": float("inf")}, {"most": "9" * 30}, {"share": "nan"}, {"share": "inf"},
        {"share": None}, {"loud": "perhaps"}, {"mode": 3}, {"word": "a\0b"}, {"word": ["a"]},
    ],
)  # fmt: skip
def test_others_are_refused(given: dict[str, Any]) -> None:
    with pytest.raises(UserError) as refused:
        checked_options("demo", DECLARED, given)
    assert refused.value.hint


def test_pipeline_that_declares_none_takes_none() -> None:
    assert whole_options("demo", [], {}) == {}
    with pytest.raises(UserError, match="has no option 'any'"):
        whole_options("demo", [], {"any": ["thing"]})


@pytest.mark.parametrize(
    "declare",
    [
        lambda: Option("", str),
        lambda: Option("_own", str),
        lambda: Option("list", list),
        lambda: Option("most", int, default="many"),
        lambda: Option("mode", choices=["a"], default="b"),
    ],
)
def test_declaration_that_cannot_be_is_refused(declare: Any) -> None:
    with pytest.raises(UserError):
        declare()
