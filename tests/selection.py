"""What `make test` leaves out of `make test-all`: the same tests on every day and machine.

Every run has all tests, unless it is given `--brief`, as `make test` does. Two things are left
out then, and the end of the run says how much:

- An enumeration keeps some of its variants. `@pytest.mark.exhaustive(keep=3)` keeps three of a
  test that has many; without `keep`, the test is left out: what it shows at length, another shows
  with one case. The reason is in the mark or beside it.
- Above the store, a test that runs on several databases runs on one of them. The tests of the
  store and of the console always run on each.

Which variants are kept depends on nothing but their names, so that a new one leaves the others in
place.
"""

from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import pytest

#: Their tests always run on each database; those of all other folders are above the store.
ON_EACH_DATABASE = ("tests/store/", "tests/console/")

#: By them a test says that it runs on several databases.
DATABASE_FIXTURES = ("database_url", "empty_database_url")

OTHER_DATABASES = "above the store, on a second or third database"

#: By test or kind of test, how many were left out of this run.
_LEFT_OUT = pytest.StashKey[Counter[str]]()
#: The name under which a worker process hands its own over.
_FROM_WORKER = "left_out"


def add_options(parser: pytest.Parser) -> None:
    parser.addoption(
        "--brief",
        action="store_true",
        help="leave out what is marked as exhaustive, and all but one database above the store",
    )


def describe(config: pytest.Config) -> str | None:
    return "brief: leaves tests out, counted at the end" if config.option.brief else None


def keep_selection(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.option.brief:
        return
    kept = _one_of_each(items, _beside_database, lambda _: 1)
    left_out = Counter({OTHER_DATABASES: len(items) - len(kept)})
    chosen = set(_one_of_each(kept, _exhaustive, _kept_count))
    left_out.update(_path(item) for item in kept if item not in chosen)
    config.stash[_LEFT_OUT] = left_out
    if hasattr(config, "workeroutput"):
        config.workeroutput[_FROM_WORKER] = dict(left_out)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = sorted((item for item in items if item in chosen), key=_length, reverse=True)


def receive_from_worker(node: Any) -> None:
    """Each worker process has collected the same tests; the main process none."""
    counts = getattr(node, "workeroutput", {}).get(_FROM_WORKER)
    if counts is not None:
        node.config.stash[_LEFT_OUT] = Counter(counts)


def summarize(terminal: pytest.TerminalReporter, config: pytest.Config) -> None:
    if not config.option.brief:
        return
    left_out = config.stash.get(_LEFT_OUT, Counter())
    terminal.section("left out of this run; `make test-all` has everything")
    for line in lines_of(left_out):
        terminal.line(line)


def lines_of(left_out: Counter[str]) -> Iterable[str]:
    """One for the databases, one for each folder, and the sum."""
    folders = Counter[str]()
    tests: dict[str, set[str]] = defaultdict(set)
    for name, count in left_out.items():
        if name != OTHER_DATABASES:
            folder = name.rpartition("/")[0]
            folders[folder] += count
            tests[folder].add(name)
    yield f"{left_out[OTHER_DATABASES]:6,} {OTHER_DATABASES}"
    for folder, count in sorted(folders.items()):
        yield f"{count:6,} variants of {len(tests[folder])} exhaustive tests in {folder}"
    yield f"{left_out.total():6,} in all"


def _length(item: pytest.Item) -> bool:
    """Slow tests come first, so that no process is left alone with one at the end."""
    return item.get_closest_marker("slow") is not None


def _one_of_each(
    items: list[pytest.Item],
    group_of: Callable[[pytest.Item], str | None],
    size: Callable[[pytest.Item], int],
) -> list[pytest.Item]:
    """All items outside groups, and of each group as many as `size` says, in their order."""
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if (group := group_of(item)) is not None:
            groups[group].append(item)
    chosen: set[pytest.Item] = set()
    for members in groups.values():
        chosen.update(sorted(members, key=_place)[: size(members[0])])
    return [item for item in items if group_of(item) is None or item in chosen]


def _place(item: pytest.Item) -> bytes:
    """A place in an order that has nothing to do with that of the names."""
    return hashlib.sha256(item.nodeid.encode()).digest()


def _beside_database(item: pytest.Item) -> str | None:
    """The test and its parameters, except the database: one name for all its databases."""
    parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    given = [parameters[name] for name in DATABASE_FIXTURES if name in parameters]
    if not given or item.nodeid.startswith(ON_EACH_DATABASE):
        return None
    rest = item.callspec.id.split("-")
    rest.remove(str(given[0]))
    return f"{_path(item)} {'-'.join(rest)}"


def _exhaustive(item: pytest.Item) -> str | None:
    return _path(item) if item.get_closest_marker("exhaustive") else None


def _kept_count(item: pytest.Item) -> int:
    marker = item.get_closest_marker("exhaustive")
    assert marker is not None
    return int(marker.kwargs.get("keep", 0))


def _path(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
