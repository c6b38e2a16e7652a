"""What an operator tries to get around the rules of meetings: forged records, the service's secrets
at a server of their own, streams that break pages."""

from __future__ import annotations

import json
import re
from collections.abc import AsyncIterator
from typing import Any

import httpx2
import pytest

from holdfast.cli.api_parts import opened_parts
from holdfast.configuration import load_settings
from holdfast.errors import UserError
from holdfast.kernel import NewJob, NewStream, Store
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.server.api_app import create_app
from holdfast.server.site import add_pages
from holdfast_meetings.options import MeetingsOptions
from holdfast_meetings.web import PACK
from pipelines.meetings.tests.town import Town
from tests.store.checks import execute
from tests.world import World, json_answer

OPTIONS = {"municipality_id": 1, "subdomain": "x", "document_type": "agenda", "url": "https://x.example",
           "mode": "full", "window": ["2026-09-01", "2026-11-30"]}  # fmt: skip
FORGED = b'{"id":"zz","meeting":"Council","date":"2026-11-10","page":1,"text":"OVERWRITTEN"}\n'
TEMPLATE = "https://{subdomain}.civic.band"


@pytest.fixture
async def town(store: Store) -> Town:
    """Registered by the admin; its site is never asked."""
    town = Town(store, "http://127.0.0.1:1")
    await town.add(name="Alameda")
    return town


class People:
    """A client for each role, logged in."""

    def __init__(self, app: Any, parts: Any) -> None:
        self._transport = httpx2.ASGITransport(app=app)
        self._parts = parts

    async def client(self, name: str, role: str) -> httpx2.AsyncClient:
        await self._parts.accounts.add_user(name, role, None, "tester")
        token = await self._parts.accounts.make_token(name, "test", None, "tester")
        headers = {"Authorization": f"Bearer {token.value}"}
        return httpx2.AsyncClient(
            transport=self._transport, base_url="http://test", headers=headers
        )


@pytest.fixture
async def people(
    town: Town, database_url: str, request: pytest.FixtureRequest
) -> AsyncIterator[People]:
    """Settings can be given as the fixture's parameter."""
    own = getattr(request, "param", {})
    settings = load_settings({"HOLDFAST_DATABASE_URL": database_url, **own})
    async with opened_parts(settings, {"meetings": town.pipeline}) as parts:
        app = create_app(parts)
        add_pages(app, [PACK])
        yield People(app, parts)


async def test_upload_into_a_planning_pipeline_is_refused(people: People, town: Town) -> None:
    """a) forged records"""
    alice = await people.client("alice", "operator")
    form = {"pipeline": "meetings", "options": json.dumps(OPTIONS)}
    reply = await alice.post("/api/jobs", data=form, files={"file": ("row.jsonl", FORGED)})
    assert reply.status_code in (400, 422)
    assert "plan" in reply.json()["detail"]
    assert await town.jobs() == []


async def test_discovery_of_a_planning_pipeline_is_refused(people: People, town: Town) -> None:
    """b) and c), by the API, for admins too: only the plan knows a town's options."""
    for name, role in (("alice", "operator"), ("root", "admin")):
        client = await people.client(name, role)
        reply = await client.post("/api/jobs", json={"pipeline": "meetings", "options": OPTIONS})
        assert reply.status_code == 422 and "plan" in reply.json()["detail"]
    assert await town.jobs() == []


async def test_page_new_job_refuses_a_planning_pipeline(people: People, town: Town) -> None:
    alice = await people.client("alice", "operator")
    lines = "\n".join(f"{name}={json.dumps(value)}" for name, value in OPTIONS.items())
    form = {"pipeline": "meetings", "options": lines}
    for path in ("/new", "/new/try"):
        reply = await alice.post(path, data=form)
        assert reply.status_code == 422 and "plan" in reply.text
    assert await town.jobs() == []
    page = (await alice.get("/new")).text
    assert not re.search(r'value="meetings"', page), "it is offered, and then refused"


async def test_every_door_is_the_same_one(town: Town) -> None:
    """Messages, schedules and commands make their jobs through this."""
    control = Control(town.store, "alice", town.log)
    with pytest.raises(UserError, match="plan"):
        await control.new_job(JobRequest(town.pipeline, OPTIONS, owner="bob"))
    assert await town.jobs() == []


async def test_stream_with_unknown_mode_is_shown(people: People, town: Town) -> None:
    """c) Whatever is stored: a page says so instead of failing."""
    for source, mode in (("alameda.ca:agenda", None), ("odd", "sideways")):
        new = NewJob("meetings", "odd", [NewStream(source, "f")], mode=mode, owner_id="tester")
        await town.store.jobs.create(new, "tester")
    root = await people.client("root", "admin")
    found = (await root.get("/api/meetings/streams")).json()["streams"]
    assert [(each["mode"], each["documentType"]) for each in found] == [
        ("", "agenda"),
        ("sideways", ""),
    ]
    paths = ["/meetings/streams", "/meetings/municipalities/alameda.ca", "/meetings", "/streams"]
    paths += [f"/meetings/streams/{each['id']}" for each in found]
    paths += [f"/api/meetings/streams/{each['id']}" for each in found]
    replies = {path: (await root.get(path)).status_code for path in paths}
    odd = f"/meetings/streams/{found[1]['id']}"
    assert {path for path, status in replies.items() if status != 200} <= {odd}
    assert replies[odd] in (200, 404)


