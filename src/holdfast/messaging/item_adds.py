"""`items.add` messages: a program in any language may add records to a standing job."""

from __future__ import annotations

from holdfast.engine.adding import Adding, Records
from holdfast.messaging.envelope import ItemsAdd, Message
from holdfast.messaging.signing import MessageTrust


class ItemAdds:
    def __init__(self, adding: Adding, trust: MessageTrust) -> None:
        self._adding = adding
        self._trust = trust

    async def add(self, message: Message, request: ItemsAdd, payload: bytes) -> None:
        """Stores the records in the transaction that records the message."""
        self._trust.check(payload, message.header.signature, request.owner)
        store = self._adding.store
        job_id = await store.additions.standing_job(request.pipeline, request.owner or "")
        job = await store.reads.job(job_id)
        records = Records(request.rows, request.key)
        await self._adding.add_once(job, records, message.header.message_id, message.header.type)
