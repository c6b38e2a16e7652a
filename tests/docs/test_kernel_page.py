"""The page about the kernel names the transactions, states and promises that there are."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.model import JOB_TRANSITIONS, ItemStatus, JobState
from tests.docs.verbs import Verb, kernel_verbs

ROOT = Path(__file__).resolve().parents[2]
PAGE = (ROOT / "docs" / "explanation" / "kernel.md").read_text()
VERBS = kernel_verbs()
#: What is read in ten minutes, tables included.
WORDS = 2500


def section(name: str) -> str:
    return re.split(rf"^##+ {name}\n", PAGE, flags=re.M)[1].split("\n##")[0]


def rows_of(text: str) -> list[list[str]]:
    """Of all tables in it, without their headings."""
    rows = [line.strip("| ").split(" | ") for line in re.findall(r"^\|.*\|$", text, re.M)]
    return [row for row in rows if row[0].startswith("`") or row[0].isdecimal()]


def code_in(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"`([^`]+)`", text))


def described_verbs() -> Iterator[tuple[str, Verb]]:
    transactions = PAGE.split("\n## Transactions\n")[1].split("\n## ")[0]
    for row in rows_of(transactions):
        advisory = {"advisory"} if "advisory" in row[1] else frozenset[str]()
        for name in code_in(row[0]):
            yield name, Verb(code_in(row[1]) | advisory, code_in(row[2]))


DESCRIBED = dict(described_verbs())
PROMISES = rows_of(section("Promises"))


def test_the_source_is_read() -> None:
    """The page could not be wrong if nothing were found."""
    assert VERBS["settle"].writes >= {"outcomes", "ranges", "counters", "attempts"}
    assert VERBS["claim"] == Verb(VERBS["claim"].locks, frozenset({"ranges"}))
    assert VERBS["lose"].writes >= {"ranges", "streams", "operations", "exports", "gate_holds"}
    assert VERBS["enqueue"].writes >= {"items", "ranges", "counters"}
    assert VERBS["reserve_gate"].locks == {"gates"}


def test_every_verb_of_the_kernel_is_on_the_page_once() -> None:
    assert sorted(name for name, _ in described_verbs()) == sorted(VERBS)


@pytest.mark.parametrize("verb", sorted(DESCRIBED.keys() & VERBS))
def test_a_verb_locks_and_writes_what_the_page_says(verb: str) -> None:
    assert DESCRIBED[verb] == VERBS[verb]


@pytest.mark.parametrize(("name", "states"), [("Job", JobState), ("Item", ItemStatus)])
def test_states_are_those_of_the_model(name: str, states: type[JobState | ItemStatus]) -> None:
    diagram = section(name).split("```")[1]
    assert set(re.findall(r"\b[A-Z][A-Z_]+\b", diagram)) == set(states)


def test_every_transition_of_a_job_is_drawn() -> None:
    diagram = section("Job").split("```")[1]
    assert [verb for verb in JOB_TRANSITIONS if not re.search(rf"\b{verb}\b", diagram)] == []


def test_all_promises_are_there() -> None:
    assert [row[0] for row in PROMISES] == [str(number) for number in range(1, 16)]


@pytest.mark.parametrize("promise", PROMISES, ids=lambda row: f"promise {row[0]}")
def test_a_promise_names_tests_that_exist(promise: list[str]) -> None:
    tests = code_in(promise[-1])
    assert tests
    for name in tests:
        path, function = name.split("::")
        folder = ROOT if path.startswith("pipelines/") else ROOT / "tests"
        assert function in functions_of(folder / path), name


def functions_of(path: Path) -> set[str]:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    return {node.name for node in ast.parse(path.read_text()).body if isinstance(node, kinds)}


def test_the_page_is_short() -> None:
    assert len(PAGE.split()) <= WORDS
