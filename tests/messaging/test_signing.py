"""Signed messages: changed, unsigned or signed with another key, they name no owner."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta
from typing import Any

import pytest
import structlog

from holdfast.errors import NotAllowed, NotThere
from holdfast.kernel.arrivals.adding import Adding
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.messaging.envelope import parse
from holdfast.messaging.item_adds import ItemAdds
from holdfast.messaging.job_starts import JobStarts
from holdfast.messaging.signing import MessageTrust
from holdfast.model import Page
from holdfast.pipeline import Pipeline
from tests.messaging.fleet_scene import message

KEY = "a key that is shared"
BODY = {"pipeline": "finding", "owner": "ana", "options": {}}


def _check(payload: bytes, trust: MessageTrust) -> None:
    parsed: Any = parse(payload, 100_000)
    trust.check(payload, parsed.header.signature, parsed.body.owner)


def test_signed_message_may_name_an_owner() -> None:
    _check(message("job.start", BODY, key=KEY), MessageTrust(KEY))


@pytest.mark.parametrize(
    ("payload", "trust"),
    [
        (message("job.start", BODY), MessageTrust()),
        (message("job.start", BODY), MessageTrust(KEY)),
        (message("job.start", BODY, key="another key"), MessageTrust(KEY)),
        (message("job.start", BODY, key=KEY), MessageTrust()),
        (message("job.start", BODY, key=KEY).replace(b"ana", b"eve"), MessageTrust(KEY)),
        (message("job.start", {"pipeline": "finding"}), MessageTrust(KEY)),
    ],
)
def test_message_with_a_bad_signature_is_refused(payload: bytes, trust: MessageTrust) -> None:
    with pytest.raises(NotAllowed):
        _check(payload, trust)


def test_without_a_key_an_unsigned_message_without_an_owner_is_followed() -> None:
    _check(message("job.start", {"pipeline": "finding"}), MessageTrust())


class Finding(Pipeline):
    name = "finding"

    async def discover(self, source: str, cursor: Any, ctx: Any) -> AsyncIterator[Page]:
        yield Page([], end=True)

    async def process(self, row: dict[str, Any], ctx: Any) -> Any:
        return row


async def test_copy_of_a_signed_message_starts_nothing_when_its_id_is_forgotten(
    store: Any,
) -> None:
    log = structlog.get_logger()
    pipelines: dict[str, Pipeline] = {"finding": Finding()}
    trust = MessageTrust(KEY, memory=timedelta(days=14))
    starts = JobStarts(store, Control(store, "local", log), pipelines, log, trust)

    async def start(**sent: Any) -> None:
        payload = message("job.start", BODY, **sent)
        parsed: Any = parse(payload, 100_000)
        await starts.start(parsed, parsed.body, payload)

    for age in (timedelta(days=14), timedelta(days=-1)):
        with pytest.raises(NotAllowed, match="not recent"):
            await start(key=KEY, age=age)
    await start(key=KEY, age=timedelta(days=13))
    assert (await store.reads.job(1)).owner_id == "ana"


async def test_unsigned_records_go_to_no_standing_job_of_another_owner(store: Any) -> None:
    log, finding = structlog.get_logger(), Finding()
    await Control(store, "ana", log).open(JobRequest(finding))
    adding = Adding(store, {"finding": finding}, 100_000, log)

    async def add(body: dict[str, Any], key: str = "") -> None:
        payload = message(
            "items.add", {"pipeline": "finding", "rows": [{"id": 1}], **body}, key=key
        )
        parsed: Any = parse(payload, 100_000)
        await ItemAdds(adding, MessageTrust(key), "local").add(parsed, parsed.body, payload)

    with pytest.raises(NotThere, match="local has no standing job"):
        await add({})
    await add({"owner": "ana"}, KEY)
    assert (await store.reads.counters(1)).accepted == 1
