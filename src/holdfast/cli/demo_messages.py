"""Messages of other programs in the demo, which has no broker: handed to their consumers
directly."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from holdfast.cli.served_flags import extensions_of, served_flags
from holdfast.clock import SystemClock
from holdfast.configuration import Settings
from holdfast.consumers import ConsumerTools, Incoming
from holdfast.errors import NotThere
from holdfast.extension import installed
from holdfast.kernel import Store
from holdfast.kernel.worker.flag_values import FlagValues
from holdfast.pipeline import Pipeline


@dataclass(frozen=True, slots=True)
class DemoMessages:
    """Takes a message as if it came from the first queue of the pipeline's extension."""

    store: Store
    settings: Settings
    pipeline: Pipeline
    log: Any

    async def take(self, body: bytes, files: Mapping[str, bytes]) -> None:
        """Takes a message; `files`: what it refers to, by BUCKET/KEY."""
        from holdfast.cli.broker_composition import accepting

        clock, flags = SystemClock(), served_flags(self.settings, extensions_of(self._pipelines))

        async def fetch(bucket: str, key: str) -> AsyncIterator[bytes]:
            if f"{bucket}/{key}" not in files:
                raise NotThere(f"there is no {bucket}/{key}")
            yield files[f"{bucket}/{key}"]

        values = FlagValues(self.store, flags, clock)
        tools = ConsumerTools(self.pipeline, values.get, fetch, clock, self.log)
        spec = installed()[self.pipeline.name].load("consumers")(tools)[0]
        incoming = Incoming(spec.queue, body, {}, None)
        message = replace(incoming, prepared=await spec.prepare(incoming))
        accept = accepting(self.settings, self.store, self.pipeline, spec, self.log)
        await accept(None, spec.queue, lambda tx: spec.take(tx, message))

    @property
    def _pipelines(self) -> dict[str, Pipeline]:
        return {self.pipeline.name: self.pipeline}
