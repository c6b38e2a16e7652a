"""Flags over HTTP: their kinds, and values that are refused."""

from __future__ import annotations

from tests.api.server import ApiServer


async def test_flag_is_listed_with_its_kind_and_who_set_it(server: ApiServer) -> None:
    admin = await server.person("root", "admin")
    assert (await admin.put("/api/flags/pending", json={"value": False})).status_code == 204
    flags = {flag["name"]: flag for flag in (await admin.get("/api/flags")).json()["flags"]}
    assert (flags["ingest"]["value"], flags["ingest"]["actor"]) == (True, None)
    pending = flags["pending"]
    assert (pending["kind"], pending["value"], pending["actor"]) == ("boolean", False, "root")
    entries = (await admin.get("/api/audit")).json()["entries"]
    assert {"value": False} in [entry["detail"] for entry in entries]


async def test_value_of_another_kind_is_refused(server: ApiServer) -> None:
    admin = await server.person("root", "admin")
    for value in (0, "off", 1.5):
        reply = await admin.put("/api/flags/pending", json={"value": value})
        assert reply.status_code == 422
        assert "the flag pending cannot be" in reply.text
    assert (await admin.put("/api/flags/other", json={"value": True})).status_code == 404
    flags = (await admin.get("/api/flags")).json()["flags"]
    assert [flag["value"] for flag in flags] == [True, True]
