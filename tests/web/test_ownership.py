"""Users cannot see what belongs to others on any page, and readers cannot change anything."""

from __future__ import annotations

import re
from collections.abc import Iterator
from uuid import uuid4

import httpx2
import pytest

from holdfast.model import ItemStatus
from tests.signing_in import sign_in
from tests.web.site import Site

STATUSES = [ItemStatus.DONE, ItemStatus.ERROR]
PASSWORD = "correct horse"
PAGES = [
    "", "/head", "/charts", "/pending", "/errors", "/pace", "/pace/charts", "/streams", "/audit",
    "/items/1", "/export", "/cancel", "/caps", "/reprocess", "/bulk?kind=reprocess&q=status:ERROR",
]  # fmt: skip
ORDERS = ["/pause", "/resume", "/cancel", "/kickoff", "/bulk", "/export", "/items/1/ruling"]


class Visitor:
    def __init__(self, site: Site, role: str) -> None:
        self.name = f"{role}-{uuid4().hex[:8]}"
        site.add_user(self.name, role)
        self.client = httpx2.Client(base_url=site.url, timeout=30)
        assert sign_in(self.client, site.login_link(self.name)).status_code == 303
        match = re.search(r'data-csrf="(\w+)"', self.client.get("/account").text)
        assert match
        self.csrf = match[1]

    def post(self, path: str, **fields: str) -> httpx2.Response:
        return self.client.post(path, data={"csrf": self.csrf, **fields})


@pytest.fixture(scope="module")
def visitors(site: Site) -> Iterator[dict[str, Visitor]]:
    by_role = {role: Visitor(site, role) for role in ("operator", "reader", "admin")}
    yield by_role
    for visitor in by_role.values():
        visitor.client.close()


@pytest.fixture(scope="module")
def job(site: Site) -> str:
    site.add_user("owner", password=PASSWORD)
    return f"/jobs/{site.job('owner', ['one', 'two'], STATUSES, name='private.csv')}"


@pytest.mark.parametrize("page", PAGES)
def test_page_of_another_users_job_does_not_exist(
    page: str, job: str, visitors: dict[str, Visitor]
) -> None:
    assert visitors["operator"].client.get(job + page).status_code == 404
    assert visitors["admin"].client.get(job + page).status_code == 200


@pytest.mark.parametrize("order", ORDERS)
def test_users_cannot_control_another_users_job(
    order: str, job: str, visitors: dict[str, Visitor]
) -> None:
    reply = visitors["operator"].post(job + order, q="status:ERROR", kind="reprocess", format="csv")
    assert reply.status_code == 404


@pytest.mark.parametrize("order", [each for each in ORDERS if each != "/export"])
def test_reader_sees_and_changes_nothing(
    order: str, job: str, visitors: dict[str, Visitor]
) -> None:
    reader = visitors["reader"]
    page = reader.client.get(job)
    assert page.status_code == 200 and "Reprocess" not in page.text
    assert reader.post(job + order, q="status:ERROR", kind="reprocess").status_code == 403
    assert reader.client.get("/new").status_code == 403


@pytest.mark.parametrize("path", ["/", "/jobs", "/pending", "/streams", "/audit", "/exports"])
def test_lists_have_only_ones_own(
    path: str, job: str, site: Site, ada: str, visitors: dict[str, Visitor]
) -> None:
    held = site.job(ada, ["secret title"], pipeline="held", name="private.csv")
    text = visitors["operator"].client.get(path).text
    assert "private.csv" not in text and "secret title" not in text
    assert f"/jobs/{held}" not in text


def test_users_cannot_start_a_job_on_another_users_file(
    site: Site, ada: str, visitors: dict[str, Visitor]
) -> None:
    token = site.run(site.parts.accounts.make_token(ada, "test", None, "tester"))
    headers = {"Authorization": f"Bearer {token.value}"}
    files = {"file": ("mine.csv", b"title\nmine\n")}
    stored = httpx2.post(f"{site.url}/api/files", headers=headers, files=files).json()
    operator = visitors["operator"]
    assert operator.client.get(f"/new/files/{stored['id']}").status_code == 404
    fields = {"pipeline": "lengths", "file_id": str(stored["id"])}
    assert operator.post("/new", **fields).status_code == 404
    assert operator.post("/new/try", **fields).status_code == 404
    assert "mine.csv" not in operator.client.get("/new").text


