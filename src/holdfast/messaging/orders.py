"""Orders that come as messages: what a producer in any language may ask for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.engine.control import Control
from holdfast.errors import UserError
from holdfast.messaging.envelope import Envelope, JobStart
from holdfast.observe.tracing import span
from holdfast.pipeline import Pipeline
from holdfast.store import Store


class Orders:
    def __init__(
        self,
        store: Store,
        control: Control,
        pipelines: Mapping[str, Pipeline],
        log: Any,
    ) -> None:
        self._store = store
        self._control = control
        self._pipelines = pipelines
        self._log = log

    async def start(self, envelope: Envelope, order: JobStart) -> None:
        """Makes the job that a message orders, in the transaction that remembers the message."""
        pipeline = self._pipelines.get(order.pipeline)
        if pipeline is None:
            known = ", ".join(sorted(self._pipelines))
            raise UserError(
                f"there is no pipeline {order.pipeline!r} here", f"This worker has: {known}."
            )
        message_id = envelope.header.message_id
        with span("job.create", envelope.tracing.traceparent, pipeline=order.pipeline) as trace:
            new = await self._control.discovery_job(
                pipeline, dict(order.options), owner=order.owner
            )
            job_id = await self._store.messages.accept_job(
                message_id, envelope.header.type, replace(new, trace=trace)
            )
        if job_id is None:
            self._log.info("message.repeated", message_id=message_id, type=envelope.header.type)
        else:
            self._log.info("job.created", job_id=job_id, pipeline=new.pipeline, name=new.name)
