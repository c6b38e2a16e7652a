"""The settings of posts. Some are read under the older names of the crawler's service too."""

from __future__ import annotations

from dataclasses import dataclass

from holdfast.settings import setting

MIB = 1024 * 1024


@dataclass(frozen=True, slots=True)
class PostsOptions:
    exchange: str = setting("smap.events", "Exchange of the crawlers' events.")
    queue: str = setting("analytics.data.collected", "Queue of `data.collected` events.")
    legacy_queue: str = setting(
        "analytics_queue", "Queue of messages in the legacy formats; empty: none."
    )
    prefetch: int = setting(
        1,
        "Maximum number of messages that a consumer processes at once.",
        1,
        1000,
        alias="RABBITMQ_PREFETCH_COUNT",
    )
    max_concurrent_batches: int = setting(
        5, "Consumers of the queue in each process.", 1, 100, alias="MAX_CONCURRENT_BATCHES"
    )
    buckets: str = setting(
        "crawl-results", "Buckets that batches are fetched from, separated by commas."
    )
    new_mode_enabled: bool = setting(
        True, "Whether events can be processed at all.", alias="NEW_MODE_ENABLED"
    )
    legacy_mode_enabled: bool = setting(
        True, "Whether legacy messages can be processed at all.", alias="LEGACY_MODE_ENABLED"
    )
    park_seconds: float = setting(
        30.0, "Time after which a parked message is tried again.", 0.1, 86_400
    )
    missing_first_seconds: float = setting(
        5.0, "First delay of an event whose batch is not there; it doubles.", 0.1, 86_400
    )
    missing_longest_seconds: float = setting(300.0, "Longest such delay.", 0.1, 86_400)
    missing_tries: int = setting(
        20, "Tries after which an event without a batch is dead.", 1, 10_000
    )
    max_message_bytes: int = setting(
        8 * MIB, "Largest message; larger ones become dead letters.", 1024, 128 * MIB
    )
    max_batch_bytes: int = setting(32 * MIB, "Largest batch, unpacked.", 1024, 1024 * MIB)
    max_batch_items: int = setting(10_000, "Maximum number of items in a batch.", 1, 1_000_000)
    max_item_bytes: int = setting(8 * MIB, "Largest item; larger ones fail alone.", 100, 1024 * MIB)
    publish_results: bool = setting(
        True, "Send `analysis.finished` to the exchange after each batch."
    )
    results_key: str = setting("analysis.finished", "Routing key of these messages.")
    retain_errors_days: float | None = setting(
        None, "Days that errors of crawlers are kept.", 0.01, 36_500, shown="forever"
    )
    retain_batches_days: float | None = setting(
        None,
        "Days that finished batches, their lists of items and their events are kept. An event that"
        " comes again later is processed again.",
        0.01,
        36_500,
        shown="forever",
    )

    @property
    def allowed_buckets(self) -> frozenset[str]:
        return frozenset(name.strip() for name in self.buckets.split(",") if name.strip())
