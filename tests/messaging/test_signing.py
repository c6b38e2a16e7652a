"""Signed messages: changed, unsigned or signed with another key, they name no owner (W12)."""

from __future__ import annotations

from typing import Any

import pytest

from holdfast.errors import NotAllowed
from holdfast.messaging.envelope import parse
from holdfast.messaging.signing import MessageTrust
from tests.messaging.fleet_scene import message

KEY = "a key that is shared"
BODY = {"pipeline": "finding", "owner": "ana", "options": {}}


def _check(payload: bytes, trust: MessageTrust) -> None:
    parsed: Any = parse(payload, 100_000)
    trust.check(payload, parsed.header.signature, parsed.body.owner)


@pytest.mark.parametrize("required", [False, True])
def test_signed_message_may_name_an_owner(required: bool) -> None:
    _check(message("job.start", BODY, key=KEY), MessageTrust(KEY, required))


@pytest.mark.parametrize(
    ("payload", "trust"),
    [
        (message("job.start", BODY), MessageTrust()),
        (message("job.start", BODY), MessageTrust(KEY)),
        (message("job.start", BODY, key="another key"), MessageTrust(KEY)),
        (message("job.start", BODY, key=KEY), MessageTrust()),
        (message("job.start", BODY, key=KEY).replace(b"ana", b"eve"), MessageTrust(KEY)),
        (message("job.start", {"pipeline": "finding"}), MessageTrust(KEY, required=True)),
    ],
)
def test_message_with_a_bad_signature_is_refused(payload: bytes, trust: MessageTrust) -> None:
    with pytest.raises(NotAllowed):
        _check(payload, trust)


def test_unsigned_message_without_an_owner_is_taken() -> None:
    _check(message("job.start", {"pipeline": "finding"}), MessageTrust(KEY))