@pytest.mark.parametrize(
    ("path", "fields"),
    [
        ("/settings/flags/pending", {"value": "off"}),
        ("/settings/switches", {"scope": "all", "on": "1"}),
        ("/settings/users", {"name": "eve", "role": "admin"}),
        ("/settings/users/admin/link", {}),
        ("/gates/close", {"name": "x", "minutes": "5"}),
        ("/ingestion", {"name": "x", "kind": "folder", "address": "/in", "pipeline": "lengths"}),
        ("/schedules", {"name": "x", "pipeline": "lengths", "cron": "0 6 * * *"}),
    ],
)
def test_settings_are_the_admins(
    path: str, fields: dict[str, str], visitors: dict[str, Visitor]
) -> None:
    assert visitors["operator"].post(path, **fields).status_code == 403
    assert visitors["reader"].post(path, **fields).status_code == 403


@pytest.mark.parametrize(
    ("path", "fields"),
    [("/settings/users", {"name": "eve", "role": "admin"}), ("/settings/users/root/link", {})],
)
def test_admins_token_cannot_make_a_login_link(
    path: str, fields: dict[str, str], site: Site
) -> None:
    name = f"admin{len(path)}"
    site.run(site.parts.accounts.add_user(name, "admin", None, "tester"))
    token = site.run(site.parts.accounts.make_token(name, "test", None, "tester"))
    headers = {"Authorization": f"Bearer {token.value}"}
    reply = httpx2.post(f"{site.url}{path}", headers=headers, data=fields)
    assert reply.status_code == 403 and "/login/" not in reply.text
    assert "eve" not in [user.name for user in site.run(site.parts.console.people.users())]


def test_token_of_another_cannot_be_revoked(
    site: Site, ada: str, visitors: dict[str, Visitor]
) -> None:
    token = site.run(site.parts.accounts.make_token(ada, "test", None, "tester"))
    assert visitors["operator"].post(f"/account/tokens/{token.id}/revoke").status_code == 404


def test_change_without_the_csrf_token_is_refused(job: str, visitors: dict[str, Visitor]) -> None:
    admin = visitors["admin"].client
    assert admin.post(f"{job}/pause").status_code == 403
    assert admin.post(f"{job}/pause", data={"csrf": "0" * 64}).status_code == 403
    assert admin.post(f"{job}/pause", data={"csrf": "é" * 64}).status_code == 403
    assert admin.post("/settings/switches", data={"scope": "all", "on": "1"}).status_code == 403


def test_kill_switch_that_is_already_on_is_reported(visitors: dict[str, Visitor]) -> None:
    admin = visitors["admin"]
    switch = {"scope": "pipeline:none", "on": "1"}
    for message in ("is on: work stops", "was already on"):
        admin.post("/settings/switches", **switch)
        assert message in admin.client.get("/settings").text
    admin.post("/settings/switches", **switch | {"on": "0"})
    assert "is off: work continues" in admin.client.get("/settings").text


def test_source_with_a_slash_is_switched_by_page_and_api(visitors: dict[str, Visitor]) -> None:
    """As by command: a source may have any name."""
    admin = visitors["admin"]
    path, scope = "/api/kill-switches/source:incoming/a%20b/", "source:incoming/a b/"
    headers = {"X-CSRF-Token": admin.csrf}

    def scopes() -> list[str]:
        switches = admin.client.get("/api/kill-switches").json()["killSwitches"]
        return [switch["scope"] for switch in switches]

    admin.post("/settings/switches", scope=scope, on="1")
    assert scope in scopes()
    assert admin.client.delete(path, headers=headers).status_code == 204
    assert scope not in scopes()
    assert admin.client.put(path, json={}, headers=headers).status_code == 204
    assert scope in scopes()
    admin.post("/settings/switches", scope=scope, on="0")
    assert scope not in scopes()


def test_pages_require_a_login(site: Site, job: str) -> None:
    with httpx2.Client(base_url=site.url) as client:
        for path in ("/", "/jobs", job, f"{job}/items/1", "/settings", "/charts"):
            reply = client.get(path)
            assert reply.status_code == 303
            assert reply.headers["location"].startswith("/login")


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example", "https://evil.example/"])
def test_login_leads_nowhere_else(path: str, site: Site, job: str) -> None:
    with httpx2.Client(base_url=site.url) as client:
        fields = {"name": "owner", "password": PASSWORD, "next": path}
        reply = client.post("/login", data=fields)
        assert (reply.status_code, reply.headers["location"]) == (303, "/")


def test_wrong_password_says_so_and_keeps_the_name(site: Site, job: str) -> None:
    with httpx2.Client(base_url=site.url) as client:
        reply = client.post("/login", data={"name": "owner", "password": "wrong"})
        assert reply.status_code == 401
        assert "Name or password is wrong" in reply.text and 'value="owner"' in reply.text
