"""What comes before every route: hosts, headers over TLS, lengths, and what strangers may read."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from holdfast.kernel import open_store
from tests.api.server import ApiServer, upload
from tests.store.checks import ingest, lease_stream, make_job, records

LOGIN_LINK = "/api/users/ada/link"


@pytest.fixture
def database_url(sqlite_url: str) -> str:
    """Nothing here depends on the database."""
    return sqlite_url


async def raw(server: ApiServer, request: bytes) -> bytes:
    """Everything that is answered to these bytes, until the server ends the connection."""
    reader, writer = await asyncio.open_connection("127.0.0.1", int(server.url.rpartition(":")[2]))
    writer.write(request)
    await writer.drain()
    async with asyncio.timeout(30):
        answered = await reader.read()
    writer.close()
    return answered


class TestHosts:
    @pytest.mark.parametrize(
        "host",
        ["evil.example", "localhost.evil.example", "localhost@evil.example", "localhost:80@evil.x",
         "localhost/evil", "[::1", "127.0.0.2", "*", "LOCALHOST:"],
    )  # fmt: skip
    async def test_a_foreign_host_is_refused(self, server: ApiServer, host: str) -> None:
        ada = await server.person("ada", "admin")
        reply = await ada.post(LOGIN_LINK, headers={"Host": host})
        assert reply.status_code == 400
        assert "HOLDFAST_ALLOWED_HOSTS" in reply.json()["hint"]
        assert "evil" not in reply.text

    @pytest.mark.parametrize(
        "host", ["localhost", "localhost:8000", "127.0.0.1:1", "[::1]:8000", "LocalHost.", "[::1]"]
    )
    async def test_loopback_names_are_answered(self, server: ApiServer, host: str) -> None:
        ada = await server.signed_in("ada", "admin")
        reply = await ada.post(LOGIN_LINK, headers={"Host": host})
        assert reply.status_code == 201
        assert reply.json()["url"].startswith(f"http://{host}/login/")

    async def test_names_that_are_set_replace_the_defaults(
        self, database_url: str, tmp_path: Path
    ) -> None:
        names = "holdfast.example.org, *.inner.example"
        async with ApiServer(database_url, tmp_path, allowed_hosts=names) as server:
            hosts = {
                "holdfast.example.org": 401,
                "HOLDFAST.example.org:443": 401,
                "a.inner.example": 401,
                "inner.example": 400,
                "example.org": 400,
                "localhost": 400,
            }
            client = server.anybody()
            for host, status in hosts.items():
                reply = await client.get("/api/jobs", headers={"Host": host})
                assert (host, reply.status_code) == (host, status)

    async def test_any_host_may_be_allowed_but_must_be_one(
        self, database_url: str, tmp_path: Path
    ) -> None:
        async with ApiServer(database_url, tmp_path, allowed_hosts="*") as server:
            client = server.anybody()
            for host, status in {"any.example": 401, "a@b.example": 400}.items():
                reply = await client.get("/api/jobs", headers={"Host": host})
                assert reply.status_code == status

    async def test_probes_are_answered_by_any_name(self, server: ApiServer) -> None:
        for path in ("/healthz", "/readyz"):
            reply = await server.anybody().get(path, headers={"Host": "10.1.2.3"})
            assert reply.status_code == 200


class TestTls:
    async def test_over_plain_http_browsers_are_not_required_to_use_tls(
        self, server: ApiServer
    ) -> None:
        assert "strict-transport-security" not in (await server.anybody().get("/login")).headers

    async def test_behind_tls_they_are_and_cookies_need_it(
        self, database_url: str, tmp_path: Path
    ) -> None:
        async with ApiServer(database_url, tmp_path, https="true") as server:
            await server.parts.accounts.add_user("ada", "admin", "correct horse", "tester")
            login = {"name": "ada", "password": "correct horse"}
            reply = await server.anybody().post("/api/session", json=login)
            assert reply.headers["strict-transport-security"] == "max-age=31536000"
            assert "; secure" in reply.headers["set-cookie"].lower()
            assert "; Secure" in (await server.anybody().get("/login/any")).headers["set-cookie"]


class TestLengths:
    async def test_a_request_with_two_lengths_is_refused_and_nothing_behind_it_is_read(
        self, server: ApiServer
    ) -> None:
        smuggled = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
        request = (
            b"POST /api/session HTTP/1.1\r\nHost: localhost\r\n"
            b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + smuggled
        )
        answered = await raw(server, request)
        assert answered.startswith(b"HTTP/1.1 400 ")
        assert answered.count(b"HTTP/1.1 ") == 1
        assert b"both Content-Length and Transfer-Encoding" in answered

    @pytest.mark.parametrize("lengths", ["4\r\nContent-Length: 5", "+4", "0x4", "4 4", "-1"])
    async def test_other_odd_lengths_are_refused_too(self, server: ApiServer, lengths: str) -> None:
        request = f"POST /api/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: {lengths}"
        answered = await raw(server, request.encode() + b"\r\n\r\nabcde")
        assert answered.startswith(b"HTTP/1.1 400 ")
        assert answered.count(b"HTTP/1.1 ") == 1


class TestStrangers:
    async def test_the_openapi_document_needs_a_login(self, server: ApiServer) -> None:
        assert (await server.anybody().get("/api/openapi.json")).status_code == 401
        reader = await server.person("rita", "reader")
        assert "/api/jobs" in (await reader.get("/api/openapi.json")).json()["paths"]

    async def test_metrics_need_a_login_even_on_the_same_host(self, server: ApiServer) -> None:
        reply = await server.anybody().get("/metrics")
        assert reply.status_code == 401
        assert "HOLDFAST_METRICS_TOKEN" in reply.json()["hint"]
        reader = await server.person("rita", "reader")
        assert (await reader.get("/metrics")).status_code == 200

    async def test_metrics_are_given_for_their_token_and_the_token_for_nothing_else(
        self, database_url: str, tmp_path: Path
    ) -> None:
        async with ApiServer(database_url, tmp_path, metrics_token="sesame") as server:
            client = server.anybody()
            right = {"Authorization": "Bearer sesame"}
            for wrong in ("Bearer sesam", "Basic sesame", "Bearer", "sesame", "Bearer sesame2"):
                reply = await client.get("/metrics", headers={"Authorization": wrong})
                assert reply.status_code == 401
            assert (await client.get("/metrics", headers=right)).status_code == 200
            assert (await client.get("/api/jobs", headers=right)).status_code == 401

    async def test_pending_items_are_counted_though_nobody_looks_at_them(
        self, database_url: str, tmp_path: Path
    ) -> None:
        store = await open_store(database_url)
        await ingest(store, await lease_stream(store, await make_job(store)), records(7))
        await store.close()
        async with ApiServer(database_url, tmp_path, metrics_token="sesame") as server:
            client = server.anybody(headers={"Authorization": "Bearer sesame"})
            while "holdfast_pending_items 7.0" not in (await client.get("/metrics")).text:
                await asyncio.sleep(0.01)

    @pytest.mark.parametrize("name", ["empty.csv", "empty.xlsx", "empty.jsonl"])
    async def test_the_error_of_an_empty_file_names_no_folder(
        self, server: ApiServer, name: str
    ) -> None:
        ada = await server.person("ada")
        reply = await upload(ada, "", name=name)
        assert reply.status_code == 422
        assert name in reply.json()["detail"] and "/" not in reply.json()["detail"]
