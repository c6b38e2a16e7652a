"""What `make test` leaves out is the same in each run, and is counted at the end."""

from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).resolve().parents[1]
HOOKS = """
from tests.fixtures import (
    pytest_addoption,
    pytest_collection_modifyitems,
    pytest_terminal_summary,
    pytest_testnodedown,
)
"""
INI = """
[pytest]
asyncio_default_fixture_loop_scope = function
markers =
  exhaustive(keep): only some variants
"""
TESTS = """
import pytest

@pytest.fixture(params=["sqlite", "postgres", "fleet"])
def database_url(request):
    return request.param

def test_on_each_database(database_url):
    pass

@pytest.mark.parametrize("case", "ab")
def test_on_each_database_in_two_cases(case, database_url):
    pass

@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("number", range(9))
def test_enumeration(number):
    pass

@pytest.mark.exhaustive
def test_at_length():
    pass
"""


@pytest.fixture
def suite(pytester: pytest.Pytester) -> pytest.Pytester:
    pytester.syspathinsert(ROOT)
    pytester.makeconftest(HOOKS)
    pytester.makeini(INI)
    pytester.makepyfile(**{"tests/cli/test_above": TESTS})
    return pytester


def names(suite: pytest.Pytester, *arguments: str) -> list[str]:
    """The tests that ran."""
    reports = suite.inline_run(*arguments).getreports("pytest_runtest_logreport")
    return [report.nodeid for report in reports if report.when == "call"]


def test_brief_run_has_one_database_and_the_variants_to_keep(suite: pytest.Pytester) -> None:
    ran = [name.partition("::")[2].partition("[")[0] for name in names(suite, "--brief")]
    assert sorted(ran) == [
        "test_enumeration", "test_enumeration", "test_on_each_database",
        "test_on_each_database_in_two_cases", "test_on_each_database_in_two_cases",
    ]  # fmt: skip


def test_any_other_run_has_everything(suite: pytest.Pytester) -> None:
    assert len(names(suite)) == 3 + 6 + 9 + 1


def test_selection_depends_on_nothing_but_names(suite: pytest.Pytester) -> None:
    """Neither on other tests nor on the order of variants."""
    before = names(suite, "--brief")
    suite.makepyfile(
        **{"tests/cli/test_above": TESTS.replace("range(9)", "reversed(range(9))") + "\n#"}
    )
    suite.makepyfile(**{"tests/cli/test_a_new_one": "def test_new(): pass"})
    assert sorted(names(suite, "--brief")) == sorted(
        [*before, "tests/cli/test_a_new_one.py::test_new"]
    )


def test_store_is_tested_on_each_database(suite: pytest.Pytester) -> None:
    suite.makepyfile(**{"tests/store/test_store": TESTS})
    ran = names(suite, "--brief", "tests/store")
    assert len([name for name in ran if "test_on_each_database[" in name]) == 3


@pytest.mark.parametrize("workers", ["0", "2"])
def test_end_of_a_run_says_what_was_left_out(suite: pytest.Pytester, workers: str) -> None:
    output = suite.runpytest_inprocess("--brief", "-n", workers).stdout
    output.fnmatch_lines(
        [
            "*left out of this run; `make test-all` has everything*",
            "     6 above the store, on a second or third database",
            "     8 variants of 2 exhaustive tests in tests/cli",
            "    14 in all",
        ]
    )


def test_run_of_everything_leaves_nothing_out(suite: pytest.Pytester) -> None:
    suite.runpytest_inprocess().stdout.no_fnmatch_line("*left out of this run*")
