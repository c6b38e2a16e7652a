"""`items.add` messages: a program in any language may add records to a standing job."""

from __future__ import annotations

from holdfast.kernel.arrivals.adding import Adding
from holdfast.kernel.arrivals.idempotency import MessageKey
from holdfast.messaging.envelope import ItemsAdd, Message
from holdfast.messaging.signing import MessageTrust


class ItemAdds:
    """Adds records that messages contain.

    `owner`: whose standing job a message without an owner means. If any were allowed, unsigned
    messages could write into everyone's jobs."""

    def __init__(self, adding: Adding, trust: MessageTrust, owner: str) -> None:
        self._adding = adding
        self._trust = trust
        self._owner = owner

    async def add(self, message: Message, request: ItemsAdd, payload: bytes) -> None:
        """Stores the records in the transaction that records the message."""
        header, store = message.header, self._adding.store
        self._trust.check(payload, header.signature, request.owner)
        if header.signature is not None:
            self._trust.check_age(header.created_at, await store.jobs.now())
        owner = request.owner or self._owner
        job_id = await store.additions.standing_job(request.pipeline, owner)
        job = await store.reads.job(job_id)
        addition = self._adding.addition(job, request.rows, request.key, request.run_at)
        await self._adding.add(addition, MessageKey(header.message_id, header.type))
