"""Items over HTTP: pages that miss nothing, cursors that fit only their list, whole stories."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import httpx2

from tests.api.server import ApiServer, ended, finished, taken_in, upload


async def _walk(client: httpx2.AsyncClient, path: str, **params: Any) -> list[dict[str, Any]]:
    """All items, page after page."""
    found: list[dict[str, Any]] = []
    after = None
    while True:
        query = {**params, **({"after": after} if after else {})}
        reply = await client.get(path, params=query)
        assert reply.status_code == 200, reply.text
        found += reply.json()["items"]
        after = reply.json()["next"]
        if after is None:
            return found


async def test_items_come_by_number_in_pages_of_any_size(server: ApiServer) -> None:
    ada = await server.person("ada")
    titles = [f"item {number}" for number in range(25)]
    job = await finished(server, ada, *titles)
    for size in (1, 7, 25, 100):
        found = await _walk(ada, f"/api/jobs/{job['id']}/items", pageSize=size)
        assert [item["row"]["title"] for item in found] == titles


async def test_filtered_items_come_once_each_over_all_statuses(server: ApiServer) -> None:
    ada = await server.person("ada")
    titles = ["chair", "missing", "broken", "stool", "missing", "broken", "desk"]
    job = await finished(server, ada, *titles)
    path = f"/api/jobs/{job['id']}/items"
    for size in (1, 2, 100):
        found = await _walk(ada, path, statuses="NOT_FOUND,ERROR", pageSize=size)
        assert sorted(item["seq"] for item in found) == [2, 3, 5, 6]
        order = [(item["updatedAt"], item["seq"]) for item in found]
        assert order == sorted(order)
    found = await _walk(ada, path, code="UNKNOWN_ERROR", pageSize=1)
    assert {item["errorMessage"] for item in found} == {"ValueError: it is broken"}


async def test_open_items_come_the_longest_waiting_first(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\n" + "x\n" * 30)).json()["id"]
    await taken_in(ada, job_id)
    for path in (f"/api/jobs/{job_id}/items", "/api/pending"):
        for size in (1, 9, 30):
            found = await _walk(ada, path, statuses="PENDING", pageSize=size)
            assert [item["seq"] for item in found] == list(range(1, 31))
    claims = await server.parts.store.leases.claim(job_id, "one", 10, 10**9)
    held = [row[0] for claimed in claims for row in claimed.rows]
    found = await _walk(ada, "/api/pending", statuses="PROCESSING", pageSize=3)
    assert [item["seq"] for item in found] == held
    assert {item["lockedBy"] for item in found} == {"one"}
    waiting = await _walk(ada, "/api/pending", statuses="PENDING", pageSize=7)
    both = await _walk(ada, "/api/pending", pageSize=7)
    assert len(waiting) == 20
    assert sorted(item["seq"] for item in both) == list(range(1, 31))
    assert both[0]["pipeline"] == "lengths" and both[0]["inputSummary"] == "x"


async def test_open_and_finished_statuses_in_one_list(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\n" + "x\n" * 5)).json()["id"]
    await taken_in(ada, job_id)
    path = f"/api/jobs/{job_id}/items"
    assert (await ada.post(f"/api/jobs/{job_id}/pause")).status_code == 200
    for size in (1, 5):
        found = await _walk(ada, path, statuses="DONE,PENDING", pageSize=size)
        assert [item["seq"] for item in found] == [1, 2, 3, 4, 5]
    assert (await ada.post(f"/api/jobs/{job_id}/cancel")).status_code == 200
    for size in (1, 5):
        found = await _walk(ada, path, statuses="SKIPPED", pageSize=size)
        assert [(item["seq"], item["errorCode"]) for item in found] == [
            (number, "CANCELLED") for number in range(1, 6)
        ]
    assert await _walk(ada, path, statuses="PENDING") == []


async def test_pending_counts_and_scopes(server: ApiServer) -> None:
    ada, ben = await server.person("ada"), await server.person("ben")
    admin = await server.person("root", "admin")
    for client in (ada, ben):
        job_id = (await upload(client, "title\na\nb\n")).json()["id"]
        await taken_in(client, job_id)
    mine = (await ada.get("/api/pending")).json()
    assert (mine["pendingCount"], len(mine["items"])) == (2, 2)
    assert {item["ownerId"] for item in mine["items"]} == {"ada"}
    assert (await ada.get("/api/pending?userId=all")).status_code == 403
    every = (await admin.get("/api/pending?userId=all")).json()
    assert (every["pendingCount"], len(every["items"])) == (4, 4)
    assert (await admin.get("/api/pending?userId=all&pipeline=other")).json()["items"] == []
    assert (await ada.get("/api/pending?statuses=DONE")).status_code == 422
    assert (await ada.get(f"/api/pending?jobId={job_id}")).status_code == 404


async def test_pending_list_can_be_switched_off(database_url: str, tmp_path: Path) -> None:
    async with ApiServer(database_url, tmp_path) as server:
        await server.parts.flags.change_to("pending", "off", "root")
        ada = await server.person("ada")
        assert (await ada.get("/api/pending")).status_code == 503


async def test_cursor_that_is_not_ours_is_refused(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "a", "b", "c")
    path = f"/api/jobs/{job['id']}/items"
    cursor = (await ada.get(path, params={"pageSize": 1})).json()["next"]
    spoils = ("x", "%00", "é", "A" * 3000)
    for after in (cursor[:-2], "", *spoils, *(cursor + spoil for spoil in spoils)):
        reply = await ada.get(path, params={"pageSize": 1, "after": after})
        assert reply.status_code == 400, after


async def test_cursor_of_another_filter_job_or_person_is_refused(server: ApiServer) -> None:
    ada, admin = await server.person("ada"), await server.person("root", "admin")
    one, two = [await finished(server, ada, "a", "b", "c") for _ in range(2)]
    path = f"/api/jobs/{one['id']}/items"
    cursor = (await ada.get(path, params={"pageSize": 1})).json()["next"]
    after = {"after": cursor, "pageSize": 1}
    assert (await ada.get(path, params=after)).status_code == 200
    assert (await ada.get(path, params={**after, "statuses": "DONE"})).status_code == 400
    assert (await ada.get(f"/api/jobs/{two['id']}/items", params=after)).status_code == 400
    assert (await admin.get(path, params=after)).status_code == 400


async def test_items_are_found_by_what_their_columns_hold(server: ApiServer) -> None:
    ada = await server.person("ada")
    titles = ["Oak chair", "missing", "oak CHAIR", "broken", "stool", "oak desk"]
    job = await finished(server, ada, *titles)
    path = f"/api/jobs/{job['id']}/items"
    for size in (1, 2, 100):
        found = await _walk(ada, path, value="title:oak chair", pageSize=size)
        assert [item["seq"] for item in found] == [1, 3]
        found = await _walk(ada, path, value=["Title:*oak*", "length:9"], pageSize=size)
        assert [item["seq"] for item in found] == [1, 3]
        # An item that failed has no result: what went in says it.
        found = await _walk(ada, path, value="title:b*", statuses="ERROR", pageSize=size)
        assert [item["seq"] for item in found] == [4]
    assert await _walk(ada, path, value="title:chair") == []


async def test_looking_for_a_value_goes_through_a_bounded_number_of_rows(
    server: ApiServer,
) -> None:
    ada = await server.person("ada")
    titles = [f"title {number}" for number in range(1, 10_501)]
    made = await upload(ada, "title\n" + "\n".join(titles))
    job_id = made.json()["id"]
    await taken_in(ada, job_id)
    path = f"/api/jobs/{job_id}/items"
    query: dict[str, Any] = {"value": "title:title 104*", "pageSize": 150}
    first = (await ada.get(path, params=query)).json()
    assert [item["seq"] for item in first["items"]] == [104, *range(1040, 1050)]
    assert first["looked"] == 10_000
    second = (await ada.get(path, params={**query, "after": first["next"]})).json()
    assert [item["seq"] for item in second["items"]] == list(range(10_400, 10_500))
    assert (second["looked"], second["next"]) == (500, None)
    nothing = (await ada.get(path, params={"value": "title:title 10500"})).json()
    assert nothing["items"] == [] and nothing["next"]
    other = {"value": "title:title 1*", "after": nothing["next"]}
    assert (await ada.get(path, params=other)).status_code == 400
    assert [item["seq"] for item in await _walk(ada, path, value="title:title 10500")] == [10_500]
    walked = await _walk(ada, path, value="title:*99", pageSize=7, statuses="PENDING")
    assert [item["seq"] for item in walked] == list(range(99, 10_501, 100))


async def test_unknown_column_is_refused_with_the_known_ones(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "a")
    replies = [
        await ada.get(f"/api/jobs/{job['id']}/items", params={"value": value})
        for value in ("colour:red", "title", ":x", "")
    ]
    assert [reply.status_code for reply in replies] == [422] * 4
    assert "title" in replies[0].json()["hint"]


async def test_offsets_are_refused(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "a")
    for query in ("page=2", "sort=title"):
        assert (await ada.get(f"/api/jobs/{job['id']}/items?{query}")).status_code == 400
        assert (await ada.get(f"/api/pending?{query}")).status_code == 400


async def test_inputs_are_summarised_and_never_sent_whole_in_lists(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "y" * 50_000)
    (item,) = (await ada.get(f"/api/jobs/{job['id']}/items")).json()["items"]
    assert len(item["inputSummary"]) <= 120
    whole = (await ada.get(f"/api/jobs/{job['id']}/items/1")).json()
    assert len(whole["input"]["title"]) == 50_000


async def test_item_shows_its_full_history(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "broken", "chair")
    path = f"/api/jobs/{job['id']}/items"
    broken = (await ada.get(f"{path}/1")).json()
    assert broken["status"] == "ERROR"
    assert [each["number"] for each in broken["attemptsBefore"]] == list(
        range(1, len(broken["attemptsBefore"]) + 1)
    )
    chair = (await ada.get(f"{path}/2")).json()
    assert (chair["result"], chair["why"]) == ({"title": "chair", "length": 5}, None)
    assert (await ada.get(f"{path}/3")).status_code == 404


async def test_waiting_item_says_why(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\nchair\n")).json()["id"]
    await taken_in(ada, job_id)
    assert (await ada.post(f"/api/jobs/{job_id}/pause")).status_code == 200
    item = (await ada.get(f"/api/jobs/{job_id}/items/1")).json()
    assert (item["status"], item["why"]["kind"]) == ("PENDING", "paused")


async def test_named_items_are_opened_again(server: ApiServer) -> None:
    ada = await server.person("ada")
    job = await finished(server, ada, "chair", "missing")
    path = f"/api/jobs/{job['id']}/reprocess"
    reply = await ada.post(path, json={"scope": "items", "itemIds": [1]})
    assert (reply.status_code, reply.json()["opened"]) == (202, 1)
    again = await ada.post(path, json={"scope": "items", "itemIds": [1]})
    assert again.status_code == 409  # it is open already
    both = await ada.post(path, json={"scope": "items", "itemIds": [1, 2]})
    assert (both.status_code, both.json()["opened"], both.json()["left"]) == (202, 1, 1)
    assert (await ada.post(path, json={"scope": "items"})).status_code == 422
    job = await ended(server, ada, job["id"])
    story = (await ada.get(f"/api/jobs/{job['id']}/items/1")).json()
    assert len(story["attemptsBefore"]) == 1


async def test_named_open_items_are_skipped_and_others_left_alone(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\n" + "".join(f"t{n}\n" for n in range(9)))).json()["id"]
    await taken_in(ada, job_id)
    path = f"/api/jobs/{job_id}"
    reply = await ada.post(f"{path}/skip", json={"itemIds": [2, 4, 5, 99], "reason": "not ours"})
    assert (reply.status_code, reply.json()) == (200, {"skipped": 3, "left": 1})
    job = await ended(server, ada, job_id)
    assert (job["counters"]["skipped"], job["counters"]["done"]) == (3, 6)
    skipped = await _walk(ada, f"{path}/items", statuses="SKIPPED")
    assert {(item["seq"], item["errorMessage"]) for item in skipped} == {
        (2, "not ours"), (4, "not ours"), (5, "not ours"),
    }  # fmt: skip
    again = await ada.post(f"{path}/skip", json={"itemIds": [1]})
    assert again.status_code == 409  # the job is done
    assert (await ada.post(f"{path}/skip", json={"itemIds": []})).status_code == 422


async def test_skipping_the_last_open_items_ends_the_job(server: ApiServer) -> None:
    ada = await server.person("ada")
    job_id = (await upload(ada, "title\na\nb\n")).json()["id"]
    await taken_in(ada, job_id)
    await ada.post(f"/api/jobs/{job_id}/skip", json={"itemIds": [1, 2]})
    assert (await ada.get(f"/api/jobs/{job_id}")).json()["state"] == "DONE"


async def test_item_shows_what_people_did_to_it_and_not_to_others(server: ApiServer) -> None:
    ada = await server.person("ada")
    made = await upload(ada, "title\nchair\nstool\ntable\n")
    job_id = (await ended(server, ada, made.json()["id"]))["id"]
    again = {"scope": "items", "itemIds": [1, 3], "resetAttempts": True}
    done = await ada.post(f"/api/jobs/{job_id}/reprocess", json=again)
    assert done.json()["opened"] == 2
    ruling = {"kind": "reject", "reason": "not ours", "version": 0}
    ruled = await ada.put(f"/api/jobs/{job_id}/items/3/ruling", json=ruling)
    assert ruled.status_code == 200, ruled.text
    shown = {
        seq: (await ada.get(f"/api/jobs/{job_id}/items/{seq}")).json()["events"]
        for seq in (1, 2, 3)
    }
    actions = {seq: [event["action"] for event in events] for seq, events in shown.items()}
    assert actions == {1: ["reprocess"], 2: [], 3: ["reprocess", "ruling.reject"]}
