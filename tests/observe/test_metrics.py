import math
import re
from threading import Thread

import pytest
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from holdfast.observe.metrics import (
    ITEM_SECONDS_BOUNDS,
    Metrics,
    QueueReading,
    item_bucket,
)

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


def samples_of(text: str) -> Samples:
    return {
        (sample.name, tuple(sorted(sample.labels.items()))): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def exposed(metrics: Metrics) -> Samples:
    return samples_of(generate_latest(metrics.registry).decode())


def bucketed(seconds: list[float]) -> list[int]:
    counts = [0] * (len(ITEM_SECONDS_BOUNDS) + 1)
    for each in seconds:
        counts[item_bucket(each)] += 1
    return counts


def test_every_metric_can_be_read_by_a_prometheus_parser() -> None:
    metrics = Metrics()
    metrics.items.labels("prices", "DONE").inc(3)
    metrics.walk_seconds.labels("prices").observe(0.4)
    metrics.claim_items.labels("prices").observe(200)
    metrics.retries.labels("prices", "network").inc()
    metrics.throttles.labels("prices").inc()
    metrics.alerting_errors.labels("prices", "AUTH_FAILED").inc()
    metrics.set_dead_letters({"prices": 1})
    metrics.ingest_rows.labels("prices").inc(256)
    metrics.database_seconds.labels("settle").observe(0.01)
    metrics.pool_wait_seconds.observe(0.02)
    metrics.gate_passed("api.example.org", 1.5)
    metrics.gate_throttled("api.example.org")
    metrics.gate_limit_is("api.example.org", 8)
    metrics.broker_queue_depth.labels("holdfast.bulk").set(4)
    metrics.messages.labels("slice.process", "done").inc()
    metrics.page_seconds.labels("items").observe(0.01)
    metrics.observe_items("prices", bucketed([0.02]), 0.02, 1)
    metrics.set_queue({"prices": QueueReading(7, 1.5)})

    samples = exposed(metrics)

    names = {name for name, _ in samples}
    for each in metrics.described:
        suffix = "_count" if each.kind == "histogram" else ""
        assert each.name + suffix in names
    assert samples["holdfast_items_total", (("pipeline", "prices"), ("status", "DONE"))] == 3
    assert samples["holdfast_pool_wait_seconds_count", ()] == 1


def test_names_carry_prefix_and_kind_and_no_label_is_unbounded() -> None:
    bounded = {"pipeline", "status", "kind", "category", "operation", "queue", "type", "outcome",
               "list", "gate", "code"}  # fmt: skip
    for each in Metrics().described:
        assert re.fullmatch(r"holdfast_[a-z_]+", each.name)
        assert each.name.endswith("_total") is (each.kind == "counter")
        assert set(each.labels) <= bounded


def test_gates_beyond_the_first_hundred_share_a_series() -> None:
    metrics = Metrics()
    for number in range(150):
        metrics.gate_throttled(f"host {number}")
    throttles = {
        labels[0][1]: value
        for (name, labels), value in exposed(metrics).items()
        if name == "holdfast_gate_throttles_total"
    }
    assert len(throttles) == 101
    assert throttles["other"] == 50


def test_two_processes_worth_of_metrics_do_not_share_state() -> None:
    one, other = Metrics(), Metrics()
    one.throttles.labels("prices").inc()
    key = ("holdfast_throttles_total", (("pipeline", "prices"),))
    assert exposed(one)[key] == 1
    assert key not in exposed(other)


def test_an_item_time_on_a_bound_belongs_to_that_bounds_bucket() -> None:
    assert item_bucket(0.0) == 0
    assert item_bucket(0.001) == 0
    assert item_bucket(0.0011) == 1
    assert item_bucket(300.0) == len(ITEM_SECONDS_BOUNDS) - 1
    assert item_bucket(301.0) == len(ITEM_SECONDS_BOUNDS)


def test_batches_of_item_times_add_up_to_one_histogram() -> None:
    metrics = Metrics()
    for batch in ([0.0005, 0.02, 0.02], [0.3, 1000.0]):
        metrics.observe_items("prices", bucketed(batch), sum(batch), len(batch))
    metrics.observe_items("posts", bucketed([1.0]), 1.0, 1)

    samples = exposed(metrics)

    def below(bound: str) -> float:
        labels = (("le", bound), ("pipeline", "prices"))
        return samples["holdfast_item_seconds_bucket", labels]

    assert [below(bound) for bound in ("0.001", "0.01", "0.025", "0.5", "300.0", "+Inf")] == [
        1, 1, 3, 4, 4, 5,
    ]  # fmt: skip
    assert samples["holdfast_item_seconds_count", (("pipeline", "prices"),)] == 5
    assert samples["holdfast_item_seconds_sum", (("pipeline", "prices"),)] == pytest.approx(
        1000.3405
    )
    assert samples["holdfast_item_seconds_count", (("pipeline", "posts"),)] == 1


@pytest.mark.parametrize(("counts", "count"), [([1], 1), (bucketed([1.0]), 2)])
def test_item_times_that_do_not_fit_the_buckets_are_refused(counts: list[int], count: int) -> None:
    metrics = Metrics()
    with pytest.raises(ValueError, match="in the buckets"):
        metrics.observe_items("prices", counts, 1.0, count)
    assert not any(name.startswith("holdfast_item_seconds") for name, _ in exposed(metrics))


def test_item_times_fed_by_many_threads_lose_none() -> None:
    metrics = Metrics()
    batch = bucketed([0.02])

    def feed() -> None:
        for _ in range(500):
            metrics.observe_items("prices", batch, 0.02, 1)

    threads = [Thread(target=feed) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert exposed(metrics)["holdfast_item_seconds_count", (("pipeline", "prices"),)] == 2000


def test_a_pipeline_whose_queue_emptied_shows_zero() -> None:
    metrics = Metrics()
    metrics.set_queue({"prices": QueueReading(7, 90.0), "posts": QueueReading(1, 2.0)})
    metrics.set_queue({"posts": QueueReading(4, 8.0)})
    samples = exposed(metrics)
    assert samples["holdfast_queue_depth", (("pipeline", "prices"),)] == 0
    assert samples["holdfast_oldest_pending_age_seconds", (("pipeline", "prices"),)] == 0
    assert samples["holdfast_queue_depth", (("pipeline", "posts"),)] == 4


def test_what_a_process_never_read_is_not_a_number_rather_than_a_zero() -> None:
    metrics = Metrics()
    assert math.isnan(exposed(metrics)["holdfast_sweeper_age_seconds", ()])
    metrics.sweeper_age_seconds.set(3)
    assert exposed(metrics)["holdfast_sweeper_age_seconds", ()] == 3
