"""The routes of meetings against their OpenAPI document: no server error, whatever is asked."""

from __future__ import annotations

from pathlib import Path

import pytest
from schemathesis import GenerationMode

from holdfast_meetings.pipeline import Meetings
from holdfast_meetings.web import PACK
from pipelines.meetings.tests.site import Datasette, Row
from pipelines.meetings.tests.town import Town
from tests.api.fuzzing import Fuzzed
from tests.web.site import Site

TRIED = {GenerationMode.POSITIVE: 12, GenerationMode.NEGATIVE: 8}


async def _token(site: Site, name: str, role: str) -> str:
    await site.parts.accounts.add_user(name, role, None, "tester")
    return (await site.parts.accounts.make_token(name, "test", None, "tester")).value


@pytest.mark.slow
@pytest.mark.exhaustive
@pytest.mark.parametrize("mode", list(GenerationMode))
def test_fuzzed_requests_meet_no_server_error(
    database_url: str, tmp_path: Path, datasette_0: Datasette, mode: GenerationMode
) -> None:
    datasette_0.site.reset()
    datasette_0.site.add("minutes", [Row("CityCouncil", "2024-03-05", 1, "A bridge.")])
    pipelines = {"meetings": Meetings()}
    with Site(database_url, tmp_path, works=False, packs=[PACK], pipelines=pipelines) as site:
        town = Town(site.parts.store, datasette_0.url)
        site.run(town.add(name="Alameda", state="CA", kind="city"))
        site.run(town.backfill())
        root = site.run(_token(site, "root", "admin"))
        fuzzed = Fuzzed(site.url, root, root)
        tried = fuzzed.try_all(mode, under="/api/meetings")
    assert len(tried) >= TRIED[mode], tried
