"""The check of docstrings accepts sentences, and names what is wrong with other beginnings."""

from __future__ import annotations

import pytest

from tools.docstrings import fault_of, first_sentence


@pytest.mark.parametrize(
    "docstring",
    [
        "Returns the rows of a page.",
        "Whether the job may continue.",
        "Raises NotThere if there is no such job.",
        "If two requests use the same code, only one succeeds.",
        "The worker frees what is left in its name.",
        "Notes that a worker has stopped.",
        "`GET /jobs` returns the jobs.",
        "Show what would be done without doing it.",
        "Nothing is written while the switch is on.",
    ],
)
def test_sentence_is_accepted(docstring: str) -> None:
    assert fault_of(docstring, may_be_noun=False) is None


@pytest.mark.parametrize(
    ("docstring", "fault"),
    [
        ("Of two that come with the same code, one gets in.", 'begins with "of"'),
        ("Below every door through which jobs start.", 'begins with "below"'),
        ("Reading and writing tables.", 'begins with the gerund "reading"'),
        ("Refused while a job may read it.", 'begins with the participle "refused"'),
    ],
)
def test_beginning_that_needs_the_name_above_is_a_fault_everywhere(
    docstring: str, fault: str
) -> None:
    assert fault_of(docstring, may_be_noun=False) == fault
    assert fault_of(docstring, may_be_noun=True) == fault


@pytest.mark.parametrize(
    "docstring", ["The rows of a page.", "What a worker knows.", "Records of others, by name."]
)
def test_noun_phrase_is_for_modules_classes_and_properties(docstring: str) -> None:
    assert fault_of(docstring, may_be_noun=False) == "has no verb in its main clause"
    assert fault_of(docstring, may_be_noun=True) is None


def test_first_sentence_ends_at_a_paragraph_or_a_colon_and_leaves_code_out() -> None:
    assert first_sentence("Reads `a. b`: a pair\nof words. More.") == "Reads Code:"
    assert first_sentence("Reads\nwords\n\nMore.") == "Reads words"
