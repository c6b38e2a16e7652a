"""Trace ids: read, made and passed on, without OpenTelemetry."""

import asyncio
import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator

import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from holdfast.observe.log import configure, get_logger
from holdfast.observe.tracing import child_of, current, current_trace_id, note, parse, span

TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"
SPAN = "00f067aa0ba902b7"
PARENT = f"00-{TRACE}-{SPAN}-01"


def test_a_traceparent_is_read() -> None:
    assert parse(PARENT) == (TRACE, SPAN, 1)
    assert parse(f"00-{TRACE}-{SPAN}-00") == (TRACE, SPAN, 0)


def test_a_later_version_is_read_as_far_as_it_is_known() -> None:
    assert parse(f"cc-{TRACE}-{SPAN}-03-what-comes-after") == (TRACE, SPAN, 1)


@pytest.mark.parametrize(
    "text",
    [
        None,
        "",
        "nonsense",
        PARENT.upper(),
        f" {PARENT}",
        f"{PARENT}\n",
        f"{PARENT}-more",
        f"ff-{TRACE}-{SPAN}-01",
        f"00-{'0' * 32}-{SPAN}-01",
        f"00-{TRACE}-{'0' * 16}-01",
        f"00-{TRACE[1:]}-{SPAN}-01",
        f"00-{TRACE}-{SPAN}",
        f"00-{TRACE}-{SPAN}-٠١",
    ],
)
def test_what_is_not_a_traceparent_counts_as_none(text: str | None) -> None:
    assert parse(text) is None
    fresh = parse(child_of(text))
    assert fresh is not None and fresh.trace_id != TRACE


@given(st.text() | st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}(-.*)?"))
def test_any_text_is_read_as_its_own_ids_or_as_none(text: str) -> None:
    ids = parse(text)
    if ids is not None:
        _version, trace_id, span_id, flags, *_rest = text.split("-")
        assert ids == (trace_id, span_id, int(flags, 16) & 1)
    else:
        assert parse(child_of(text)) is not None


def test_a_child_keeps_trace_and_flags_and_gets_an_id_of_its_own() -> None:
    ids = parse(child_of(f"00-{TRACE}-{SPAN}-00"))
    assert ids is not None
    assert (ids.trace_id, ids.flags) == (TRACE, 0)
    assert ids.span_id != SPAN


def test_a_span_is_current_inside_and_no_longer_outside() -> None:
    assert current() is None
    with span("outer", PARENT) as outer:
        assert current() == outer
        assert current_trace_id() == TRACE
        with span("inner") as inner:
            assert current() == inner != outer
            assert current_trace_id() == TRACE
            note(items=3)
        assert current() == outer
    assert current() is None


def test_a_span_without_a_parent_begins_a_trace() -> None:
    with span("one"):
        first = current_trace_id()
    with span("two"):
        assert current_trace_id() not in (None, first)


def test_a_span_that_fails_is_left_too() -> None:
    with pytest.raises(ValueError, match="oops"), span("failing"):
        raise ValueError("oops")
    assert current() is None


async def test_tasks_carry_the_span_that_they_were_begun_in() -> None:
    async def of_task() -> str | None:
        await asyncio.sleep(0)
        return current()

    with span("one", PARENT) as one:
        task = asyncio.create_task(of_task())
        with span("two") as two:
            assert await asyncio.create_task(of_task()) == two
    assert await task == one


@pytest.fixture
def logs_of_this_process_as_they_were() -> Iterator[None]:
    handlers = logging.getLogger().handlers[:]
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers


@pytest.mark.usefixtures("logs_of_this_process_as_they_were")
def test_a_log_line_names_its_trace_where_there_is_one() -> None:
    stream = io.StringIO()
    configure("info", "json", stream)
    with span("slice", PARENT):
        get_logger().info("items.claimed", items=1)
    get_logger().info("items.claimed", items=2)
    inside, outside = map(json.loads, stream.getvalue().splitlines())
    assert inside["trace_id"] == TRACE
    assert "trace_id" not in outside


def test_nothing_of_opentelemetry_is_loaded_unless_it_is_asked_for() -> None:
    script = (
        "import sys\n"
        "import holdfast.cli.main\n"
        "from holdfast.observe.tracing import configure, current, span, stop\n"
        "configure(None, 'holdfast')\n"
        "with span('one'): assert current()\n"
        "stop()\n"
        "print([name for name in sys.modules if name.startswith('opentelemetry')])\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True)
    assert (done.stdout.strip(), done.returncode) == ("[]", 0), done.stderr
