"""The webhook: its replies, its secret, and what it starts."""

from __future__ import annotations

import asyncio
import json
import re
import subprocess
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest

from holdfast.cli.api_parts import opened_parts
from holdfast.configuration import load_settings
from holdfast.errors import UserError
from holdfast.kernel import Store
from holdfast.server.api_app import create_app
from holdfast.server.site import add_pages
from holdfast_meetings.web import PACK
from pipelines.meetings.tests.front import Front
from pipelines.meetings.tests.site import Site, generated
from pipelines.meetings.tests.town import Town

SECRET = "s3cret"
PATH = "/munis/api/update/alameda.ca/"
GOOD = {"Authorization": f"Bearer {SECRET}"}


@asynccontextmanager
async def client_of(town: Town, url: str) -> AsyncIterator[httpx2.AsyncClient]:
    """Asks the API that serves the town's pipeline."""
    settings = load_settings({"HOLDFAST_DATABASE_URL": url})
    async with opened_parts(settings, {"meetings": town.pipeline}) as parts:
        app = create_app(parts)
        add_pages(app, [PACK])
        transport = httpx2.ASGITransport(app=app)
        async with httpx2.AsyncClient(transport=transport, base_url="http://test") as client:
            yield client


@pytest.fixture
async def unknown(store: Store) -> Town:
    """A town that is not registered."""
    return Town(store, "http://127.0.0.1:1", webhook_secret=SECRET)


@pytest.fixture
async def client(unknown: Town, database_url: str) -> AsyncIterator[httpx2.AsyncClient]:
    async with client_of(unknown, database_url) as client:
        yield client


@pytest.mark.parametrize("popup", ["plain words", "{broken", '{"a": 1}', 7, ["a"], "[" * 400])
async def test_popup_data_is_kept_whatever_it_is(
    client: httpx2.AsyncClient, unknown: Town, popup: Any
) -> None:
    body = {"name": "Alameda", "popup_data": popup}
    assert (await client.put(PATH, json=body, headers=GOOD)).status_code == 201


async def test_popup_data_that_nests_too_deep_is_refused(client: httpx2.AsyncClient) -> None:
    body = '{"name": "Alameda", "popup_data": ' + "[" * 300 + "]" * 300 + "}"
    assert (await client.put(PATH, content=body, headers=GOOD)).status_code == 400


async def test_new_municipality_is_created_and_its_full_backfill_started(
    client: httpx2.AsyncClient, unknown: Town
) -> None:
    body = {"name": "Alameda", "state": "CA", "country": "US", "kind": "city", "pages": 547,
            "last_updated": "2026-01-01", "latitude": 37.7, "longitude": "-122.2",
            "popup_data": {"a": 1}, "subdomain": "other.ca"}  # fmt: skip
    reply = await client.put(PATH, json=body, headers=GOOD)
    assert reply.status_code == 201
    body = reply.json()
    assert (body["action"], body["subdomain"]) == ("created", "alameda.ca")
    assert [name for name, _ in await unknown.jobs()] == [
        "alameda.ca agenda full",
        "alameda.ca minutes full",
    ]
    (row,) = await unknown.fetch("select subdomain, name, pages, url from meetings_municipalities")
    assert row == ("alameda.ca", "Alameda", 547, "https://alameda.ca.civic.band")


async def test_webhook_that_cannot_start_its_work_is_to_be_sent_again(
    client: httpx2.AsyncClient, unknown: Town
) -> None:
    await unknown.control.switch("pipeline:meetings", True, "held")
    reply = await client.put(PATH, json={"name": "Alameda"}, headers=GOOD)
    assert reply.status_code == 503 and "kill switch" in reply.json()["error"]
    assert await unknown.fetch("select subdomain from meetings_municipalities") == []
    await unknown.control.switch("pipeline:meetings", False, "")
    assert (await client.put(PATH, json={"name": "Alameda"}, headers=GOOD)).status_code == 201
    assert len(await unknown.jobs()) == 2


async def test_second_webhook_updates_and_starts_nothing_where_nothing_changed(
    client: httpx2.AsyncClient, unknown: Town
) -> None:
    body = {"name": "Alameda", "pages": 10, "last_updated": "2026-01-01"}
    await client.post(PATH, json=body, headers=GOOD)
    reply = await client.post(
        PATH, json={**body, "kind": "city"}, headers={"Authorization": SECRET}
    )
    assert (reply.status_code, reply.json()["action"]) == (200, "updated")
    assert reply.json()["decisions"] == []
    assert len(await unknown.jobs()) == 2


@pytest.mark.parametrize("change", [{"pages": 11}, {"last_updated": "2026-01-02"}])
async def test_change_of_pages_or_date_starts_work(
    town: Town, site: Site, database_url: str, change: dict[str, Any]
) -> None:
    site.add("minutes", generated(50))
    async with client_of(town, database_url) as client:
        body = {"name": "Alameda", "pages": 10, "last_updated": "2026-01-01"}
        assert (await client.put(PATH, json=body, headers=GOOD)).status_code == 200
        await town.work()
        reply = await client.put(PATH, json={**body, **change}, headers=GOOD)
    actions = [one["action"] for one in reply.json()["decisions"]]
    assert actions == ["start incremental"] * 2
    await town.work()
    assert await town.pages() == site.rows("minutes")


