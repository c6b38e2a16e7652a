"""A stream belongs to its job's owner: another's checkpoint is not thrown away unasked (V10)."""

from __future__ import annotations

from tests.api.server import ApiServer


async def test_checkpoint_of_another_is_not_taken_over(server: ApiServer) -> None:
    alice, bob = await server.person("alice"), await server.person("bob")
    root = await server.person("root", "admin")
    order = {"pipeline": "shelves", "maxPerSource": 1}
    made = (await alice.post("/api/jobs", json=order)).json()
    await server.work(made["id"])
    assert (await alice.get(f"/api/jobs/{made['id']}/streams")).json()["streams"][0][
        "state"
    ] == "CAPPED"

    refused = await bob.post("/api/jobs", json={"pipeline": "shelves"})
    assert refused.status_code == 409
    assert "another owner" in refused.json()["detail"]
    assert "alice" not in refused.text and str(made["id"]) not in refused.json()["detail"]
    forced = await bob.post("/api/jobs", json={"pipeline": "shelves", "takeOver": True})
    assert forced.status_code == 403

    named = await root.post("/api/jobs", json={"pipeline": "shelves"})
    assert named.status_code == 409 and f"job {made['id']} of alice" in named.json()["detail"]
    resumed = await alice.post(f"/api/jobs/{made['id']}/resume", json={"maxPerSource": 2})
    assert resumed.status_code == 200, "her checkpoint is still there"
    await server.work(made["id"])

    taken = await root.post("/api/jobs", json={"pipeline": "shelves", "takeOver": True})
    assert taken.status_code == 202
    assert (await alice.get(f"/api/jobs/{made['id']}/streams")).json()["streams"] == []


async def test_stream_that_is_complete_or_cancelled_is_free(server: ApiServer) -> None:
    alice, bob = await server.person("alice"), await server.person("bob")
    for ending in ("complete", "cancelled"):
        made = (await alice.post("/api/jobs", json={"pipeline": "shelves"})).json()
        if ending == "cancelled":
            await alice.post(f"/api/jobs/{made['id']}/cancel")
        await server.work(made["id"])
        theirs = await bob.post("/api/jobs", json={"pipeline": "shelves"})
        assert theirs.status_code == 202, (ending, theirs.text)
        await server.work(theirs.json()["id"])
