"""A broker that is spoken to over TLS, with a certificate of its own authority."""

from __future__ import annotations

import asyncio
import ssl
import subprocess
from pathlib import Path

import pytest

from holdfast.errors import UserError
from tests.messaging.conftest import LogBook, OpenBroker, next_of, outgoing
from tests.proxy import Proxy


class Encrypting(Proxy):
    """Speaks TLS with clients, and plainly with the server."""

    def __init__(self, url: str, certificate: Path, key: Path) -> None:
        super().__init__(url)
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(certificate, key)

    @property
    def url(self) -> str:
        return super().url.replace("amqp://", "amqps://")

    async def accept(self) -> None:
        self._server = await asyncio.start_server(
            self._connect, "127.0.0.1", self.port, ssl=self._context
        )


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[Path, Path]:
    """A certificate for 127.0.0.1 that is self-signed, and its key."""
    paths = tmp_path / "certificate.pem", tmp_path / "key.pem"
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=rabbit", "-addext", "subjectAltName=IP:127.0.0.1"]
    command += ["-out", str(paths[0]), "-keyout", str(paths[1])]
    subprocess.run(command, check=True, capture_output=True)
    return paths


async def test_broker_with_a_certificate_of_a_known_authority_is_used(
    broker_url: str, certificate: tuple[Path, Path], open_test_broker: OpenBroker
) -> None:
    async with Encrypting(broker_url, *certificate) as proxy:
        broker = await open_test_broker(f"{proxy.url}?cafile={certificate[0]}")
        assert await broker.publish([outgoing(body=b"secret")]) == [None]
        delivery = await next_of(await broker.consume("orders", 1))
        assert delivery.body == b"secret"
        await delivery.ack()
        await broker.close()


async def test_untrusted_certificate_is_reported_with_what_fixes_it(
    broker_url: str, certificate: tuple[Path, Path], open_test_broker: OpenBroker
) -> None:
    async with Encrypting(broker_url, *certificate) as proxy:
        with pytest.raises(UserError) as caught:
            await open_test_broker(proxy.url)
    assert "is not trusted" in caught.value.message
    assert "cafile=" in (caught.value.hint or "")


async def test_certificate_of_another_host_is_not_trusted(
    broker_url: str, certificate: tuple[Path, Path], open_test_broker: OpenBroker
) -> None:
    async with Encrypting(broker_url, *certificate) as proxy:
        elsewhere = proxy.url.replace("@127.0.0.1:", "@localhost:")
        with pytest.raises(UserError, match="is not trusted"):
            await open_test_broker(f"{elsewhere}?cafile={certificate[0]}")


async def test_missing_file_of_an_authority_is_reported(
    broker_url: str, certificate: tuple[Path, Path], open_test_broker: OpenBroker
) -> None:
    async with Encrypting(broker_url, *certificate) as proxy:
        with pytest.raises(UserError, match="no-such"):
            await open_test_broker(f"{proxy.url}?cafile=/no-such.pem")


async def test_server_that_does_not_speak_tls_is_reported_and_waited_for(
    broker_url: str, open_test_broker: OpenBroker, log: LogBook
) -> None:
    opening = asyncio.ensure_future(open_test_broker(broker_url.replace("amqp:", "amqps:")))
    gone = await log.wait_for("broker.gone")
    assert "TLS" in gone["error"] or "SSL" in gone["error"]
    opening.cancel()
    await asyncio.wait([opening])
