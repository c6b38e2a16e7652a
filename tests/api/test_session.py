"""Who comes in, how, and what keeps others out."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack, aclosing

import httpx2
import pytest

from holdfast.features.jobs.live import Feed
from tests.api.server import PASSWORD, ApiServer
from tests.store.checks import fetch


async def _log_in(
    server: ApiServer, name: str = "ada", password: str = PASSWORD
) -> tuple[httpx2.AsyncClient, httpx2.Response]:
    client = server.anybody()
    return client, await client.post("/api/session", json={"name": name, "password": password})


async def test_password_begins_a_session_that_the_cookie_carries(server: ApiServer) -> None:
    await server.parts.accounts.add_user("ada", "operator", PASSWORD, "tester")
    client, reply = await _log_in(server)
    assert reply.status_code == 200
    cookie = reply.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie
    told = (await client.get("/api/session")).json()
    assert (told["name"], told["role"]) == ("ada", "operator")


async def test_change_by_cookie_needs_the_csrf_token(server: ApiServer) -> None:
    await server.parts.accounts.add_user("ada", "operator", PASSWORD, "tester")
    client, reply = await _log_in(server)
    body = {"name": "mine"}
    assert (await client.post("/api/tokens", json=body)).status_code == 403
    wrong = {"X-CSRF-Token": "0" * 64}
    assert (await client.post("/api/tokens", json=body, headers=wrong)).status_code == 403
    right = {"X-CSRF-Token": reply.json()["csrfToken"]}
    assert (await client.post("/api/tokens", json=body, headers=right)).status_code == 201


async def test_forged_cookie_is_refused(server: ApiServer) -> None:
    client = server.anybody(cookies={"holdfast_session": "abc.def"})
    assert (await client.get("/api/session")).status_code == 401


async def test_logging_out_ends_the_session_on_the_server(server: ApiServer) -> None:
    await server.parts.accounts.add_user("ada", "operator", PASSWORD, "tester")
    client, reply = await _log_in(server)
    kept = server.anybody(cookies=dict(client.cookies))
    token = {"X-CSRF-Token": reply.json()["csrfToken"]}
    assert (await client.delete("/api/session", headers=token)).status_code == 204
    assert (await kept.get("/api/session")).status_code == 401


async def test_wrong_passwords_are_throttled_by_name(server: ApiServer) -> None:
    await server.parts.accounts.add_user("ada", "operator", PASSWORD, "tester")
    for _ in range(5):
        _, reply = await _log_in(server, password="wrong password")
        assert reply.status_code == 401
    _, reply = await _log_in(server)
    assert reply.status_code == 429
    assert int(reply.headers["retry-after"]) >= 1


async def test_crowd_of_guesses_is_throttled_as_well(server: ApiServer) -> None:
    await server.parts.accounts.add_user("ada", "operator", PASSWORD, "tester")
    guesses = (_log_in(server, password=f"guess number {number}") for number in range(30))
    statuses = [reply.status_code for _, reply in await asyncio.gather(*guesses)]
    assert set(statuses) == {401, 429}
    assert statuses.count(401) <= 7  # five are free, and one more may be under way


async def test_live_counters_end_for_whom_they_are_not_any_more(server: ApiServer) -> None:
    names = ("logged-out", "disabled", "of-another-role")
    async with AsyncExitStack() as stack:
        streams = []
        for name in names:
            await server.parts.accounts.add_user(name, "reader", PASSWORD, "tester")
            client, reply = await _log_in(server, name)
            events = await stack.enter_async_context(client.stream("GET", "/api/events"))
            streams.append(events.aiter_lines())
            await anext(streams[-1])
            if name == "logged-out":
                token = {"X-CSRF-Token": reply.json()["csrfToken"]}
                assert (await client.delete("/api/session", headers=token)).status_code == 204
        await server.parts.accounts.change_user("disabled", "tester", disabled=True)
        await server.parts.accounts.change_user("of-another-role", "tester", role="operator")
        for lines in streams:
            async for _ in lines:
                pass  # until the server ends it


async def test_one_user_cannot_use_all_live_pages(server: ApiServer) -> None:
    feed: Feed = server.parts.feed
    async with AsyncExitStack() as stack:
        for _ in range(500):
            listening = await stack.enter_async_context(aclosing(feed.listen("ada", "ada", None)))
            await anext(listening)
        ada, ben = await server.person("ada"), await server.person("ben")
        assert (await ada.get("/api/events")).status_code == 429
        async with ben.stream("GET", "/api/events") as events:
            assert events.status_code == 200


async def test_form_of_another_site_does_not_log_in(server: ApiServer) -> None:
    await server.parts.accounts.add_user("ada", "operator", PASSWORD, "tester")
    form = {"name": "ada", "password": PASSWORD}
    expected = {"cross-site": 403, "same-site": 403, "same-origin": 303, None: 303}
    for site, status in expected.items():
        headers = {} if site is None else {"Sec-Fetch-Site": site}
        reply = await server.anybody().post("/login", data=form, headers=headers)
        assert reply.status_code == status, site
        assert ("set-cookie" in reply.headers) == (status == 303)


async def test_unknown_name_and_wrong_password_look_alike(server: ApiServer) -> None:
    await server.parts.accounts.add_user("ada", "operator", PASSWORD, "tester")
    _, unknown = await _log_in(server, "nobody")
    _, wrong = await _log_in(server, "ada", "not the password")
    assert (unknown.status_code, unknown.json()) == (wrong.status_code, wrong.json())


async def test_first_start_makes_an_admin_and_a_link_that_works_once(server: ApiServer) -> None:
    link = await server.parts.accounts.first_admin()
    client = server.anybody()
    reply = await client.post("/api/session/link", json={"token": link})
    assert (reply.status_code, reply.json()["role"]) == (200, "admin")
    assert (await client.get("/api/session")).json()["role"] == "admin"
    again = await server.anybody().post("/api/session/link", json={"token": link})
    assert again.status_code == 401


async def test_new_link_makes_the_older_one_worthless(server: ApiServer) -> None:
    older = await server.parts.accounts.first_admin()
    newer = await server.parts.accounts.first_admin()
    client = server.anybody()
    assert (await client.post("/api/session/link", json={"token": older})).status_code == 401
    assert (await client.post("/api/session/link", json={"token": newer})).status_code == 200


async def test_new_password_needs_the_current_one_and_ends_other_sessions(
    server: ApiServer,
) -> None:
    await server.parts.accounts.add_user("ada", "operator", PASSWORD, "tester")
    other, _ = await _log_in(server)
    client, reply = await _log_in(server)
    token = {"X-CSRF-Token": reply.json()["csrfToken"]}
    body = {"current": "wrong one", "password": "a better one"}
    refused = await client.put("/api/session/password", json=body, headers=token)
    assert refused.status_code == 403
    body["current"] = PASSWORD
    changed = await client.put("/api/session/password", json=body, headers=token)
    assert changed.status_code == 204
    assert (await client.get("/api/session")).status_code == 200
    assert (await other.get("/api/session")).status_code == 401


async def test_disabled_account_is_out_at_once(server: ApiServer) -> None:
    ada = await server.person("ada")
    admin = await server.signed_in("root", "admin")
    assert (await ada.get("/api/session")).status_code == 200
    reply = await admin.patch("/api/users/ada", json={"disabled": True})
    assert reply.status_code == 200
    assert (await ada.get("/api/session")).status_code == 401


async def test_last_admin_stays_admin(server: ApiServer) -> None:
    admin = await server.signed_in("root", "admin")
    for change in ({"disabled": True}, {"role": "reader"}):
        assert (await admin.patch("/api/users/root", json=change)).status_code == 409


async def test_revoked_token_opens_nothing(server: ApiServer) -> None:
    ada = await server.person("ada")
    made = (await ada.post("/api/tokens", json={"name": "nightly", "days": 1})).json()
    client = server.anybody(headers={"Authorization": f"Bearer {made['token']}"})
    assert (await client.get("/api/session")).json()["name"] == "ada"
    assert (await ada.delete(f"/api/tokens/{made['id']}")).status_code == 204
    assert (await client.get("/api/session")).status_code == 401


async def test_secrets_are_kept_only_as_hashes(server: ApiServer) -> None:
    await server.parts.accounts.add_user("ada", "operator", PASSWORD, "tester")
    made = await server.parts.accounts.make_token("ada", "test", None, "tester")
    session = await server.parts.accounts.log_in("ada", PASSWORD, None)
    link = await server.parts.accounts.make_link("ada", "tester")
    tables = ("users", "tokens", "sessions", "login_links", "audit")
    rows = [await fetch(server.parts.store, f"select * from {name}") for name in tables]
    kept = str([[tuple(row) for row in table] for table in rows])
    for secret in (PASSWORD, made.value, session, link):
        assert secret not in kept


@pytest.mark.parametrize("path", ["/api/session", "/healthz", "/nowhere"])
async def test_every_answer_keeps_browsers_careful(server: ApiServer, path: str) -> None:
    headers = (await server.anybody().get(path)).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy and "unsafe" not in policy
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"


async def test_errors_are_problems(server: ApiServer) -> None:
    reply = await server.anybody().get("/api/jobs")
    assert reply.headers["content-type"] == "application/problem+json"
    assert reply.json()["status"] == reply.status_code == 401
    assert reply.json()["hint"]
