"""The pipeline class, which puts the parts together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from holdfast.clock import Clock, SystemClock
from holdfast.errors import Failed
from holdfast.model import Json, Lane
from holdfast.pipeline import Context, Done, Pipeline, Settled, Tx
from holdfast_posts import saving, tending
from holdfast_posts.analysis.post import analyse
from holdfast_posts.analysis.sentiment import Model, models
from holdfast_posts.normalising import has_content, normalised
from holdfast_posts.options import PostsOptions


class Posts(Pipeline):
    """Crawled posts: sentiment, intent, impact and risk of each."""

    name = "posts"
    columns = (
        "content_id", "platform", "status", "sentiment", "score", "intent", "impact", "risk",
        "code",
    )  # fmt: skip
    lane = Lane.EVENT
    fed_by_consumers = True  # a record names its batch, which decides the project

    def __init__(
        self,
        options: PostsOptions | None = None,
        clock: Clock | None = None,
        sentiment_models: Mapping[str, Model] | None = None,
    ) -> None:
        self.settings = options or PostsOptions()
        self._clock = clock or SystemClock()
        self._models = models() if sentiment_models is None else sentiment_models
        super().__init__()

    async def process(self, row: Json, ctx: Context) -> Done:
        if "bad" in row:
            raise Failed("PARSE_ERROR", f"{row['bad']}: {row.get('excerpt', '')}"[:300])
        started, now = self._clock.monotonic(), self._clock.now()
        post = normalised(row.get("post"), row.get("platform"), now)
        analysis = analyse(post, self._models) if has_content(post) else None
        effects = {
            "post": post,
            "analysis": analysis,
            "at": row["at"],
            "milliseconds": round((self._clock.monotonic() - started) * 1000, 3),
            "settled_at": now,
        }
        return Done(_result(post, analysis), effects)

    async def save(self, tx: Tx, settled: Sequence[Settled]) -> None:
        await saving.save(tx, settled, self.settings, self.metrics)

    async def tend(self, tx: Tx) -> bool:
        return await tending.tend(tx, self.settings)


def _result(post: Json, analysis: Json | None) -> Json:
    found = analysis or {}
    return {
        "content_id": post["content_id"],
        "platform": post["platform"],
        "status": "error" if analysis is None else "success",
        "sentiment": found.get("overall_sentiment"),
        "score": found.get("sentiment_score"),
        "intent": found.get("primary_intent"),
        "impact": found.get("impact_score"),
        "risk": found.get("risk_level"),
        "code": post["error_code"],
    }
