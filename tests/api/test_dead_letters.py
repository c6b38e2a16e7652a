"""Dead letters over HTTP: shown whole, replayed, dropped."""

from __future__ import annotations

from typing import Any

import httpx2

from holdfast.kernel.outbox.messages import Relayed
from tests.api.server import ApiServer
from tests.store.message_scenarios import dead, sent


async def kept(
    server: ApiServer, message_id: str, payload: bytes
) -> tuple[httpx2.AsyncClient, dict[str, Any]]:
    """The letter of a message that belongs to no job, and an admin, who sees it."""
    await server.parts.store.messages.keep_dead(dead(message_id, payload=payload))
    admin = await server.person("root", "admin")
    listed = (await admin.get("/api/dead-letters")).json()["deadLetters"]
    reply = await admin.get(f"/api/dead-letters/{listed[0]['id']}")
    assert reply.status_code == 200
    return admin, reply.json()


async def test_letter_is_shown_with_its_payload_and_its_history(server: ApiServer) -> None:
    _, letter = await kept(server, "order 1", b'{"a": 1}')
    assert (letter["kind"], letter["state"], letter["queue"]) == ("message", "OPEN", "orders")
    assert (letter["messageId"], letter["payload"]) == ("order 1", '{"a": 1}')
    assert [death["reason"] for death in letter["history"]] == ["delivery_limit"]


async def test_binary_payload_is_shown_in_base64(server: ApiServer) -> None:
    _, letter = await kept(server, "order 2", b"\xff\x00\xfe")
    assert letter["payload"] == "base64:/wD+"


async def test_letter_is_replayed_once_and_then_no_more(server: ApiServer) -> None:
    admin, letter = await kept(server, "order 3", b"{}")
    path = f"/api/dead-letters/{letter['id']}"
    assert (await admin.post(f"{path}/replay")).status_code == 204
    assert (await admin.get(path)).json()["state"] == "REPLAYED"
    assert (await server.parts.store.messages.relay(sent)).sent == 1
    assert (await admin.post(f"{path}/replay")).status_code == 409
    assert (await admin.post(f"{path}/drop")).status_code == 409


async def test_dropped_letter_is_off_the_list_and_not_sent(server: ApiServer) -> None:
    admin, letter = await kept(server, "order 4", b"{}")
    path = f"/api/dead-letters/{letter['id']}"
    assert (await admin.post(f"{path}/drop")).status_code == 204
    assert (await admin.get("/api/dead-letters")).json()["deadLetters"] == []
    assert (await admin.get(path)).json()["state"] == "DROPPED"
    assert await server.parts.store.messages.relay(sent) == Relayed()


async def test_letter_that_is_not_there_is_not_found(server: ApiServer) -> None:
    admin = await server.person("root", "admin")
    assert (await admin.get("/api/dead-letters/99")).status_code == 404
