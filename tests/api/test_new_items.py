"""Records for a standing job over HTTP: stored before the answer, once for each key."""

from __future__ import annotations

from holdfast.kernel import NewJob
from tests.api.server import ApiServer, finished


async def test_records_are_added_as_an_array_or_as_lines_and_once_for_each_key(
    server: ApiServer,
) -> None:
    ada = await server.person("ada")
    new = NewJob("lengths", "lengths", [], owner_id="ada", standing=True)
    job_id, _ = await server.parts.store.jobs.open(new, "ada")
    path = f"/api/jobs/{job_id}/items"
    shown = (await ada.get(f"/api/jobs/{job_id}")).json()
    assert (shown["state"], shown["standing"], shown["idle"]) == ("RUNNING", True, True)

    key = {"Idempotency-Key": "one"}
    for _ in range(2):
        reply = await ada.post(path, json=[{"title": "oak"}, {"title": "elm"}], headers=key)
        assert (reply.status_code, reply.json()) == (
            201,
            {"jobId": job_id, "accepted": 2, "known": 0},
        )
    lines = {"Content-Type": "application/x-ndjson"}
    body = b'{"title": "ash", "n": 1}\n\n{"title": "ash", "n": 1}\n'
    reply = await ada.post(f"{path}?key=n", content=body, headers=lines)
    assert reply.json() == {"jobId": job_id, "accepted": 1, "known": 1}
    later = await ada.post(f"{path}?runAt=2100-01-01T00:00:00Z", json=[{"title": "fir"}])
    assert later.status_code == 201
    shown = (await ada.get(f"/api/jobs/{job_id}")).json()
    assert (shown["counters"]["accepted"], shown["counters"]["open"], shown["idle"]) == (
        4,
        4,
        False,
    )


async def test_what_cannot_be_added_is_refused_and_leaves_nothing(server: ApiServer) -> None:
    ada, bob = await server.person("ada"), await server.person("bob")
    done = await finished(server, ada, "oak")
    new = NewJob("lengths", "lengths", [], owner_id="ada", standing=True)
    job_id, _ = await server.parts.store.jobs.open(new, "ada")
    path = f"/api/jobs/{job_id}/items"
    replies = [
        await bob.post(path, json=[{"title": "oak"}]),
        await ada.post(f"/api/jobs/{done['id']}/items", json=[{"title": "oak"}]),
        await ada.post(path, json={"title": "oak"}),
        await ada.post(path, json=["oak"]),
        await ada.post(path, content=b"oak", headers={"Content-Type": "text/plain"}),
        await ada.post(f"{path}?key=id", json=[{"title": "oak"}]),
        await ada.post(f"{path}?runAt=2100-01-01T00:00:00", json=[{"title": "oak"}]),
        await ada.post(f"{path}?runAt=0001-01-01T00:00:00%2B14:00", json=[{"title": "oak"}]),
    ]
    assert [reply.status_code for reply in replies] == [404, 409, 400, 422, 415, 422, 422, 422]
    lines = {"Content-Type": "application/x-ndjson"}
    damaged = await ada.post(path, content=b'{"title": "oak"}\n\n{oak\n', headers=lines)
    assert (damaged.status_code, "line 3 of the body" in damaged.json()["detail"]) == (400, True)
    shown = (await ada.get(f"/api/jobs/{job_id}")).json()
    assert shown["counters"]["accepted"] == 0


async def test_refusal_by_a_kill_switch_says_how_it_is_switched_off(server: ApiServer) -> None:
    root = await server.person("root", "admin")
    new = NewJob("lengths", "lengths", [], owner_id="root", standing=True)
    job_id, _ = await server.parts.store.jobs.open(new, "root")
    await root.put("/api/kill-switches/pipeline:lengths", json={"reason": "costs"})
    refused = await root.post(f"/api/jobs/{job_id}/items", json=[{"title": "oak"}])
    assert refused.status_code == 503
    assert "holdfast kill-switch off --pipeline lengths" in refused.json()["hint"]
