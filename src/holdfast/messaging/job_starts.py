"""`job.start` messages: a program in any language may start a job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from holdfast.errors import UserError
from holdfast.kernel import Store
from holdfast.kernel.arrivals.idempotency import MessageKey
from holdfast.kernel.jobs.control import Control, JobRequest
from holdfast.messaging.envelope import JobStart, Message
from holdfast.messaging.signing import MessageTrust
from holdfast.observe.tracing import span
from holdfast.pipeline import Pipeline


class JobStarts:
    def __init__(
        self,
        store: Store,
        control: Control,
        pipelines: Mapping[str, Pipeline],
        log: Any,
        trust: MessageTrust,
    ) -> None:
        self._store = store
        self._control = control
        self._pipelines = pipelines
        self._log = log
        self._trust = trust

    async def start(self, message: Message, request: JobStart, payload: bytes) -> None:
        """Starts the job that a message asks for, in the transaction that records the message."""
        header = message.header
        self._trust.check(payload, header.signature, request.owner)
        if header.signature is not None:
            self._trust.check_age(header.created_at, await self._store.jobs.now())
        pipeline = self._pipelines.get(request.pipeline)
        if pipeline is None:
            known = ", ".join(sorted(self._pipelines))
            raise UserError(
                f"there is no pipeline {request.pipeline!r} here", f"This worker has: {known}."
            )
        parent = message.tracing.traceparent
        with span("job.create", parent, pipeline=request.pipeline) as trace:
            asked = JobRequest(pipeline, request.options, owner=request.owner)
            new = await self._control.new_job(asked)
            job_id = await self._store.messages.accept_job(
                MessageKey(header.message_id, header.type), replace(new, trace=trace)
            )
        if job_id is None:
            self._log.info("message.repeated", message_id=header.message_id, type=header.type)
        else:
            self._log.info("job.created", job_id=job_id, pipeline=new.pipeline, name=new.name)
