"""Declares the queues that posts reads."""

from __future__ import annotations

from collections.abc import Sequence

from holdfast.consumers import Binding, ConsumerTools, QueueConsumer
from holdfast_posts.formats import EVENT_TYPE
from holdfast_posts.intake import Intake
from holdfast_posts.pipeline import Posts


def consumers(tools: ConsumerTools) -> Sequence[QueueConsumer]:
    pipeline = tools.pipeline
    assert isinstance(pipeline, Posts)
    options, intake = pipeline.settings, Intake(pipeline.settings, tools)
    queues = [(options.queue, [Binding(options.exchange, EVENT_TYPE, "topic")])]
    if options.legacy_queue:
        queues.append((options.legacy_queue, []))
    return [
        QueueConsumer(
            queue,
            intake.take,
            bindings,
            prefetch=options.prefetch,
            consumers=options.max_concurrent_batches,
            prepare=intake.prepare,
        )
        for queue, bindings in queues
    ]
