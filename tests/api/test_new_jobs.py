"""Which jobs can be started, by the API and on the page, and what is said of the others."""

from __future__ import annotations

import pytest

from tests.api.server import ApiServer, finished


@pytest.mark.parametrize("name", ["regional", "undeclared"])
async def test_job_without_a_required_option_is_refused_by_its_name(
    server: ApiServer, name: str
) -> None:
    ada = await server.person("ada")
    refused = await ada.post("/api/jobs", json={"pipeline": name})
    assert refused.status_code == 422
    assert refused.json()["detail"] == f"the pipeline {name} needs the option region"
    body = {"pipeline": name, "options": {"region": "north"}}
    declared = name == "regional"
    assert (await ada.post("/api/jobs", json=body)).status_code == (202 if declared else 422)


async def test_pipeline_that_plans_is_refused_before_anything_is_stored(server: ApiServer) -> None:
    ada = await server.person("ada")
    refused = await ada.post("/api/jobs", json={"pipeline": "planning"})
    assert refused.status_code == 422
    assert refused.json()["detail"] == "jobs of the pipeline planning are started by its plan only"
    form = {"file": ("rows.csv", b"region\nnorth\n")}
    refused = await ada.post("/api/jobs", files=form, data={"pipeline": "planning"})
    assert refused.status_code == 422
    assert (await ada.get("/api/files")).json()["files"] == []
    listed = (await ada.get("/api/pipelines")).json()["pipelines"]
    assert [pipeline["name"] for pipeline in listed if pipeline["plans"]] == ["planning"]


async def test_new_job_page_offers_only_what_can_be_started(server: ApiServer) -> None:
    ada = await server.person("ada")
    page = (await ada.get("/new?pipeline=regional")).text
    assert "<option selected>regional</option>" in page
    assert "<option>planning</option>" not in page and "plans its own jobs" in page
    assert 'name="option:region" required' in page
    refused = await ada.get("/new?pipeline=planning")
    assert refused.status_code == 422 and "started by its plan only" in refused.text
    refused = await ada.post("/new", data={"pipeline": "undeclared"})
    assert refused.status_code == 422 and "needs the option region" in refused.text


async def test_preview_says_what_to_do_without_naming_a_command(server: ApiServer) -> None:
    ada = await server.person("ada")
    table = "title\n" + "žluťoučký kůň\n" * 20
    stored = await ada.post("/api/files", files={"file": ("a.csv", table.encode("cp1250"))})
    page = (await ada.get(f"/new/files/{stored.json()['id']}?pipeline=lengths")).text
    assert "if letters look wrong, set another encoding" in page
    assert "Change how the file is read" in page and "--encoding" not in page


async def test_item_of_a_pipeline_that_keeps_no_evidence_has_none(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "oak")
    item = (await ada.get(f"/api/jobs/{job['id']}/items/1")).json()
    assert item["result"] == {"title": "oak", "length": 3} and item["evidence"] == []
