"""One person's things do not exist for another: every route is tried, none can be forgotten."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi.routing import APIRoute

from holdfast.features.bulk.operations import NewOperation
from holdfast.features.console import open_console
from holdfast.features.exports.exports import NewExport
from holdfast.features.ingestion.adapters import AdapterKind, NewAdapter
from holdfast.server.api_app import api_routers
from tests.api.server import ApiServer, finished
from tests.pictures import png
from tests.store.checks import execute

#: Routes without user data, or that show each user their own.
OPEN = {
    "GET /healthz", "GET /readyz", "GET /metrics", "POST /api/session", "POST /api/session/link",
}  # fmt: skip
OWN = {
    "GET /api/session", "GET /api/session/usage", "DELETE /api/session",
    "PUT /api/session/password", "GET /api/tokens",
    "POST /api/tokens", "GET /api/files", "POST /api/files", "GET /api/pipelines", "GET /api/jobs",
    "POST /api/jobs", "GET /api/pending", "GET /api/exports", "GET /api/operations",
    "GET /api/streams", "GET /api/gates", "GET /api/dead-letters", "GET /api/schedules",
    "GET /api/kill-switches", "GET /api/flags", "GET /api/audit", "GET /api/events",
    "GET /api/workers", "GET /api/overview", "POST /api/operations",
    "POST /api/operations/preview", "GET /api/ingestion",
}  # fmt: skip
#: Routes that name something of one person's; another gets 404.
OWNED = {
    "DELETE /api/tokens/{token_id}", "GET /api/files/{file_id}", "GET /api/jobs/{jobId}",
    "GET /api/files/{image_id}/image",
    "GET /api/jobs/{jobId}/errors", "GET /api/jobs/{jobId}/decisions",
    "POST /api/jobs/{jobId}/kickoff", "POST /api/jobs/{jobId}/pause",
    "POST /api/jobs/{jobId}/resume", "POST /api/jobs/{jobId}/cancel",
    "POST /api/jobs/{jobId}/reprocess", "POST /api/jobs/{jobId}/skip",
    "GET /api/jobs/{jobId}/items", "GET /api/jobs/{jobId}/items/{seq}",
    "GET /api/jobs/{jobId}/items/{seq}/ruling", "PUT /api/jobs/{jobId}/items/{seq}/ruling",
    "DELETE /api/jobs/{jobId}/items/{seq}/ruling",
    "POST /api/jobs/{jobId}/export",
    "GET /api/exports/{export_id}", "GET /api/exports/{export_id}/download",
    "GET /api/operations/{operation_id}", "POST /api/operations/{operation_id}/cancel",
    "GET /api/jobs/{jobId}/streams", "POST /api/streams/{stream_id}/retry",
    "GET /api/streams/{stream_id}",
    "POST /api/streams/{stream_id}/force-full",
    "GET /api/dead-letters/{letter_id}", "POST /api/dead-letters/{letter_id}/replay",
    "POST /api/dead-letters/{letter_id}/drop", "POST /api/jobs/{jobId}/items",
    "POST /api/jobs/{jobId}/files",
    "DELETE /api/jobs/{jobId}", "DELETE /api/files/{file_id}", "DELETE /api/exports/{export_id}",
    "GET /api/ingestion/{name}/files", "POST /api/ingestion/scan",
}  # fmt: skip
#: Routes for admins; others get 403.
ADMINS = {
    "GET /api/users", "POST /api/users", "PATCH /api/users/{name}", "POST /api/users/{name}/link",
    "POST /api/gates/{name}/close", "POST /api/gates/{name}/open", "PUT /api/schedules/{name}",
    "DELETE /api/schedules/{name}", "PUT /api/kill-switches/{scope}",
    "DELETE /api/kill-switches/{scope}", "PUT /api/flags/{name}", "DELETE /api/users/{name}",
    "PUT /api/ingestion/{name}", "DELETE /api/ingestion/{name}",
}  # fmt: skip
#: What a reader, who changes nothing, may still ask for by something else than GET.
READERS_OWN = {
    "DELETE /api/session", "PUT /api/session/password", "POST /api/tokens",
    "DELETE /api/tokens/{token_id}", "POST /api/jobs/{jobId}/export",
}  # fmt: skip

BODIES: dict[str, Any] = {
    "POST /api/jobs": {"pipeline": "lengths"},
    "POST /api/jobs/{jobId}/reprocess": {},
    "POST /api/jobs/{jobId}/skip": {"itemIds": [1]},
    "POST /api/operations": {"kind": "cancel", "filter": {"pipeline": "lengths"}},
    "POST /api/operations/preview": {"kind": "cancel", "filter": {"pipeline": "lengths"}},
    "POST /api/users": {"name": "eve"},
    "PATCH /api/users/{name}": {"role": "admin"},
    "POST /api/gates/{name}/close": {"seconds": 1},
    "PUT /api/schedules/{name}": {"pipeline": "lengths", "cron": "0 6 * * *"},
    "PUT /api/kill-switches/{scope}": {},
    "PUT /api/ingestion/{name}": {"kind": "folder", "address": "/in", "pipeline": "lengths"},
    "POST /api/ingestion/scan": {"name": "ada"},
    "PUT /api/flags/{name}": {"value": False},
    "PUT /api/jobs/{jobId}/items/{seq}/ruling": {"kind": "reject", "version": 0},
    "POST /api/jobs/{jobId}/items": [{"title": "elm"}],
    "POST /api/jobs/{jobId}/files": {"fileId": 1},
    "POST /api/tokens": {"name": "mine"},
    "PUT /api/session/password": {"password": "long enough"},
}


def routes() -> Iterator[str]:
    for each in api_routers():
        for route in each.routes:
            assert isinstance(route, APIRoute)
            for method in route.methods:
                yield f"{method} {route.path_format}"


def test_every_route_has_a_case() -> None:
    cases = [OPEN, OWN, OWNED, ADMINS]
    assert set(routes()) == set().union(*cases)
    assert sum(map(len, cases)) == len(set().union(*cases))
    assert set(routes()) >= READERS_OWN


async def _things(server: ApiServer) -> dict[str, str]:
    """One of everything, ada's, by the names that the paths use."""
    ada = await server.person("ada")
    job = await finished(server, ada, "chair", "broken")
    image = await ada.post("/api/files", files={"file": ("chair.png", png())})
    store = server.parts.store
    export_id = await open_console(store).exports.add_export(
        NewExport("ada", job["id"], "csv", [], False)
    )
    new = NewOperation("ada", "cancel", {}, [job["id"]], 1)
    operation_id = await open_console(store).operations.add(new)
    await open_console(store).operations.lease(operation_id, "somebody")
    streams = await store.streams.of_job(job["id"])
    await execute(
        store,
        "insert into dead_letters (kind, job_id, seq, pipeline, code, message, state,"
        " created_at) values ('item', :job_id, 2, 'lengths', 'CRASHED', 'x', 'OPEN', @now)",
        job_id=job["id"],
    )
    adapter = NewAdapter("ada", AdapterKind.FOLDER, "/in", "lengths", "ada")
    await open_console(store).adapters.set_adapter(adapter, "ada")
    letters = await open_console(store).dead_letters.page(None, "OPEN", 10)
    tokens = await open_console(store).people.tokens("ada")
    return {
        "jobId": str(job["id"]),
        "seq": "1",
        "file_id": str(job["fileId"]),
        "image_id": str(image.json()["id"]),
        "export_id": str(export_id),
        "operation_id": str(operation_id),
        "stream_id": str(streams[0].id),
        "letter_id": str(letters[0]["id"]),
        "token_id": str(tokens[0].id),
        "name": "ada",
        "scope": "pipeline:lengths",
        "token": "x",
    }


