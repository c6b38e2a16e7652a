"""What goes wrong between us and a site: retried or reported, never taken for an end."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from urllib.parse import urlencode, urlsplit

import pytest

from holdfast.kernel import Store
from pipelines.meetings.tests.front import Front, is_walk
from pipelines.meetings.tests.site import Row, Site, each_generation, generated
from pipelines.meetings.tests.town import Town
from tests.store.checks import execute
from tests.world import Answer, Raw, Request, json_answer, redirect, text_answer


def sometimes(answer: Answer | Raw | Callable[[], Answer | Raw], *numbers: int) -> object:
    """Answers so in place of the requests of these numbers."""

    def rule(_: Request, number: int) -> Answer | Raw | None:
        if number not in numbers:
            return None
        return answer() if callable(answer) else answer

    return rule


def truncated() -> Raw:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 9999\r\n\r\n"
    return Raw([head, b'{"ok": true, "rows": [{"id": "00'])


HICCUPS = {
    "500": json_answer({"ok": False, "error": "oops"}, 500),
    "502 in HTML": text_answer("<h1>Bad gateway</h1>", 502, "text/html"),
    "HTML with status 200": text_answer("<h1>Hello</h1>", 200, "text/html"),
    "connection cut in the body": truncated,
    "half of the JSON": Answer(
        200, b'{"ok": true, "rows": [{"id": "0', {"Content-Type": "application/json"}
    ),
    "no rows in the JSON": json_answer({"ok": True}),
    "table gone within a request": json_answer(
        {"ok": False, "error": "no such table: minutes", "title": "Invalid SQL"}, 400
    ),
    "SQL time limit": json_answer({"ok": False, "error": "SQL Interrupted"}, 400),
}


@pytest.mark.parametrize("hiccup", HICCUPS.values(), ids=HICCUPS.keys())
async def test_hiccup_is_tried_again_and_loses_nothing(
    town: Town, site: Site, front: Front, hiccup: Answer
) -> None:
    site.add("minutes", generated(450))
    front.rule("minutes", sometimes(hiccup, 1, 3, 4, 8, 20))  # type: ignore[arg-type]
    await town.backfill(types=["minutes"])
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()


@pytest.mark.parametrize("slow_from", ["first page", "second page"])
async def test_site_that_cannot_find_a_month_in_time_is_read_in_full_and_filtered_here(
    store: Store, town: Town, site: Site, front: Front, slow_from: str
) -> None:
    rows = generated(40)
    same_month = [Row("Parks", rows[0].date, 900 + number, "text") for number in range(25)]
    site.add("minutes", [*rows, *same_month])
    town = Town(store, town.url, town.subdomain, page_size=20)
    slow = json_answer({"ok": False, "error": "<p>SQL query took too long.</p>"}, 400)

    def dates_are_slow(request: Request, _: int) -> Answer | None:
        first = "_next" not in request.query
        is_slow = "date__gte" in request.query and (slow_from == "first page" or not first)
        return slow if is_slow else None

    front.rule("minutes", dates_are_slow)
    await town.backfill(types=["minutes"])
    await town.assert_verified()
    recent = generated(40, seed=2)[::4]
    site.add("minutes", recent)
    await town.backfill(types=["minutes"])
    assert await town.pages() == site.rows("minutes")
    assert (await town.stream(mode="incremental"))["job_state"] == "DONE"


async def test_site_that_cannot_give_large_pages_in_time_is_asked_for_smaller_ones(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(150))
    slow = json_answer({"ok": False, "error": "SQL Interrupted"}, 400)
    front.rule("minutes", lambda asked, _: slow if int(asked.query["_size"]) > 30 else None)
    await town.backfill(types=["minutes"])
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()


async def test_sifted_walk_that_ends_too_early_is_not_an_end(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(450))
    await town.backfill(types=["minutes"])
    slow = json_answer({"ok": False, "error": "SQL query took too long"}, 400)

    async def cut_short(request: Request, _: int) -> Answer | None:
        if "date__gte" in request.query:
            return slow
        if not is_walk(request.query):
            return None
        body = json.loads((await front.forward(request.target)).body)
        return json_answer({**body, "next": None})

    front.rule("minutes", cut_short)
    await town.backfill(types=["minutes"])
    stream = await town.stream(mode="incremental")
    assert stream["job_state"] == "FAILED" and "the pages ended at" in stream["error"]


async def test_temporary_error_that_persists_fails_the_stream(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(450))
    broken = json_answer({"ok": False, "error": "oops"}, 500)
    front.rule("minutes", lambda _, number: broken if number > 2 else None)
    await town.backfill(types=["minutes"])
    stream = await town.stream()
    assert stream["job_state"] == "FAILED" and "500" in stream["error"]
    assert stream["full_completed_at"] is None
    assert len(await town.pages()) == 200


async def test_402_closes_the_gate_and_uses_up_no_attempt(
    town: Town, site: Site, front: Front
) -> None:
    """More of them in a row than a page that fails has attempts."""
    site.add("minutes", generated(250))
    body = {"error": "rate_limit_exceeded", "message": "Slow down"}
    throttled = json_answer(body, 402, {"Retry-After": "1"})
    front.rule("minutes", lambda _, number: throttled if 2 < number < 9 else None)
    await town.backfill(types=["minutes"])
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()
    (gate,) = await town.store.gates.all()
    assert "402" in gate["reason"] and "rate_limit_exceeded" in gate["reason"]


async def test_402_of_another_kind_is_reported(town: Town, front: Front) -> None:
    front.rule("minutes", lambda _, number: json_answer({"error": "query_too_long"}, 402))
    await town.backfill(types=["minutes"])
    assert "query_too_long" in (await town.stream())["error"]


async def test_timeout_is_tried_again(store: Store, town: Town, site: Site, front: Front) -> None:
    site.add("minutes", generated(350))

    async def slow(_: Request, number: int) -> None:
        if number in (2, 5):
            await asyncio.sleep(3)

    front.rule("minutes", slow)
    hasty = Town(store, town.url, town.subdomain, timeout_seconds=0.5)
    await hasty.backfill(types=["minutes"])
    assert await hasty.pages() == site.rows("minutes")
    await hasty.assert_verified()


@each_generation
async def test_size_is_taken_from_what_came(town: Town, site: Site, front: Front) -> None:
    """The site silently returns smaller pages than requested, and later even smaller ones."""
    site.add("minutes", generated(450))

    async def lowered(request: Request, number: int) -> Answer | None:
        query = request.query
        if query.get("_size") in ("0", "1"):
            return None
        size = "70" if number < 4 else "30"
        parts = urlsplit(request.target)
        return await front.forward(f"{parts.path}?{urlencode({**query, '_size': size})}")

    front.rule("minutes", lowered)
    await town.backfill(types=["minutes"])
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()


@each_generation
async def test_size_beyond_the_site_s_own_limit_is_lowered(
    store: Store, town: Town, site: Site
) -> None:
    site.add("minutes", generated(1200))
    greedy = Town(store, town.url, town.subdomain, page_size=5000)
    await greedy.backfill(types=["minutes"])
    assert await greedy.pages() == site.rows("minutes")


@each_generation
async def test_token_that_repeats_is_an_error(town: Town, site: Site, front: Front) -> None:
    site.add("minutes", generated(450))
    answers: list[Answer] = []

    async def repeat(request: Request, number: int) -> Answer | None:
        if not is_walk(request.query):
            return None
        answers.append(answers[1] if len(answers) > 1 else await front.forward(request.target))
        return answers[-1]

    front.rule("minutes", repeat)
    await town.backfill(types=["minutes"])
    stream = await town.stream()
    assert stream["job_state"] == "FAILED" and stream["full_completed_at"] is None
    assert "order of ids" in stream["error"]


async def test_same_token_with_new_rows_is_an_error(town: Town, site: Site, front: Front) -> None:
    site.add("minutes", generated(450))
    tokens: list[str] = []

    async def same_token(request: Request, number: int) -> Answer | None:
        if not is_walk(request.query):
            return None
        answer = await front.forward(request.target)
        body = json.loads(answer.body)
        tokens.append(tokens[0] if tokens else body["next"])
        return json_answer({**body, "next": tokens[-1]})

    front.rule("minutes", same_token)
    await town.backfill(types=["minutes"])
    stream = await town.stream()
    assert stream["job_state"] == "FAILED" and stream["full_completed_at"] is None


@pytest.mark.parametrize("sort", [{"_sort": "date"}, {"_sort_desc": "date"}, {}])
async def test_site_that_sorts_otherwise_is_an_error_and_no_end(
    town: Town, site: Site, front: Front, sort: dict[str, str]
) -> None:
    """A front that drops or changes the sort: the token then means something else."""
    site.add("minutes", generated(450))

    async def resort(request: Request, number: int) -> Answer | None:
        if not is_walk(request.query):
            return None
        query = {k: v for k, v in request.query.items() if k != "_sort"} | sort
        return await front.forward(f"{urlsplit(request.target).path}?{urlencode(query)}")

    front.rule("minutes", resort)
    await town.backfill(types=["minutes"])
    stream = await town.stream()
    assert stream["job_state"] == "FAILED" and "order of ids" in stream["error"]
    assert stream["full_completed_at"] is None


@each_generation
async def test_token_of_another_sort_is_not_a_false_end(
    town: Town, site: Site, front: Front
) -> None:
    """Once in mid-walk the site answers as it does to a token that it misreads: no rows, no
    successor, status 200."""
    site.add("minutes", generated(450))

    async def misread(request: Request, number: int) -> Answer | None:
        if number != 3:
            return None
        parts = urlsplit(request.target)
        query = {**request.query, "_next": "$null,zzzz"}
        answer = await front.forward(f"{parts.path}?{urlencode(query)}")
        body = json.loads(answer.body)
        return json_answer({**body, "rows": [], "next": None})

    front.rule("minutes", misread)
    await town.backfill(types=["minutes"])
    assert await town.pages() == site.rows("minutes")
    await town.assert_verified()


async def test_site_that_does_not_exist_is_reported(town: Town, front: Front) -> None:
    front.rule("minutes", lambda _, number: redirect("http://home.example/"))
    await town.backfill(types=["minutes"])
    error = (await town.stream())["error"]
    assert "home.example" in error and "another host is refused" in error


async def test_key_and_secret_are_sent_and_a_bad_key_is_reported(
    store: Store, front: Front
) -> None:
    town = Town(store, front.url, api_key="k3y", service_secret="s3rvice", secret_hosts=front.url)
    await town.add()
    refused = json_answer({"error": "Invalid API key"}, 401)
    front.rule("minutes", lambda _, number: refused)
    await town.backfill(types=["minutes"])
    sent = front.world.requests[0].headers
    assert (sent["authorization"], sent["x-service-secret"]) == ("Bearer k3y", "s3rvice")
    stream = await town.stream()
    assert stream["job_state"] == "FAILED" and "401" in stream["error"]
    assert "k3y" not in stream["error"]


async def test_requests_turn_off_what_costs_and_ask_for_objects(
    town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(250))
    await town.backfill(types=["minutes"])
    for query in front.requests("minutes"):
        assert query["_shape"] == "objects"
        assert query["_nofacet"] == query["_nosuggest"] == "1"
        assert ("_nocount" in query) != ("_extra" in query)
    assert sum("_extra" in query for query in front.requests("minutes") if is_walk(query)) == 1


async def test_cursor_of_another_query_is_refused(
    store: Store, town: Town, site: Site, front: Front
) -> None:
    site.add("minutes", generated(450))
    broken = json_answer({"ok": False, "error": "oops"}, 500)
    front.rule("minutes", lambda _, number: broken if number > 2 else None)
    await town.backfill(types=["minutes"])
    await execute(town.store, "update streams set fingerprint = 'another'")
    front.rule("minutes", lambda _, number: None)
    await town.backfill(types=["minutes"])
    assert "changed since its cursor was stored" in (await town.stream())["error"]
