"""Messages to other programs' exchanges: written with the change that causes them, sent by a
relay."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import orjson

from holdfast.errors import PipelineError
from holdfast.kernel.database.driver import Transaction

_NAME_BYTES = 255  # AMQP's limit


async def send_message(
    tx: Transaction,
    exchange: str,
    routing_key: str,
    body: Any,
    headers: Mapping[str, str | int | float | bool] | None = None,
    message_id: str | None = None,
) -> str:
    """Puts a message into the outbox; returns its id. Bytes and text are sent as they are, anything
    else as JSON."""
    for name in (exchange, routing_key, message_id or ""):
        if len(name.encode()) > _NAME_BYTES:
            raise PipelineError(
                f"{name[:40]}… is longer than {_NAME_BYTES} bytes, which AMQP allows"
            )
    params = {
        "exchange": exchange,
        "routing_key": routing_key,
        "message_id": message_id,
        "payload": _bytes(body),
        "headers": orjson.dumps(dict(headers or {})).decode(),
    }
    return str((await tx.take("send_message", params))[0]["message_id"])


def _bytes(body: Any) -> bytes:
    if isinstance(body, bytes):
        return body
    if isinstance(body, str):
        return body.encode()
    try:
        return orjson.dumps(body)
    except (TypeError, ValueError) as error:
        raise PipelineError(f"the body of a message is not JSON: {error}") from error
