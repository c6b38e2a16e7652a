"""Our own Reconciliation server over HTTP, checked by the schemas and by our own client."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pipelines.linker.tests.entity_world import EntityWorld
from pipelines.linker.tests.linker_site import LinkerSite
from pipelines.linker.tests.schemas import (
    EXTENSION_RESULT,
    MANIFEST,
    PROPOSAL,
    RESULTS,
    SUGGESTED_ENTITIES,
    SUGGESTED_PROPERTIES,
    SUGGESTED_TYPES,
    check,
)
from tests.store.checks import execute

ADAMS = {"name": "Douglas Adams", "born": "1952-03-11", "type": "Q5"}


@pytest.fixture
def linker(database_url: str, tmp_path: Path, entity_world: EntityWorld) -> Iterator[LinkerSite]:
    with LinkerSite(database_url, tmp_path, entity_world) as linker:
        yield linker


def test_openrefine_reads_what_people_decided(linker: LinkerSite) -> None:
    ann = linker.person("ann")
    project = linker.project(ann, [ADAMS, {"name": "Doug, author of the Guide"}])
    at = f"/api/projects/{project['id']}"
    job_id = project["datasets"][0]["jobId"]
    body = {"action": "accept", "item": "Q42", "version": 0}
    assert ann.put(f"{at}/tasks/{job_id}/2/decision", json=body).status_code == 200
    made = ann.post(f"{at}/tokens", json={}).json()
    anybody = linker.anybody()
    manifest = anybody.get(made["url"])
    check(MANIFEST, manifest.json())
    assert manifest.headers["access-control-allow-origin"] == "*"
    assert "access-control-allow-origin" not in ann.get(at).headers

    def ask(**queries: Any) -> Any:
        reply = anybody.post(made["url"], data={"queries": json.dumps(queries)})
        assert reply.status_code == 200, reply.text
        check(RESULTS, reply.json())
        return reply.json()

    answers = ask(
        q0={"query": "doug, author of the guide"},
        q1={"query": "ADAMS Douglas", "properties": [{"pid": "P569", "v": "1952-03-11"}]},
        q2={"query": "Somebody Else Entirely"},
    )
    first = answers["q0"]["result"][0]
    assert (first["id"], first["match"], first["score"]) == ("Q42", True, 100.0)
    assert answers["q1"]["result"][0]["id"] == "Q42"
    assert answers["q2"]["result"] == []
    by_get = anybody.get(made["url"], params={"queries": '{"q":{"query":"Douglas Adams"}}'})
    assert by_get.json()["q"]["result"][0]["id"] == "Q42"

    suggested = anybody.get(f"{made['url']}/suggest/entity", params={"prefix": "dougl"}).json()
    check(SUGGESTED_ENTITIES, suggested)
    assert suggested["result"][0]["id"] == "Q42"
    for kind, schema in (("type", SUGGESTED_TYPES), ("property", SUGGESTED_PROPERTIES)):
        check(schema, anybody.get(f"{made['url']}/suggest/{kind}?prefix=").json())
    _extend(anybody, made["url"])
    shown = anybody.get(f"{made['url']}/preview?id=Q42")
    assert "Douglas Adams" in shown.text
    assert "frame-ancestors *" in shown.headers["content-security-policy"]
    assert anybody.get(f"{made['url']}/flyout/entity?id=Q42").json()["id"] == "Q42"
    assert anybody.get(f"{made['url']}/preview?id=Q1").status_code == 404

    assert ann.delete(f"{at}/tokens/{made['id']}").status_code == 204
    late = anybody.get(made["url"])
    assert late.status_code == 401 and late.headers["access-control-allow-origin"] == "*"
    assert ann.delete(f"{at}/tokens/{made['id']}").status_code == 404


def _extend(anybody: Any, url: str) -> None:
    """Columns from reconciled values, as OpenRefine asks for them."""
    proposed = anybody.get(f"{url}/properties", params={"type": "Q5"}).json()
    check(PROPOSAL, proposed)
    assert {"id": "P569", "name": "date of birth"} in proposed["properties"]
    wanted = {"ids": ["Q42", "Q1"], "properties": [{"id": "P569"}, {"id": "P106", "settings": {}}]}
    reply = anybody.post(url, data={"extend": json.dumps(wanted)})
    check(EXTENSION_RESULT, reply.json())
    rows = reply.json()["rows"]
    assert rows["Q42"]["P569"] == [{"date": "1952-03-11T00:00:00Z"}]
    assert rows["Q1"] == {"P569": [], "P106": []}
    assert reply.json()["meta"][0] == {"id": "P569", "name": "date of birth"}


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_wrong_requests_are_refused_by_the_protocol(linker: LinkerSite) -> None:
    ann = linker.person("ann")
    project_id = ann.post("/api/projects", json={"name": "people"}).json()["id"]
    url = ann.post(f"/api/projects/{project_id}/tokens", json={"days": 1}).json()["url"]
    anybody = linker.anybody()
    many = {f"q{number}": {"query": "x"} for number in range(1000)}
    for queries, status in (
        (json.dumps(many), 413),
        ('{"q": {"query": "x", "colour": "red"}}', 400),
        ("not json", 400),
        ("[]", 400),
    ):
        reply = anybody.post(url, data={"queries": queries})
        assert reply.status_code == status, reply.text
        assert reply.headers["access-control-allow-origin"] == "*"
    for extension, status in (
        ({"ids": ["Q42"]}, 400),
        ({"ids": "Q42", "properties": []}, 400),
        ({"ids": [], "properties": ["P569"]}, 400),
        ({"ids": [f"Q{number}" for number in range(1, 1001)], "properties": []}, 413),
    ):
        reply = anybody.post(url, data={"extend": json.dumps(extension)})
        assert reply.status_code == status, reply.text
    assert anybody.get(f"{url}x").status_code == 401
    plants = {"name": "plants", "provider": "https://service.example/reconcile"}
    other_id = ann.post("/api/projects", json=plants).json()["id"]
    other = ann.post(f"/api/projects/{other_id}/tokens", json={}).json()["url"]
    manifest = anybody.get(other).json()
    check(MANIFEST, manifest)
    assert manifest["identifierSpace"] == plants["provider"], "its ids are not Wikidata's"
    assert anybody.get(f"{url}/suggest/colour").status_code == 400

    async def expire() -> None:
        store = linker.site.parts.store
        await execute(store, "update linker_tokens set expires_at = created_at")

    linker.site.run(expire())
    assert anybody.get(url).status_code == 401
