"""The pipeline class, which puts the parts together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from holdfast.errors import Category, ErrorCode, Failed, RetryClass
from holdfast.model import Job, Json
from holdfast.pipeline import Context, Done, Fetch, Pipeline, Settled, Tx
from holdfast.rulings import Proposal, Ruled
from holdfast_linker import deciding, proposing, saving
from holdfast_linker.options import JOB_OPTIONS, LinkerOptions
from holdfast_linker.providing import Providers
from holdfast_linker.saving import Matched, entry_of, result_of, rules_for
from holdfast_linker.tasks import COLUMNS

_CODES = {
    "NAME_MISSING": ErrorCode("NAME_MISSING", Category.CONTENT, RetryClass.NEVER),
    "CONTACT_MISSING": ErrorCode("CONTACT_MISSING", Category.GENERIC, RetryClass.NEVER),
    # A truncated reply, or one that is not JSON, is most likely a temporary problem.
    "PARSE_ERROR": ErrorCode("PARSE_ERROR", Category.PARSING, RetryClass.SOON),
    "INVALID_RESPONSE": ErrorCode("INVALID_RESPONSE", Category.PARSING, RetryClass.SOON),
}


class Linker(Pipeline):
    """Matches each entry of a dataset to an item of Wikidata or of a Reconciliation service."""

    name = "linker"
    columns = COLUMNS
    options = JOB_OPTIONS
    min_concurrency = 16  # fewer would leave batches of look-ups empty
    error_codes: Mapping[str, ErrorCode] = _CODES

    def __init__(self, options: LinkerOptions | None = None) -> None:
        self.settings = options or LinkerOptions()
        self.timeout = self.settings.timeout_seconds
        self.gates = (self.settings.wikidata_gate,)
        self._providers = Providers(self.settings)
        self.loaders = self._providers.loaders()
        super().__init__()

    async def process(self, row: Json, ctx: Context) -> Done:
        rules = rules_for(ctx.job, row)
        if self.settings.lacks_contact(rules.provider):
            raise Failed("CONTACT_MISSING", "HOLDFAST_LINKER_CONTACT is not set")
        entry = entry_of(row, rules, ctx.seq)
        if not entry.searchable:
            raise Failed("NAME_MISSING", "the entry has neither a name nor an identifier")
        result = await self._providers.match(entry, rules, ctx)
        calls = self._providers.calls_since(ctx.job.id)
        values = result_of(entry, result.ranking, rules.candidates)
        return Done(values, effects=Matched(entry, result.ranking, calls))

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        await saving.save(tx, settled)
        if self.metrics is not None:
            for item in settled:
                done = item.effects is not None
                state = str(saving.state_of(item.effects.ranking)) if done else "failed"
                self.metrics.entries.labels(state).inc()
                self.metrics.calls.inc(item.effects.calls if done else 0)

    async def proposals(
        self, fetch: Fetch, job: Job, criteria: Json, after: int, limit: int
    ) -> Sequence[Proposal]:
        return await proposing.proposals(fetch, job.id, criteria, after, limit)

    async def ruling(self, tx: Tx, ruled: Ruled) -> Mapping[str, Any]:
        changes = await deciding.decide(tx, ruled)
        if self.metrics is not None:
            self.metrics.decisions.labels(str(ruled.kind)).inc()
        return changes
