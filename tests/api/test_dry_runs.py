"""Dry runs: audited, and stopped by kill switches (W1, W9)."""

from __future__ import annotations

import pytest

from tests.api.server import ApiServer
from tests.store.checks import fetch


@pytest.mark.parametrize("scope", ["pipeline:lengths", "all"])
async def test_kill_switch_stops_dry_runs(server: ApiServer, scope: str) -> None:
    ada = await server.person("ada")
    file = (await ada.post("/api/files", files={"file": ("a.csv", b"title\noak\n")})).json()
    form = {"pipeline": "lengths", "file_id": str(file["id"])}
    assert (await ada.post("/new/try", data=form)).status_code == 200
    acts = await fetch(
        server.parts.store, "select actor, subject from audit where action = 'dry_run'"
    )
    assert [tuple(act) for act in acts] == [("ada", "lengths")]
    await server.parts.control("root").switch(scope, True, "trouble")
    refused = await ada.post("/new/try", data=form)
    assert refused.status_code == 503 and scope in refused.text
    await server.parts.control("root").switch(scope, False, "")
    assert (await ada.post("/new/try", data=form)).status_code == 200


@pytest.mark.parametrize("scope", ["source:left", "source:right"])
async def test_kill_switch_of_a_source_stops_dry_runs_of_its_pipeline(
    server: ApiServer, scope: str
) -> None:
    ada = await server.person("ada")
    file = (await ada.post("/api/files", files={"file": ("a.csv", b"book\noak\n")})).json()
    form = {"pipeline": "shelves", "file_id": str(file["id"])}
    await server.parts.control("root").switch(scope, True, "trouble")
    refused = await ada.post("/new/try", data=form)
    assert refused.status_code == 503 and scope in refused.text
    acts = await fetch(server.parts.store, "select 1 from audit where action = 'dry_run'")
    assert acts == []
    await server.parts.control("root").switch(scope, False, "")
    assert (await ada.post("/new/try", data=form)).status_code == 200
