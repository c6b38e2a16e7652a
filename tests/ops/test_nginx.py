"""A real nginx with the very configuration of deploy/nginx, before a real `holdfast api`."""

from __future__ import annotations

import os
import re
import shutil
import socket
import sqlite3
import ssl
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.cli.desk import wait_until
from tests.command import HoldfastCommand
from tests.listening import listening
from tests.ops.deployment import DEPLOY
from tests.ports import free_port

pytestmark = [
    pytest.mark.tools,
    pytest.mark.parametrize("database_url", ["sqlite"], indirect=True),
]

NAME = "holdfast.example.org"
PASSWORD = "violet tram over 31 roofs"
#: Two machines of the outside, as far as nginx knows.
HERE, THERE = "127.0.0.5", "127.0.0.6"
WRAPPING = """
{user}
daemon off;
pid {folder}/nginx.pid;
error_log {folder}/error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path {folder}/bodies;
    proxy_temp_path {folder}/replies;
    fastcgi_temp_path {folder}/unused;
    uwsgi_temp_path {folder}/unused;
    scgi_temp_path {folder}/unused;
    include {folder}/holdfast.conf;
}}
"""


@dataclass
class Front:
    """nginx, as clients see it."""

    port: int
    plain_port: int
    certificate: Path

    def client(self, source: str = HERE) -> httpx2.Client:
        trust = ssl.create_default_context(cafile=str(self.certificate))
        transport = httpx2.HTTPTransport(verify=trust, local_address=source)
        headers = {"Host": NAME}
        address = f"https://127.0.0.1:{self.port}"
        return httpx2.Client(base_url=address, headers=headers, transport=transport, timeout=120)

    def ask(self, method: str, path: str, source: str = HERE, **options: Any) -> httpx2.Response:
        with self.client(source) as client:
            return client.request(method, path, extensions={"sni_hostname": NAME}, **options)

    def raw(self, request: bytes, name: str = NAME) -> bytes:
        """Everything that is answered to these bytes."""
        trust = ssl.create_default_context(cafile=str(self.certificate))
        with (
            socket.create_connection(("127.0.0.1", self.port), 30) as plain,
            trust.wrap_socket(plain, server_hostname=name) as client,
        ):
            client.sendall(request)
            said = b""
            while data := client.recv(65536):
                said += data
        return said


@pytest.fixture
def front(holdfast_command: HoldfastCommand, tmp_path: Path) -> Iterator[Front]:
    if shutil.which("nginx") is None:
        pytest.fail("nginx is missing: run tests/servers as root, or install nginx")
    _add_admin(holdfast_command)
    settings = {"HOLDFAST_ALLOWED_HOSTS": NAME, "HOLDFAST_TRUSTED_PROXIES": "127.0.0.1"}
    api = holdfast_command.start("api", "--port", "0", env=settings)
    address = listening(api)
    front = Front(free_port(), free_port(), _certificate(tmp_path))
    with _nginx(front, address.removeprefix("http://"), tmp_path):
        yield front


def _add_admin(holdfast: HoldfastCommand) -> None:
    added = holdfast.run("user", "add", "ada", "--role", "admin", stdin=f"{PASSWORD}\n{PASSWORD}\n")
    assert added.returncode == 0, added.stderr


def _certificate(folder: Path) -> Path:
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", f"/CN={NAME}", "-addext", f"subjectAltName=DNS:{NAME}"]
    command += ["-out", str(folder / "fullchain.pem"), "-keyout", str(folder / "key.pem")]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "fullchain.pem"


class _nginx:
    def __init__(self, front: Front, upstream: str, folder: Path) -> None:
        text = (DEPLOY / "nginx" / "holdfast.conf").read_text()
        places = {
            "server 127.0.0.1:8000;": f"server {upstream};",
            "listen 80": f"listen 127.0.0.1:{front.plain_port}",
            "listen 443": f"listen 127.0.0.1:{front.port}",
            "/etc/ssl/holdfast/": f"{folder}/",
        }
        for written, meant in places.items():
            assert written in text
            text = text.replace(written, meant)
        (folder / "holdfast.conf").write_text(text)
        user = "user root;" if os.getuid() == 0 else ""
        self._config = folder / "nginx.conf"
        self._config.write_text(WRAPPING.format(folder=folder, user=user))
        self._front = front

    def __enter__(self) -> None:
        command = ["nginx", "-c", str(self._config), "-e", "stderr"]
        checked = subprocess.run([*command, "-t"], capture_output=True, text=True)
        assert checked.returncode == 0 and "warn" not in checked.stderr, checked.stderr
        self._process = subprocess.Popen(command)
        wait_until(self._answers)

    def _answers(self) -> bool:
        try:
            return self._front.ask("GET", "/readyz").status_code == 200
        except httpx2.TransportError:
            return False

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.wait(30)


