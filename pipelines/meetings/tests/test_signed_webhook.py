"""The webhook's signed form: in time, unchanged, and once."""

from __future__ import annotations

from datetime import timedelta

import pytest

from holdfast.clock import SystemClock
from holdfast.features.accounts.signatures import HEADER, sign
from holdfast.kernel import Store
from pipelines.meetings.tests.test_webhook import PATH, SECRET, client_of
from pipelines.meetings.tests.town import Town

BODY = b'{"name": "Alameda"}'
NONCE = "0123456789abcdef"


@pytest.mark.parametrize("signed", [False, True])
async def test_signed_webhook_is_taken_once(store: Store, database_url: str, signed: bool) -> None:
    town = Town(store, "http://127.0.0.1:1", webhook_secret=SECRET, webhook_signed=signed)
    now = SystemClock().now()
    async with client_of(town, database_url) as client:
        bare = await client.put(PATH, content=BODY, headers={"Authorization": f"Bearer {SECRET}"})
        assert bare.status_code == (401 if signed else 201)
        good = {HEADER: sign(SECRET, PATH, BODY, NONCE, now)}
        assert (await client.put(PATH, content=BODY, headers=good)).status_code in (200, 201)
        again = await client.put(PATH, content=BODY, headers=good)
        assert again.status_code == 401 and "before" in again.json()["error"]


@pytest.mark.parametrize(
    "header",
    [
        "",
        "t=1,n=short,v1=00",
        sign("wrong", PATH, BODY, NONCE, SystemClock().now()),
        sign(SECRET, "/munis/api/update/other.ca/", BODY, NONCE, SystemClock().now()),
        sign(SECRET, PATH, b"{}", NONCE, SystemClock().now()),
        sign(SECRET, PATH, BODY, NONCE, SystemClock().now() - timedelta(minutes=6)),
    ],
    ids=["none", "malformed", "other key", "other path", "other body", "too old"],
)
async def test_wrong_signature_is_refused_even_with_the_secret(
    store: Store, database_url: str, header: str
) -> None:
    town = Town(store, "http://127.0.0.1:1", webhook_secret=SECRET)
    headers = {HEADER: header, "Authorization": f"Bearer {SECRET}"}
    async with client_of(town, database_url) as client:
        assert (await client.put(PATH, content=BODY, headers=headers)).status_code == 401
