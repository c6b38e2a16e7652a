"""No server error and no row of another owner, whatever is asked, by whom: the short form. The long
one: `python -m tests.api.fuzzing --requests 50000`."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.api.fuzzing import fuzzed


@pytest.mark.parametrize("seed", [1, 2])
async def test_wild_requests_meet_no_server_error_and_see_nothing_of_others(
    database_url: str, tmp_path: Path, seed: int
) -> None:
    findings = await fuzzed(database_url, tmp_path, seed, 600)
    assert findings.requests > 500 and len(findings.by_role) == 4
    assert not findings.errors, findings.errors[:5]
    assert not findings.leaks, findings.leaks[:5]
    assert findings.statuses[200] > 50, "too few requests reach anything"
