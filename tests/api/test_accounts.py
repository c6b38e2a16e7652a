"""Passwords, second factors, tokens and sessions, as an attacker would try them."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime
from typing import Any

import httpx2
import pytest

from holdfast.features.accounts import totp
from holdfast.features.accounts.passwords import common_words, is_common
from tests.api.server import ApiServer
from tests.store.checks import execute, fetch

PASSWORD = "seven lanterns drift"


async def _account(server: ApiServer, name: str, role: str = "operator") -> None:
    await server.parts.accounts.add_user(name, role, PASSWORD, "tester")


async def _logged_in(server: ApiServer, name: str, **more: str) -> httpx2.AsyncClient:
    client = server.anybody()
    body = {"name": name, "password": PASSWORD, **more}
    reply = await client.post("/api/session", json=body)
    assert reply.status_code == 200, reply.text
    client.headers["X-CSRF-Token"] = reply.json()["csrfToken"]
    return client


async def _acts(server: ApiServer) -> list[tuple[Any, ...]]:
    return await fetch(server.parts.store, "select actor, action, subject from audit order by id")


async def test_failed_logins_and_logouts_are_audited(server: ApiServer) -> None:
    """What was typed as a name may be a password: only names are kept."""
    await _account(server, "ada")
    for name in ("ada", "hunter2hunter2"):
        body = {"name": name, "password": "wrong, I am afraid"}
        assert (await server.anybody().post("/api/session", json=body)).status_code == 401
    ada = await _logged_in(server, "ada")
    assert (await ada.delete("/api/session")).status_code == 204
    acts = await _acts(server)
    assert ("ada", "session.refused", "password") in acts
    assert ("unknown", "session.refused", "password") in acts
    assert ("ada", "session.ended", "") in acts
    assert "hunter2" not in str(acts)


async def test_kickoff_is_audited(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = (await ada.post("/api/jobs", json={"pipeline": "shelves"})).json()["id"]
    assert (await ada.post(f"/api/jobs/{job}/kickoff?durationMs=100")).status_code == 200
    assert ("ada", "kickoff", "") in await _acts(server)


async def test_reset_of_a_password_ends_tokens_links_and_sessions(server: ApiServer) -> None:
    await _account(server, "ada")
    token = await server.parts.accounts.make_token("ada", "old", None, "ada")
    link = await server.parts.accounts.make_link("ada", "tester")
    session = await _logged_in(server, "ada")
    await server.parts.accounts.change_user("ada", "root", password="another long sentence")
    by_token = server.anybody(headers={"Authorization": f"Bearer {token.value}"})
    assert (await by_token.get("/api/session")).status_code == 401
    assert (await session.get("/api/session")).status_code == 401
    used = await server.anybody().post("/api/session/link", json={"token": link})
    assert used.status_code == 401


async def test_token_sets_no_password_and_makes_no_way_in(server: ApiServer) -> None:
    root = await server.person("root", "admin")
    new = {"password": "a long new password"}
    assert (await root.put("/api/session/password", json=new)).status_code == 403
    assert (await root.patch("/api/users/root", json=new)).status_code == 403
    added = await root.post("/api/users", json={"name": "eve", "role": "admin", **new})
    assert added.status_code == 403
    assert (await root.post("/api/users/root/link")).status_code == 403
    assert (await root.post("/api/users", json={"name": "eve"})).status_code == 403
    await server.parts.accounts.add_user("bob", "operator", None, "tester")
    promoted = await root.patch("/api/users/bob", json={"role": "admin"})
    on_page = await root.post("/settings/users/bob", data={"role": "admin"})
    assert on_page.status_code in (403, 404)
    assert (await server.parts.console.people.user("bob")).role == "operator"
    assert (promoted.status_code, promoted.json()["detail"]) == (
        403,
        "a token cannot change an account",
    )


async def test_token_makes_none_that_outlives_it(server: ApiServer) -> None:
    await server.parts.accounts.add_user("ada", "operator", None, "tester")
    mother = await server.parts.accounts.make_token("ada", "mother", 5 * 86_400.0, "ada")
    ada = server.anybody(headers={"Authorization": f"Bearer {mother.value}"})
    assert (await ada.post("/api/tokens", json={"name": "for ever"})).status_code == 403
    assert (await ada.post("/api/tokens", json={"name": "longer", "days": 6})).status_code == 403
    made = await ada.post("/api/tokens", json={"name": "shorter", "days": 2})
    assert made.status_code == 201
    daughter = server.anybody(headers={"Authorization": f"Bearer {made.json()['token']}"})
    assert (await daughter.get("/api/session")).status_code == 200
    assert (await ada.delete(f"/api/tokens/{mother.id}")).status_code == 204
    assert (await daughter.get("/api/session")).status_code == 401


@pytest.mark.parametrize(
    "password",
    ["password1234", "P4ssw0rd2024!", "qwertyuiop123", "123456789012", "aaaaaaaaaaaa",
     "adminadminadmin", "Welcome2026!!", "iloveyou1234", "abcabcabcabc", "ada-lovelace", "short"],
)  # fmt: skip
async def test_passwords_that_are_guessed_first_are_refused(
    server: ApiServer, password: str
) -> None:
    await server.parts.accounts.add_user("adalovelace", "operator", None, "tester")
    link = await server.parts.accounts.make_link("adalovelace", "tester")
    client = server.anybody()
    begun = await client.post("/api/session/link", json={"token": link})
    client.headers["X-CSRF-Token"] = begun.json()["csrfToken"]
    reply = await client.put("/api/session/password", json={"password": password})
    assert reply.status_code == 422, password


def test_the_list_is_of_some_thousands_and_refuses_no_honest_password() -> None:
    assert len(common_words()) > 3000
    for password in (PASSWORD, "correct horse", "vH8#kd02Lmq!x", "the password of my aunt Ida"):
        assert not is_common(password), password


async def test_session_that_was_left_alone_is_over(server: ApiServer) -> None:
    await _account(server, "ada")
    ada = await _logged_in(server, "ada")
    await execute(server.parts.store, "update sessions set seen_at = @after(-80000)")
    assert (await ada.get("/api/session")).status_code == 200
    await execute(server.parts.store, "update sessions set seen_at = @after(-90000)")
    assert (await ada.get("/api/session")).status_code == 401


@pytest.mark.parametrize(
    ("seconds", "code"),
    [(59, "94287082"), (1111111109, "07081804"), (1111111111, "14050471"),
     (1234567890, "89005924"), (2000000000, "69279037"), (20000000000, "65353130")],
)  # fmt: skip
def test_codes_are_those_of_rfc_6238(seconds: int, code: str) -> None:
    secret = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"  # 12345678901234567890
    at = datetime.fromtimestamp(seconds, UTC)
    assert totp.code_at(secret, totp.step_at(at), 8) == code
    assert totp.fitting_step(secret, code[-6:], at) == seconds // 30
    assert totp.fitting_step(secret, "000000", at) is None


async def _enrolled(server: ApiServer, name: str) -> Any:
    """With a second factor whose next code was not used yet."""
    await _account(server, name, "admin")
    enrolment = await server.parts.second_factors.enrol(name)
    step = totp.step_at(server.parts.clock.now())
    code = totp.code_at(enrolment.secret, step - 1)
    assert await server.parts.second_factors.confirm(name, code)
    return enrolment


async def test_second_factor_is_asked_for_and_each_code_is_good_once(server: ApiServer) -> None:
    enrolment = await _enrolled(server, "root")
    body = {"name": "root", "password": PASSWORD}
    without = await server.anybody().post("/api/session", json=body)
    assert without.status_code == 401 and "second factor" in without.json()["detail"]
    wrong = await server.anybody().post("/api/session", json={**body, "code": "000000"})
    assert wrong.status_code == 401
    code = totp.code_at(enrolment.secret, totp.step_at(server.parts.clock.now()))
    replies = await asyncio.gather(
        *(server.anybody().post("/api/session", json={**body, "code": code}) for _ in range(3))
    )
    assert sorted(reply.status_code for reply in replies) == [200, 401, 401]
    recovery = enrolment.recovery_codes[0]
    await _logged_in(server, "root", code=recovery)
    again = await server.anybody().post("/api/session", json={**body, "code": recovery})
    assert again.status_code == 401
    kept = await fetch(server.parts.store, "select hash from recovery_codes")
    assert len(kept) == 9 and recovery not in str(kept)


async def test_codes_guessed_all_at_once_are_counted(server: ApiServer) -> None:
    """With a link, which is not used up by a wrong code."""
    await _enrolled(server, "root")
    link = await server.parts.accounts.make_link("root", "tester")
    bodies = [{"token": link, "code": f"{number:06}"} for number in range(40)]
    replies = await asyncio.gather(
        *(server.anybody().post("/api/session/link", json=body) for body in bodies)
    )
    tried = [reply for reply in replies if reply.status_code == 401]
    assert 1 <= len(tried) <= 10 and {reply.status_code for reply in replies} == {401, 429}


async def test_link_asks_for_the_code_too_and_is_not_used_up_by_a_wrong_one(
    server: ApiServer,
) -> None:
    enrolment = await _enrolled(server, "root")
    link = await server.parts.accounts.make_link("root", "tester")
    for code in ("", "000000"):
        reply = await server.anybody().post("/api/session/link", json={"token": link, "code": code})
        assert reply.status_code == 401
    code = totp.code_at(enrolment.secret, totp.step_at(server.parts.clock.now()))
    reply = await server.anybody().post("/api/session/link", json={"token": link, "code": code})
    assert reply.status_code == 200


async def test_second_factor_is_set_up_on_the_account_page_and_removed_with_a_code(
    server: ApiServer,
) -> None:
    await _account(server, "root", "admin")
    root = await _logged_in(server, "root")
    page = await root.post("/account/second-factor", data={})
    assert page.status_code == 200
    rows = await fetch(server.parts.store, "select secret, confirmed from second_factors")
    secret, confirmed = rows[0]
    assert secret in page.text and not confirmed
    step = totp.step_at(server.parts.clock.now())
    sent = {"code": totp.code_at(secret, step - 1)}
    assert (await root.post("/account/second-factor/confirm", data=sent)).status_code == 303
    assert "asks for a code" in (await root.get("/account")).text
    refused = await root.post("/account/second-factor/remove", data=sent)
    assert refused.status_code in (303, 401) and await server.parts.second_factors.is_needed("root")
    sent = {"code": totp.code_at(secret, step)}
    assert (await root.post("/account/second-factor/remove", data=sent)).status_code == 303
    assert not await server.parts.second_factors.is_needed("root")


async def test_guessing_elsewhere_does_not_lock_a_user_out(server: ApiServer) -> None:
    await _account(server, "ada")
    people = server.parts.console.people
    for number in range(19):
        ip = f"203.0.113.{number}"
        subjects = [f"pair:ada {ip}", f"ip:{ip}", "name:ada"]
        await people.fail_login(subjects, "ada", ip, "password")
    await _logged_in(server, "ada")
    for _ in range(40):
        await people.fail_login(["name:ada"], "ada", "203.0.113.1", "password")
    assert await people.login_blocked(["name:ada"]) <= 30


async def test_audit_only_grows(server: ApiServer) -> None:
    await _account(server, "ada")
    store = server.parts.store
    for sql in ("update audit set actor = 'eve'", "delete from audit"):
        with pytest.raises(Exception, match="append-only"):
            await execute(store, sql)
    await execute(store, "insert into audit (actor, action, subject, detail, at)"
                         " values ('old', 'old', '', '{}', @after(-86400))")  # fmt: skip
    pruned = await server.parts.store.audit.prune_audit(3600.0, "root")
    assert pruned == 1
    acts = await _acts(server)
    assert ("old", "old", "") not in acts and ("tester", "user.added", "ada") in acts
    assert ("root", "audit.pruned") in [act[:2] for act in acts]
    with pytest.raises(Exception, match="append-only"):
        await execute(store, "delete from audit")


@pytest.mark.parametrize("database_url", ["sqlite"], indirect=True)
async def test_audit_rows_cannot_be_replaced(server: ApiServer) -> None:
    await _account(server, "ada")
    with pytest.raises(Exception, match="append-only"):
        await execute(server.parts.store, "insert or replace into audit"
                      " (id, actor, action, subject, detail, at)"
                      " values (1, 'eve', 'x', '', '{}', @now)")  # fmt: skip


async def test_admins_who_demote_each_other_at_once_leave_one(server: ApiServer) -> None:
    people = server.parts.console.people
    await server.parts.accounts.add_user("ada", "admin", None, "tester")
    await server.parts.accounts.add_user("bea", "admin", None, "tester")
    for _ in range(10):
        await asyncio.gather(
            people.change_user("ada", "bea", role="reader"),
            people.change_user("bea", "ada", disabled=True),
            return_exceptions=True,
        )
        left = [user for user in await people.users() if user.role == "admin"]
        assert [user.disabled for user in left].count(False) == 1, left
        await people.change_user("ada", "tester", role="admin", disabled=False)
        await people.change_user("bea", "tester", role="admin", disabled=False)
