"""Typed flags: what they can be, and how soon a change counts."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from holdfast import Context, pipeline
from holdfast.errors import GateWait, PipelineError, UserError
from holdfast.flags import FlagKind, FlagSpec, ServedFlag, in_share
from holdfast.kernel import Store, open_store
from holdfast.kernel.worker.flag_values import FlagValues
from holdfast.model import Json
from tests.engine.one_worker import facilities_of, work
from tests.store.checks import fetch, filled_job, items_of

BOOLEAN = FlagSpec("radar", "Radar images.")
INTEGER = FlagSpec("depth", "How deep.", kind=FlagKind.INTEGER, default=3, minimum=1, maximum=9)
PERCENTAGE = FlagSpec("canary", "Share.", kind=FlagKind.PERCENTAGE, default=10)
CHOICE = FlagSpec("mode", "Mode.", kind=FlagKind.CHOICE, default="old", choices=("old", "new"))


class SteppedClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.seconds, UTC)


@pytest.mark.parametrize(
    ("spec", "text", "value"),
    [
        (BOOLEAN, "on", True),
        (BOOLEAN, " False ", False),
        (INTEGER, "9", 9),
        (PERCENTAGE, "12.5 %", 12.5),
        (PERCENTAGE, "100", 100),
        (CHOICE, "new", "new"),
    ],
)
def test_text_becomes_a_value_of_the_flag(spec: FlagSpec, text: str, value: Any) -> None:
    assert spec.parsed(text) == value


@pytest.mark.parametrize(
    ("spec", "value"),
    [
        (BOOLEAN, 1),
        (BOOLEAN, "perhaps"),
        (INTEGER, 10),
        (INTEGER, 2.5),
        (INTEGER, True),
        (PERCENTAGE, -1),
        (PERCENTAGE, float("nan")),
        (PERCENTAGE, 101),
        (CHOICE, "newest"),
        (CHOICE, None),
    ],
)
def test_value_that_does_not_fit_is_refused_with_what_does(spec: FlagSpec, value: Any) -> None:
    with pytest.raises(UserError, match=f"the flag {spec.name} cannot be") as refused:
        spec.checked(value)
    assert refused.value.hint == f"It is {spec.domain}."


@pytest.mark.parametrize(
    "declared",
    [
        {"kind": FlagKind.INTEGER},
        {"kind": FlagKind.CHOICE, "default": "a"},
        {"choices": ("a", "b")},
        {"kind": FlagKind.PERCENTAGE, "default": 5, "setting": "share"},
    ],
)
def test_declaration_that_makes_no_sense_is_refused(declared: Any) -> None:
    with pytest.raises(PipelineError):
        FlagSpec("odd", "Odd.", **declared)


def test_share_keeps_its_keys_as_it_grows() -> None:
    keys = [f"job-{n}" for n in range(2000)]
    tenth = {key for key in keys if in_share(10, key)}
    half = {key for key in keys if in_share(50, key)}
    assert tenth < half and 120 < len(tenth) < 280 and 880 < len(half) < 1120
    assert not any(in_share(0, key) for key in keys)
    assert all(in_share(100, key) for key in keys)


async def test_change_counts_after_two_seconds_and_is_in_the_audit(store: Store) -> None:
    clock = SteppedClock()
    served = {spec.name: ServedFlag(spec) for spec in (BOOLEAN, INTEGER, PERCENTAGE, CHOICE)}
    values = FlagValues(store, served, clock)
    assert [await values.get(name) for name in served] == [True, 3, 10, "old"]
    await store.flags.set_flag("mode", "new", "ada")
    clock.seconds = 1.9
    assert await values.get("mode") == "old"
    clock.seconds = 2.1
    assert await values.get("mode") == "new"
    audit = await fetch(store, "select actor, action, subject, detail from audit")
    assert audit == [("ada", "flag.set", "mode", '{"value":"new"}')]


async def test_stored_value_that_no_longer_fits_counts_as_not_set(store: Store) -> None:
    await store.flags.set_flag("depth", 12, "ada")
    assert await FlagValues(store, {"depth": ServedFlag(INTEGER)}, SteppedClock()).get("depth") == 3


async def test_flag_that_the_settings_switch_off_is_off(store: Store) -> None:
    await store.flags.set_flag("radar", True, "ada")
    served = {"radar": ServedFlag(BOOLEAN, "RADAR_ENABLED", allowed=False)}
    assert await FlagValues(store, served, SteppedClock()).get("radar") is False


async def test_last_known_value_counts_while_the_database_is_gone(postgres_url: str) -> None:
    store, clock = await open_store(postgres_url), SteppedClock()
    await store.flags.set_flag("mode", "new", "ada")
    known, unknown = (FlagValues(store, {"mode": ServedFlag(CHOICE)}, clock) for _ in range(2))
    assert await known.get("mode") == "new"
    await store.close()
    clock.seconds = 60
    assert await known.get("mode") == "new"
    with pytest.raises(GateWait):
        await unknown.get("mode")


async def test_item_reads_a_flag(store: Store) -> None:
    @pipeline(name="demo")
    async def demo(row: Json, ctx: Context) -> Json:
        return {"pending": await ctx.flag("pending")}

    await store.flags.set_flag("pending", False, "ada")
    job_id = await filled_job(store, 1)
    await work(store, demo)
    assert [item.result for item in await items_of(store, job_id)] == ['{"pending":false}']
    with pytest.raises(PipelineError, match="no flag 'other'"):
        await facilities_of(store, demo).flag("other")