@pytest.mark.parametrize(
    ("headers", "secret"),
    [
        ({}, SECRET),
        ({"Authorization": "Bearer wrong"}, SECRET),
        ({"Authorization": "Bearer "}, SECRET),
        ({"Authorization": "Bearer "}, ""),
        ({"Authorization": ""}, ""),
        ({"Authorization": "Bearer s3cret"}, ""),
    ],
)
async def test_wrong_secret_and_unset_secret_are_refused(
    store: Store, database_url: str, headers: dict[str, str], secret: str
) -> None:
    unknown = Town(store, "http://127.0.0.1:1", webhook_secret=secret)
    async with client_of(unknown, database_url) as client:
        reply = await client.put(PATH, json={"name": "Alameda"}, headers=headers)
    assert (reply.status_code, reply.json()) == (401, {"error": "Invalid webhook secret"})
    assert not await unknown.fetch("select 1 from meetings_municipalities")


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"{", "Invalid JSON"),
        (b"[1]", "Invalid JSON"),
        (b"", "Invalid JSON"),
        (b"{}", "name field is required"),
        (b'{"name": ""}', "name field is required"),
        (b'{"name": 3}', "name field is required"),
        (b'{"name": "A", "pages": "many"}', "pages must be a number"),
        (b'{"name": "A", "pages": -1}', "pages is out of bounds"),
        (b'{"name": "A", "pages": 1e400}', "Invalid JSON"),
        (b'{"name": "A", "kind": ["x"]}', "kind must be text of at most 1000 characters"),
    ],
)
async def test_bad_body_is_refused_with_the_reason(
    client: httpx2.AsyncClient, unknown: Town, body: bytes, message: str
) -> None:
    reply = await client.post(PATH, content=body, headers=GOOD)
    assert (reply.status_code, reply.json()) == (400, {"error": message})
    assert not await unknown.fetch("select 1 from meetings_municipalities")


async def test_body_that_is_too_large_is_refused(client: httpx2.AsyncClient, unknown: Town) -> None:
    reply = await client.post(PATH, content=b'{"name": "' + b"x" * 2_000_000, headers=GOOD)
    assert reply.status_code == 413
    assert reply.headers["content-type"] == "application/problem+json"
    assert not await unknown.fetch("select 1 from meetings_municipalities")


async def test_unknown_path_beside_it_answers_as_an_api(client: httpx2.AsyncClient) -> None:
    reply = await client.get("/munis/api/nothing")
    assert reply.status_code == 404
    assert reply.headers["content-type"] == "application/problem+json"


async def test_bad_subdomain_is_refused(client: httpx2.AsyncClient) -> None:
    path = "/munis/api/update/no_such!town/"
    reply = await client.post(path, json={"name": "A"}, headers=GOOD)
    assert reply.status_code == 400 and "is not a subdomain" in reply.json()["error"]


async def test_two_webhooks_at_once_make_one_chain(
    town: Town, site: Site, front: Front, database_url: str
) -> None:
    site.add("minutes", generated(300))
    async with client_of(town, database_url) as client:
        replies = await asyncio.gather(
            *(
                client.put(PATH, json={"name": "Alameda", "pages": number}, headers=GOOD)
                for number in range(1, 6)
            )
        )
    assert [reply.status_code for reply in replies] == [200] * 5
    assert len(await town.jobs()) == 2
    await town.work()
    names = [name for name, _ in await town.jobs()]
    assert sorted(names) == sorted(
        f"alameda.ca {kind} {mode}"
        for kind in ("agenda", "minutes")
        for mode in ("full", "incremental")
    )
    assert max(front.walked("minutes").values()) == 1
    assert await town.pages() == site.rows("minutes")


async def test_webhook_does_not_move_a_site(town: Town, database_url: str) -> None:
    async with client_of(town, database_url) as client:
        body = {"name": "Alameda", "url": "http://elsewhere.example", "zone": "Mars"}
        assert (await client.put(PATH, json=body, headers=GOOD)).status_code == 200
    assert await town.fetch("select url, zone from meetings_municipalities") == [(town.url, "UTC")]


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
def test_api_serves_the_webhook_of_the_built_in_pipeline(
    start_holdfast: Callable[..., subprocess.Popen[str]],
    run_holdfast: Callable[..., subprocess.CompletedProcess[str]],
) -> None:
    served = start_holdfast(
        "api", "meetings", "--port", "0", env={"HOLDFAST_MEETINGS_WEBHOOK_SECRET": SECRET}
    )
    assert served.stderr is not None
    line = served.stderr.readline()
    found = re.search(r"http://[\d.:]+", line)
    assert found, line
    body = {"name": "Alameda", "pages": 3}
    refused = httpx2.put(f"{found[0]}{PATH}", json=body, timeout=30)
    assert refused.status_code == 401
    taken = httpx2.put(f"{found[0]}{PATH}", json=body, headers=GOOD, timeout=30)
    assert (taken.status_code, taken.json()["action"]) == (201, "created")
    listed = json.loads(run_holdfast("meetings", "list", "--json").stdout)
    assert [one["subdomain"] for one in listed] == ["alameda.ca"]


@pytest.mark.parametrize("url", ["https://user:secret@site.example", "http://key@site.example/x"])
async def test_url_with_a_password_is_refused_before_it_is_read(unknown: Town, url: str) -> None:
    with pytest.raises(UserError, match="must not contain a user or password"):
        await unknown.ask({"add": {"subdomain": "x.ca", "url": url}})
    assert not await unknown.fetch("select 1 from meetings_municipalities")