def _filled(route: str, things: dict[str, str]) -> tuple[str, str, dict[str, Any]]:
    method, _, path = route.partition(" ")
    if "flags" in path:
        things = {**things, "name": "ingest"}
    for name, value in things.items():
        path = path.replace(f"{{{name}}}", value)
    options: dict[str, Any] = {}
    if route in BODIES:
        options["json"] = BODIES[route]
    if path.endswith("/export"):
        options["params"] = {"format": "csv"}
    return method, path, options


async def test_another_persons_things_do_not_exist(server: ApiServer) -> None:
    things = await _things(server)
    ben = await server.person("ben")
    wrong = {}
    for route in sorted(OWNED):
        method, path, options = _filled(route, things)
        reply = await ben.request(method, path, **options)
        if reply.status_code != 404:
            wrong[route] = (reply.status_code, reply.text)
    assert wrong == {}


async def test_admins_routes_are_closed_to_others(server: ApiServer) -> None:
    things = await _things(server)
    for role in ("operator", "reader"):
        client = await server.person(f"{role}-1", role)
        for route in sorted(ADMINS):
            method, path, options = _filled(route, things)
            reply = await client.request(method, path, **options)
            assert reply.status_code == 403, route


async def test_every_route_requires_a_login(server: ApiServer) -> None:
    things = await _things(server)
    nobody = server.anybody()
    for route in sorted(OWN | OWNED | ADMINS):
        method, path, options = _filled(route, things)
        reply = await nobody.request(method, path, **options)
        # A switched-off feature or pressure may be reported first; nothing else.
        assert reply.status_code == 401, (route, reply.text)