def log_in(front: Front, source: str = HERE, password: str = PASSWORD) -> httpx2.Response:
    login = {"name": "ada", "password": password}
    return front.ask("POST", "/api/session", source, json=login)


def cookie_of(reply: httpx2.Response) -> dict[str, str]:
    return {"Cookie": reply.headers["set-cookie"].partition(";")[0]}


def test_behind_the_proxy_everything_knows_of_tls_and_of_the_client(
    front: Front, tmp_path: Path
) -> None:
    reply = log_in(front)
    assert reply.status_code == 200
    assert "; secure" in reply.headers["set-cookie"].lower()
    assert reply.headers["strict-transport-security"].startswith("max-age=")
    headers = cookie_of(reply)
    audit = front.ask("GET", "/api/audit", headers=headers).json()
    assert HERE in str(audit) and "127.0.0.1" not in str(audit)
    headers["X-CSRF-Token"] = reply.json()["csrfToken"]
    link = front.ask("POST", "/api/users/ada/link", headers=headers).json()["url"]
    assert link.startswith(f"https://{NAME}/login/")


def test_failures_are_counted_by_the_address_of_the_client_whatever_it_says(
    front: Front, tmp_path: Path
) -> None:
    wrong = {"name": "nobody", "password": "guessed"}
    pretended = {
        "X-Forwarded-For": "10.9.9.9",
        "X-Real-IP": "10.9.9.9",
        "Forwarded": "for=10.9.9.9",
    }
    assert front.ask("POST", "/api/session", json=wrong, headers=pretended).status_code == 401
    assert log_in(front, THERE).status_code == 200
    with sqlite3.connect(tmp_path / "holdfast.db") as database:
        found = database.execute(
            "select subject from holdfast_login_failures where subject like 'ip:%'"
        )
        assert found.fetchall() == [(f"ip:{HERE}",)]


def test_guesses_are_slowed_down_for_one_client_and_not_for_another(front: Front) -> None:
    with front.client() as client:
        extensions = {"sni_hostname": NAME}

        def guess() -> int:
            login = {"name": "", "password": "x"}
            return client.post("/api/session", json=login, extensions=extensions).status_code

        wait_until(lambda: guess() == 429)
    assert front.ask("GET", "/api/session").status_code == 401
    assert log_in(front, THERE).status_code == 200


@pytest.mark.parametrize("host", [NAME, "evil.example"])
def test_smuggled_requests_and_foreign_hosts_are_refused(front: Front, host: str) -> None:
    smuggled = f"GET /login HTTP/1.1\r\nHost: {NAME}\r\n\r\n"
    request = (
        f"POST /api/session HTTP/1.1\r\nHost: {host}\r\nContent-Length: 4\r\n"
        f"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n{smuggled}"
    )
    said = front.raw(request.encode())
    assert len(re.findall(rb"HTTP/1\.1 \d", said)) <= 1
    assert b" 200 " not in said


def test_another_name_is_answered_neither_over_tls_nor_without(front: Front) -> None:
    with pytest.raises(ssl.SSLError):
        front.raw(b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n", name="evil.example")
    plain = f"http://127.0.0.1:{front.plain_port}/jobs?a=b"
    with pytest.raises(httpx2.RemoteProtocolError):
        httpx2.get(plain, headers={"Host": "evil.example"})
    moved = httpx2.get(plain, headers={"Host": NAME})
    assert (moved.status_code, moved.headers["location"]) == (301, f"https://{NAME}/jobs?a=b")


def test_a_large_file_passes_and_metrics_do_not(front: Front) -> None:
    reply = log_in(front)
    headers = cookie_of(reply) | {"X-CSRF-Token": reply.json()["csrfToken"]}
    content = b"title\n" + b"a title of some length\n" * 1_000_000
    stored = front.ask(
        "POST", "/api/files", headers=headers, files={"file": ("large.csv", content)}
    )
    assert stored.status_code == 201, stored.text
    assert stored.json()["size"] == len(content)
    assert front.ask("GET", "/metrics", headers=headers).status_code == 404


def test_live_pages_get_each_event_at_once(front: Front) -> None:
    headers = cookie_of(log_in(front))
    with (
        front.client() as client,
        client.stream(
            "GET", "/api/events", headers=headers, extensions={"sni_hostname": NAME}
        ) as reply,
    ):
        assert reply.headers["content-type"].startswith("text/event-stream")
        assert next(reply.iter_bytes())
