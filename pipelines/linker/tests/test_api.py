"""Projects over HTTP, on each database: who sees them, matching, deciding, cancelling, deleting."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import SimpleNamespace

import pytest
import structlog

from holdfast.errors import UnfitState
from holdfast.kernel import Store
from holdfast.kernel.jobs.control import Control
from holdfast_linker.projects import ProjectRules, add_project, hide_project
from holdfast_linker.web.api.shapes import reads_of
from pipelines.linker.tests.entity_world import EntityWorld
from pipelines.linker.tests.linker_site import Client, LinkerSite
from pipelines.linker.tests.test_bad_entries import BAD
from pipelines.linker.tests.test_messages import KEY, accept_bytes, ours, signed
from tests.pictures import png
from tests.store.checks import fetch

ADAMS = {"name": "Douglas Adams", "born": "1952-03-11", "type": "Q5"}
NAMESAKE = {"name": "Douglas Adams"}
NOBODY = {"name": "Xq Zzyx Wvuts"}


@pytest.fixture
def linker(database_url: str, tmp_path: Path, entity_world: EntityWorld) -> Iterator[LinkerSite]:
    with LinkerSite(database_url, tmp_path, entity_world) as linker:
        yield linker


def test_project_from_upload_to_decisions(linker: LinkerSite) -> None:
    ann = linker.person("ann")
    project = linker.project(ann, [ADAMS, NAMESAKE, NAMESAKE, NOBODY])
    assert project["state"] == "review_ready"
    assert project["figures"]["states"] == {
        "awaiting_review": 2, "auto_confirmed": 1, "no_candidates_found": 1, "reviewed": 0,
        "failed": 0,
    }  # fmt: skip
    assert project["figures"]["callsPerEntry"] > 0
    at = f"/api/projects/{project['id']}"
    (first, second) = ann.get(f"{at}/tasks").json()["tasks"]
    assert (first["seq"], second["seq"]) == (2, 3)
    place = f"{at}/tasks/{first['jobId']}/{first['seq']}"
    detail = ann.get(place).json()
    assert detail["version"] == 0 and detail["candidates"][0]["item"] == "Q42"
    assert detail["candidates"][0]["fields"][0]["note"] == "the same name"

    body = {"action": "accept", "item": "Q42", "version": 0}
    decided = ann.put(f"{place}/decision", json=body)
    assert decided.status_code == 200, decided.text
    assert (decided.json()["state"], decided.json()["item"]) == ("reviewed", "Q42")
    assert ann.put(f"{place}/decision", json=body).status_code == 200, "sent twice, decided once"
    root = linker.person("root", "admin")
    late = root.put(f"{place}/decision", json={"action": "none", "version": 0})
    assert late.status_code == 409 and "ann has decided" in late.json()["detail"]
    undone = root.put(f"{place}/decision", json={"action": "undo", "version": 1})
    assert undone.json()["state"] == "awaiting_review"

    bulk = ann.post(f"{at}/tasks/review", json={"action": "accept_first", "low": 50})
    assert bulk.status_code == 202 and bulk.json()["count"] == 2
    operation = linker.finished(ann, bulk.json()["operation"]["id"])
    assert (operation["kind"], operation["doneCount"], operation["leftCount"]) == ("decide", 2, 0)
    plants = {"name": "plants", "provider": "https://service.example/reconcile"}
    plants_id = ann.post("/api/projects", json=plants).json()["id"]
    assert ann.get(f"/api/projects/{plants_id}/quickstatements").status_code == 422
    lines = ann.get(f"{at}/quickstatements").text.splitlines()
    assert lines == ["Q42\tP569\t+1952-03-11T00:00:00Z/11"]
    again = ann.post(f"{at}/match").json()
    assert again == {"jobs": [], "matchedAgain": 0}, "entries with a result are left alone"
    tasks = [{"jobId": first["jobId"], "seq": seq} for seq in (1, 2, 4)]
    chosen = ann.post(f"{at}/tasks/match", json={"tasks": tasks})
    assert chosen.json() == {"matchedAgain": 2, "leftAlone": 1}


def test_project_is_seen_by_its_owner_and_those_invited(linker: LinkerSite) -> None:
    ann, ben = linker.person("ann"), linker.person("ben")
    project_id = ann.post("/api/projects", json={"name": "people"}).json()["id"]
    at = f"/api/projects/{project_id}"
    assert ben.get(at).status_code == 404
    assert ben.get("/api/projects").json()["projects"] == []
    assert linker.anybody().get(at).status_code == 401
    assert ann.put(f"{at}/readers/ben").status_code == 200
    assert ben.get(at).json()["readers"] == ["ben"]
    assert ben.patch(at, json={"name": "mine"}).status_code == 403
    assert ben.delete(at).status_code == 403
    assert ann.patch(at, json={"autoAccept": 101}).json()["rules"]["autoAccept"] == 101
    assert ann.delete(f"{at}/readers/ben").status_code == 200
    assert ben.get(at).status_code == 404


@pytest.mark.parametrize("database_url", ["sqlite", "postgres"], indirect=True)
async def test_owner_has_no_more_projects_than_the_quota(store: Store) -> None:
    control = Control(store, "ann", structlog.get_logger())

    async def add(name: str) -> str:
        try:
            await control.change(add_project("ann", name, ProjectRules(), most=3))
        except UnfitState as refusal:
            return str(refusal)
        return "added"

    # The owner has none yet: nothing of theirs is there to be locked.
    answers = await asyncio.gather(*(add(f"project {number}") for number in range(6)))
    assert answers.count("added") == 3
    assert set(answers) == {"added", "that would be 4 projects; the limit per owner is 3"}
    await control.change(add_project("ben", "first", ProjectRules(), most=3))
    with pytest.raises(UnfitState, match="there is a project 'first' already"):
        await control.change(add_project("ben", "first \u200b", ProjectRules(), most=3))


def test_deleted_project_leaves_nothing_but_its_audit(linker: LinkerSite) -> None:
    ann = linker.person("ann")
    project = linker.project(ann, [ADAMS, NAMESAKE])
    other = linker.project(ann, [{"name": "Marie Curie"}], "other")
    # A job that was started without a dataset, as an adapter does.
    sent = {"pipeline": "linker", "options": json.dumps({"project": project["id"]})}
    made = ann.post("/api/jobs", files={"file": ("a.csv", b"name\nMarie Curie\n")}, data=sent)
    assert made.status_code == 202, made.text
    at = f"/api/jobs/{made.json()['id']}"
    linker.eventually(lambda: ann.get(at).json()["state"] == "DONE")
    send_row(linker, project["id"], {"name": "Marie Curie"})
    linker.eventually(lambda: _rows(linker, ["linker_tasks"]) == {"linker_tasks": 5})
    assert ann.delete(f"/api/projects/{project['id']}").status_code == 202
    assert ann.get(f"/api/projects/{project['id']}").status_code == 404
    tables = ("linker_projects", "linker_datasets", "linker_tasks", "jobs", "items")
    linker.eventually(lambda: _rows(linker, tables) == dict.fromkeys(tables, 1))
    assert _rows(linker, ["files"]) == {"files": 2}, "that of the job without a dataset stays"
    assert ann.get(f"/api/projects/{other['id']}").json()["figures"]["states"]["failed"] == 0
    root = linker.person("root", "admin")
    audit = root.get("/api/audit").text
    assert "linker.project_deleted" in audit and "ruling" not in audit


def send_row(linker: LinkerSite, project_id: int, row: dict[str, str]) -> None:
    """A message of another program."""
    parts = linker.site.parts
    scene = SimpleNamespace(store=parts.store, pipeline=parts.pipelines["linker"])
    message = signed(ours(project_id=project_id, row=row), KEY, "m1")
    assert linker.site.run(accept_bytes(scene, message, "m1"))


def test_nothing_of_a_person_who_is_gone_stays_open(linker: LinkerSite) -> None:
    ann, ben = linker.person("ann"), linker.person("ben")
    own = ann.post("/api/projects", json={"name": "people"}).json()["id"]
    address = ann.post(f"/api/projects/{own}/tokens", json={}).json()["url"]
    other = ben.post("/api/projects", json={"name": "places"}).json()["id"]
    assert ben.put(f"/api/projects/{other}/readers/ann").status_code == 200
    anybody = linker.anybody()
    assert anybody.get(address).status_code == 200
    linker.site.run(linker.site.parts.accounts.change_user("ann", "root", disabled=True))
    assert anybody.get(address).status_code == 401
    linker.site.run(linker.site.parts.deletions.begin_user("ann", "root"))
    linker.site.run(linker.site.parts.deletions.delete_user("ann", "root"))
    again = linker.person("ann")
    assert again.get("/api/projects").json()["projects"] == []
    assert anybody.get(address).status_code == 401


def test_deleting_a_project_leaves_the_files_of_others(linker: LinkerSite) -> None:
    """That an admin used for one of its datasets."""
    ann, ben, root = linker.person("ann"), linker.person("ben"), linker.person("root", "admin")
    file = ben.post("/api/files", files={"file": ("a.csv", b"name\nx\n")}).json()["id"]
    project = ann.post("/api/projects", json={"name": "people"}).json()["id"]
    assert root.post(f"/api/projects/{project}/datasets", json={"fileId": file}).status_code == 201
    assert ann.delete(f"/api/projects/{project}").status_code == 202
    linker.eventually(lambda: _rows(linker, ["linker_projects"]) == {"linker_projects": 0})
    assert ben.get(f"/api/files/{file}").status_code == 200
    # And one that another project has yet to match.
    first, second = (ben.post("/api/projects", json={"name": name}).json()["id"] for name in "12")
    for each in (first, second):
        reply = ben.post(f"/api/projects/{each}/datasets", json={"fileId": file})
        assert reply.status_code == 201, reply.text
    assert ben.delete(f"/api/projects/{first}").status_code == 202
    linker.eventually(lambda: _rows(linker, ["linker_projects"]) == {"linker_projects": 1})
    assert ben.get(f"/api/files/{file}").status_code == 200


def _rows(linker: LinkerSite, tables: Sequence[str]) -> dict[str, int]:
    async def count() -> dict[str, int]:
        store = linker.site.parts.store
        return {
            name: int((await fetch(store, f"select count(*) from {name}"))[0][0]) for name in tables
        }

    return linker.site.run(count())


@pytest.mark.parametrize("done", ["hidden", "job marked", "job deleted"])
def test_deletion_that_stopped_anywhere_is_continued(linker: LinkerSite, done: str) -> None:
    ann = linker.person("ann")
    shape = linker.project(ann, [ADAMS, NAMESAKE])
    ann.post(f"/api/projects/{shape['id']}/tokens", json={})
    parts = linker.site.parts

    async def begin() -> None:
        """As a process does that dies after this step."""
        project = await reads_of(parts).project(shape["id"], None)
        job_id = shape["datasets"][0]["jobId"]
        await parts.control("ann").change(hide_project(project))
        if done != "hidden":
            await parts.deletions.jobs.begin(job_id, "ann")
        if done == "job deleted":
            await parts.deletions.jobs.delete(job_id)

    linker.site.run(begin())
    assert ann.get(f"/api/projects/{shape['id']}").status_code == 404
    tables = (
        "linker_projects", "linker_datasets", "linker_tasks", "linker_candidates", "linker_calls",
        "linker_readers", "linker_tokens", "items", "outcomes", "files",
    )  # fmt: skip
    linker.eventually(lambda: _rows(linker, tables) == dict.fromkeys(tables, 0))


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_requests_that_cannot_be_right_are_refused(linker: LinkerSite) -> None:
    ann = linker.person("ann")
    made = ann.post("/api/projects", json={"name": "people"})
    at = f"/api/projects/{made.json()['id']}"
    assert ann.post("/api/projects", json={"name": "people"}).status_code == 409
    for body in ({"name": ""}, {"name": "x", "provider": "ftp://x"}, {"name": "x", "lead": -1},
                 {"name": "x", "provider": "http://[x"}, {"name": "x", "language": "e\n"},
                 {"name": "x", "provider": "http://h:99999/"},
                 {"name": "x", "provider": "https://me:secret@h.example/"}):  # fmt: skip
        assert ann.post("/api/projects", json=body).status_code in (400, 422), body
    file = ann.post("/api/files", files={"file": ("a.csv", b"x,y\n1,2\n")}).json()
    for mapping in (None, {"name": "z"}, {"name": "x", "dates": {"y": "born"}}, {"nme": "x"}):
        refused = ann.post(f"{at}/datasets", json={"fileId": file["id"], "mapping": mapping})
        assert refused.status_code == 422, refused.text
        refused = ann.post(
            f"{at}/datasets",
            data={"mapping": json.dumps(mapping) if mapping else ""},
            files={"file": ("b.csv", b"x,y\n1,2\n")},
        )
        assert refused.status_code == 422, refused.text
    assert len(ann.get("/api/files").json()["files"]) == 1, "what was refused is not kept"
    added = ann.post(f"{at}/datasets", json={"fileId": file["id"], "mapping": {"name": "x"}})
    assert added.status_code == 201 and added.json()["datasets"][0]["name"] == "a.csv"
    for body in (b"{", b"[]", b"{}"):
        refused = ann.post(f"{at}/datasets", content=body)
        assert refused.status_code in (400, 422), refused.text
    assert ann.get(f"{at}/tasks/1/1").status_code == 404
    body = {"action": "accept", "item": "Q42", "version": 0}
    assert ann.put(f"{at}/tasks/1/1/decision", json=body).status_code == 404


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_bad_entries_through_the_door_end_in_a_state_that_pages_show(linker: LinkerSite) -> None:
    ann = linker.person("ann")
    twice = [{"id": "7", "name": "Marie Curie"}, {"id": "7", "name": "Douglas Adams"}]
    project = linker.project(ann, [{**ADAMS, "P4294967": "x"}, *BAD, *twice])
    states = project["figures"]["states"]
    assert sum(states.values()) == len(BAD) + 3 and states["failed"] == 2
    at = f"/linker/projects/{project['id']}"
    assert "Several entries have the same id: <code>7</code> (2)" in ann.get(at).text
    for state in states:
        tasks = ann.get(f"/api/projects/{project['id']}/tasks", params={"state": state}).json()
        assert len(tasks["tasks"]) == states[state]
        for task in tasks["tasks"]:
            assert ann.get(f"{at}/review/{task['jobId']}/{task['seq']}").status_code == 200
    exported = ann.post(f"/api/projects/{project['id']}/export", params={"format": "json"}).json()
    (export_id,) = linker.finished(ann, exported["id"])["result"]
    path = f"/api/exports/{export_id}"
    linker.eventually(lambda: ann.get(path).json()["state"] == "DONE")
    assert len(ann.get(f"{path}/download").json()) == len(BAD) + 3


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_pages_show_the_project_and_its_entries(linker: LinkerSite) -> None:
    ann = linker.person("ann")
    assert "No projects yet" in ann.get("/linker").text
    project = linker.project(ann, [ADAMS, {"name": "<b>Douglas</b> Adams"}, NAMESAKE])
    page = ann.get(f"/linker/projects/{project['id']}").text
    assert "Review" in page and "people.jsonl" in page
    review = ann.get(f"/linker/projects/{project['id']}/review").text
    assert 'data-item="Q42"' in review and "<b>Douglas" not in review
    at = f"/linker/projects/{project['id']}"
    counted = ann.post(f"{at}/bulk", data={"action": "none", "low": "0", "dry_run": "1"})
    assert counted.status_code == 303 and ann.get(at).text.count("2 entries match") == 1
    assert ann.post(f"{at}/readers", data={"name": "nobody"}).status_code == 404
    linker.person("ben")
    assert ann.post(f"{at}/readers", data={"name": "ben"}).status_code == 303
    assert "Remove ben" in ann.get(at).text
    assert ann.post(f"{at}/readers/remove", data={"name": "ben"}).status_code == 303
    assert ann.post(f"{at}/export", data={"format": "json"}).headers["location"] == "/operations/1"
    assert ann.post(f"{at}/export", data={"format": "ods"}).status_code == 422
    assert ann.post(f"{at}/bulk", data={"action": "none", "low": "x"}).status_code == 422
    address = ann.post(f"{at}/tokens", data={"days": "7"}).text
    assert "/reconcile/hfr_" in address and "Revoke hfr_" in ann.get(at).text
    assert ann.post(f"{at}/tokens/1/revoke").status_code == 303
    assert "Revoke hfr_" not in ann.get(at).text
    _add_by_page(linker, ann, at)
    delete = ann.get(f"/linker/projects/{project['id']}/delete").text
    assert "<strong>4</strong> entries" in delete


def _add_by_page(linker: LinkerSite, ann: Client, at: str) -> None:
    """A file is stored, its columns are chosen, and its entries are matched."""
    table = b"No.,Who,Birth,VIAF,Remarks\n1,Douglas Adams,1952-03-11,,x\n"
    file_id = ann.post("/api/files", files={"file": ("who.csv", table)}).json()["id"]
    columns = ann.get(f"{at}/datasets/{file_id}").text
    assert '<option value="identifier" selected>' in columns and 'value="P214"' in columns
    path, roles = f"{at}/datasets/{file_id}", {"role:No.": "id", "role:Birth": "date"}
    wrong: dict[str, dict[str, str]] = {
        "neither a column with names": {"property:Birth": "P569"},
        "is not a property id": {"role:Who": "name", "property:Birth": "born"},
        "columns have the role": {"role:Who": "name", "role:Remarks": "name"},
        "not an item id": {"role:Who": "name", "property:Birth": "P569", "all_of_type": "human"},
    }
    for complaint, fields in wrong.items():
        refused = ann.post(path, data={**roles, **fields})
        assert refused.status_code == 422 and complaint in refused.text, refused.text
    chosen = {**roles, "role:Who": "name", "property:Birth": "P569", "role:VIAF": ""}
    added = ann.post(path, data={**chosen, "all_of_type": "Q5", "match": "1"})
    assert added.status_code == 303 and added.headers["location"] == at
    assert "who.csv was added and is being matched" in ann.get(at).text
    api = f"/api{at.removeprefix('/linker')}"
    linker.eventually(lambda: ann.get(api).json()["figures"]["states"]["auto_confirmed"] == 2)
    image = ann.post("/api/files", files={"file": ("a.png", png(4, 4))})
    assert ann.get(f"{at}/datasets/{image.json()['id']}").status_code == 422