async def test_reader_sees_all_and_changes_nothing(server: ApiServer) -> None:
    things = await _things(server)
    reader = await server.person("rita", "reader")
    theirs = {"export_id", "token_id"}
    for route in sorted(OWN | OWNED):
        method, path, options = _filled(route, things)
        if route == "GET /api/events" or any(f"{{{name}}}" in route for name in theirs):
            continue
        if method == "GET":
            reply = await reader.request(method, path, **options)
            assert reply.status_code == 200, (route, reply.text)
        elif route not in READERS_OWN:
            reply = await reader.request(method, path, **options)
            assert reply.status_code == 403, (route, reply.text)


async def test_lists_show_each_person_their_own(server: ApiServer) -> None:
    await _things(server)
    ben = await server.person("ben")
    for path in ("jobs", "files", "exports", "operations", "streams", "dead-letters"):
        (found,) = [
            value
            for value in (await ben.get(f"/api/{path}")).json().values()
            if isinstance(value, list)
        ]
        assert found == [], path
    told = (await ben.get("/api/audit")).json()["entries"]
    assert {entry["actor"] for entry in told} <= {"ben"}


async def test_operation_on_another_users_job_finds_none(server: ApiServer) -> None:
    things = await _things(server)
    ben = await server.person("ben")
    for filter in ({"jobIds": [int(things["jobId"])]}, {"pipeline": "lengths"}):
        body = {"kind": "cancel", "filter": filter}
        assert (await ben.post("/api/operations", json=body)).status_code == 404


async def test_another_users_file_starts_no_job(server: ApiServer) -> None:
    things = await _things(server)
    ben = await server.person("ben")
    body = {"pipeline": "lengths", "fileId": int(things["file_id"])}
    assert (await ben.post("/api/jobs", json=body)).status_code == 404


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_admin_sees_everything(database_url: str, tmp_path: Path) -> None:
    async with ApiServer(database_url, tmp_path) as server:
        things = await _things(server)
        admin = await server.person("root", "admin")
        for route in sorted(OWNED):
            method, path, options = _filled(route, things)
            if method == "GET" and not path.endswith("/download"):
                reply = await admin.request(method, path, **options)
                assert reply.status_code == 200, route
