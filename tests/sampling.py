"""A sample of what is exhaustive, chosen by a seed that changes every day.

Three things are sampled. Above the store, a test that could run on each database runs on one of
them: store and console run on both. `@pytest.mark.sampled(3)` runs three variants of a test that
has many; 0 leaves it to the whole run. Of the folders whose tests start processes and servers, a
share of the tests runs.

`--whole` runs everything, and so does naming a file or a test. `--seed 20261116` repeats the
sample of a day. `make chaos` runs the whole suite.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from random import Random

import pytest

#: Folders whose tests go through the store, so that one database a day is enough for each.
ABOVE_THE_STORE = ("api", "chaos", "cli", "engine", "extension", "messaging", "pipelines", "web")

#: The share of a folder's tests that runs on one day.
SHARES = {
    "tests/api/": 0.6,
    "tests/chaos/": 0.3,
    "tests/cli/": 0.4,
    "tests/extension/": 0.6,
    "tests/messaging/": 0.4,
    "tests/ops/": 0.4,
    "pipelines/meetings/tests/": 0.4,
    "pipelines/posts/tests/": 0.4,
}


def add_options(parser: pytest.Parser) -> None:
    parser.addoption("--whole", action="store_true", help="run each variant of sampled tests")
    parser.addoption("--seed", help="repeat the sample that this seed chose")


def choose_seed(config: pytest.Config) -> None:
    """In the main process, before workers copy its options."""
    if config.option.seed is None:
        config.option.seed = f"{datetime.now(UTC):%Y%m%d}"


def describe(config: pytest.Config) -> str:
    if _runs_whole(config):
        return "sample: none, every variant runs"
    return f"sample: seed {config.option.seed}; repeat with --seed, run everything with --whole"


def keep_sample(config: pytest.Config, items: list[pytest.Item]) -> None:
    if _runs_whole(config):
        return
    seed = config.option.seed
    kept = [item for item in items if Random(f"{seed} {_path(item)}").random() < _share(item)]
    kept = _one_of_each(kept, seed, _beside_database, lambda _: 1)
    kept = _one_of_each(kept, seed, _function, _sample_size)
    kept.sort(key=_length, reverse=True)
    chosen = set(kept)
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = kept


def _runs_whole(config: pytest.Config) -> bool:
    return bool(config.option.whole) or any(".py" in argument for argument in config.args)


def _share(item: pytest.Item) -> float:
    return next((share for start, share in SHARES.items() if item.nodeid.startswith(start)), 1.0)


def _length(item: pytest.Item) -> bool:
    """Slow tests come first, so that no process is left alone with one at the end."""
    return item.get_closest_marker("slow") is not None


def _one_of_each(
    items: list[pytest.Item],
    seed: str,
    group_of: Callable[[pytest.Item], str | None],
    size: Callable[[pytest.Item], int],
) -> list[pytest.Item]:
    """All items outside groups, and of each group as many as `size` says, in their order."""
    groups: dict[str, list[pytest.Item]] = defaultdict(list)
    for item in items:
        if (group := group_of(item)) is not None:
            groups[group].append(item)
    chosen: set[pytest.Item] = set()
    for name, members in groups.items():
        count = min(size(members[0]), len(members))
        chosen.update(Random(f"{seed} {name}").sample(members, count))
    return [item for item in items if group_of(item) is None or item in chosen]


def _beside_database(item: pytest.Item) -> str | None:
    """The test and its parameters, except the database: one name for all its databases."""
    first, second = item.nodeid.split("/")[:2]
    folder = first if first == "pipelines" else second
    parameters = dict(item.callspec.params) if hasattr(item, "callspec") else {}
    database = parameters.pop("database_url", None)
    if folder not in ABOVE_THE_STORE or database is None:
        return None
    rest = item.callspec.id.split("-")
    rest.remove(str(database))
    return f"{_path(item)} {'-'.join(rest)}"


def _function(item: pytest.Item) -> str | None:
    return _path(item) if item.get_closest_marker("sampled") else None


def _sample_size(item: pytest.Item) -> int:
    marker = item.get_closest_marker("sampled")
    assert marker is not None
    return int(marker.args[0])


def _path(item: pytest.Item) -> str:
    return item.nodeid.partition("[")[0]