@pytest.mark.parametrize("type", ["nonsense", "agenda\0", "AGENDA"])
async def test_backfill_of_an_unknown_type_is_refused(people: People, type: str) -> None:
    """V12.3"""
    root = await people.client("root", "admin")
    reply = await root.post("/meetings/municipalities/alameda.ca/backfill", data={"type": type})
    assert reply.status_code in (400, 422)


@pytest.mark.parametrize("people", [{"HOLDFAST_QUOTA_JOBS": "1"}], indirect=True)
async def test_backfills_count_against_the_quota_of_jobs(people: People, town: Town) -> None:
    alice = await people.client("alice", "operator")
    path = "/api/meetings/municipalities/alameda.ca/backfill"
    assert (await alice.post(path, json={"types": ["agenda"]})).status_code == 200
    refused = await alice.post(path, json={"types": ["minutes"]})
    assert refused.status_code == 409 and "HOLDFAST_QUOTA_JOBS" in refused.text
    assert len(await town.jobs()) == 1


async def test_backfill_that_is_sent_again_with_its_key_is_one(people: People, town: Town) -> None:
    alice = await people.client("alice", "operator")
    path, key = "/api/meetings/municipalities/alameda.ca/backfill", {"Idempotency-Key": "k1"}
    first = await alice.post(path, json={"types": ["agenda"]}, headers=key)
    again = await alice.post(path, json={"types": ["agenda"]}, headers=key)
    assert first.json()["decisions"][0]["action"] == "start full"
    assert (again.headers["Idempotency-Replayed"], again.json()) == ("true", first.json())
    # As if its server had been killed.
    lost = "update taken_keys set status = null, body = null"
    await execute(town.store, lost)
    (decision,) = (await alice.post(path, json={"types": ["agenda"]}, headers=key)).json()[
        "decisions"
    ]
    assert (decision["action"], decision["documentType"]) == ("job 1", "agenda")
    assert len(await town.jobs()) == 1


async def test_secrets_go_only_where_settings_say(store: Store) -> None:
    """b) The site of a town may be anywhere; the service's secrets are not sent everywhere."""
    async with World() as world:
        world.on("/meetings/agendas.json", json_answer({"rows": []}))
        world.on("/meetings/minutes.json", json_answer({"rows": []}))
        town = Town(store, world.url(""), api_key="API-KEY", service_secret="SERVICE")
        await town.add(name="Elsewhere")
        await town.backfill()
        assert world.requests
        sent = [request.headers for request in world.requests]
        assert not any({"authorization", "x-service-secret"} & each.keys() for each in sent)

        world.requests.clear()
        named = Town(store, world.url(""), api_key="API-KEY", service_secret="SERVICE",
                     secret_hosts=f"http://127.0.0.1:{world.port}")  # fmt: skip
        await named.backfill(force=True)
        assert world.requests[0].headers["authorization"] == "Bearer API-KEY"
        assert world.requests[0].headers["x-service-secret"] == "SERVICE"


@pytest.mark.parametrize(
    ("url", "template", "more", "sent"),
    [
        ("https://alameda.ca.civic.band/x", TEMPLATE, "", True),
        ("https://civic.band", TEMPLATE, "", False),
        ("https://civic.band.evil.example", TEMPLATE, "", False),
        ("https://evilcivic.band", TEMPLATE, "", False),
        ("http://alameda.ca.civic.band", TEMPLATE, "", False),
        ("https://alameda.ca.civic.band:8443", TEMPLATE, "", False),
        ("https://user@alameda.ca.civic.band@evil.example/", TEMPLATE, "", False),
        ("https://[", TEMPLATE, "", False),
        ("https://other.example", TEMPLATE, "other.example, *.more.example", True),
        ("https://a.more.example", TEMPLATE, "other.example, *.more.example", True),
        ("https://more.example", TEMPLATE, "other.example, *.more.example", False),
        ("http://other.example", TEMPLATE, "other.example", False),
        ("http://localhost:8001/alameda.ca", "http://localhost:8001/{subdomain}", "", True),
        ("http://localhost:8002/alameda.ca", "http://localhost:8001/{subdomain}", "", False),
        ("https://x.example", "https://{subdomain}", "", False),
    ],
)
def test_hosts_that_receive_the_secrets(url: str, template: str, more: str, sent: bool) -> None:
    options = MeetingsOptions(url=template, secret_hosts=more, api_key="k", service_secret="s")
    assert ("authorization" in options.headers(url)) is sent
    assert ("x-service-secret" in options.headers(url)) is sent
