"""One of several hosts is cut off for longer than its leases last, or until it notices; healed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.chaos.children import Children
from tests.chaos.worker_hosts import (
    assert_nothing_lost_or_doubled,
    cut_off_at_work,
    heal_and_work_again,
    hosts_at_work,
)


@pytest.mark.postgres
@pytest.mark.rabbit
@pytest.mark.slow
def test_host_that_is_cut_off_and_healed_costs_no_item_and_settles_none_twice(
    tmp_path: Path, children: Children
) -> None:
    with hosts_at_work(tmp_path, children) as (scene, cut, other):
        job_id = cut_off_at_work(scene, cut, other)
        heal_and_work_again(scene, cut)
        assert_nothing_lost_or_doubled(scene, job_id)


@pytest.mark.exhaustive
@pytest.mark.postgres
@pytest.mark.rabbit
@pytest.mark.slow
def test_host_notices_that_it_is_cut_off_and_works_again_when_it_is_healed(
    tmp_path: Path, children: Children
) -> None:
    """It takes a minute until the connections are given up."""
    with hosts_at_work(tmp_path, children) as (scene, cut, other):
        job_id = cut_off_at_work(scene, cut, other)
        for event in ("broker.gone", "database.gone"):
            cut.wait_until_it_says(event)
        heal_and_work_again(scene, cut)
        assert_nothing_lost_or_doubled(scene, job_id)
