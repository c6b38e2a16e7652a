import io
import json
import logging
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest
import structlog

from holdfast.clock import FixedClock
from holdfast.errors import SettingsError
from holdfast.observe.log import configure, get_logger

CLOCK = FixedClock(datetime(2026, 3, 1, 12, 0, 0, 250_000, tzinfo=UTC))


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def logs_of_this_process_as_they_were() -> Iterator[None]:
    handlers = logging.getLogger().handlers[:]
    yield
    structlog.reset_defaults()
    logging.getLogger().handlers[:] = handlers


def lines_of(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_line_of_json() -> None:
    stream = io.StringIO()
    configure("info", "json", stream, CLOCK)
    get_logger().info("items.claimed", items=3, reason="two\nlines")
    assert lines_of(stream) == [
        {
            "event": "items.claimed",
            "items": 3,
            "reason": "two\nlines",
            "level": "info",
            "timestamp": "2026-03-01T12:00:00.250+00:00",
        }
    ]


def test_what_json_does_not_know_is_still_logged() -> None:
    stream = io.StringIO()
    configure("info", "json", stream)
    get_logger().info("job.failed", error=ValueError("no"), name="\udc80", big=2**80)
    assert lines_of(stream)[0]["error"] == "ValueError('no')"


def test_events_below_the_level_are_left_out() -> None:
    stream = io.StringIO()
    configure("warning", "json", stream)
    log = get_logger()
    log.debug("pace.decided")
    log.info("items.claimed")
    log.warning("lease.lost")
    log.error("job.failed")
    assert [line["event"] for line in lines_of(stream)] == ["lease.lost", "job.failed"]


def test_auto_is_for_people_on_a_terminal_and_for_machines_elsewhere() -> None:
    terminal, file = Terminal(), io.StringIO()
    configure("info", "auto", terminal)
    get_logger().info("job.started")
    configure("info", "auto", file)
    get_logger().info("job.started")
    assert not terminal.getvalue().startswith("{")
    assert "job.started" in terminal.getvalue()
    assert lines_of(file)[0]["event"] == "job.started"


def test_console_lines_without_a_terminal_have_no_colours() -> None:
    stream = io.StringIO()
    configure("info", "console", stream, CLOCK)
    get_logger().info("items.claimed", items=3)
    assert stream.getvalue().split() == [
        "2026-03-01T12:00:00.250+00:00",
        "[info",
        "]",
        "items.claimed",
        "items=3",
    ]


def test_a_value_cannot_forge_a_console_line() -> None:
    stream = io.StringIO()
    configure("info", "console", stream)
    get_logger().info("job.failed", error="no\n2026 [info] job.finished \x1b[2J")
    assert len(stream.getvalue().splitlines()) == 1
    assert "\x1b" not in stream.getvalue()


@pytest.mark.parametrize("format", ["json", "console"])
def test_a_mistake_of_the_user_has_no_stack_trace(format: str) -> None:
    stream = io.StringIO()
    configure("info", format, stream)
    try:
        raise SettingsError("CLAIM_MAX must be a number", "Set it.")
    except SettingsError as error:
        get_logger().exception("job.failed")
        get_logger().error("job.failed", exc_info=error)
    text = stream.getvalue()
    assert text.count("CLAIM_MAX must be a number") == 2
    assert text.count("Set it.") == 2
    assert "Traceback" not in text


@pytest.mark.parametrize("format", ["json", "console"])
def test_another_error_has_its_stack_trace_without_local_values(format: str) -> None:
    stream = io.StringIO()
    configure("info", format, stream)
    password = "".join(["hid", "den"])
    try:
        raise ValueError(len(password))
    except ValueError:
        get_logger().exception("job.failed")
    assert "Traceback" in stream.getvalue()
    assert "ValueError: 6" in stream.getvalue()
    assert "hidden" not in stream.getvalue()


def test_a_library_that_warns_is_an_event_too() -> None:
    stream = io.StringIO()
    configure("info", "json", stream)
    library = logging.getLogger("some.library")
    library.info("chatter")
    library.warning("pool of %d is full", 6)
    library.log(35, "a level of its own")
    try:
        raise OSError("gone")
    except OSError:
        library.exception("lost")
    lines = lines_of(stream)
    assert [(line["level"], line["message"]) for line in lines] == [
        ("warning", "pool of 6 is full"),
        ("warning", "a level of its own"),
        ("error", "lost"),
    ]
    assert {line["event"] for line in lines} == {"library.logged"}
    assert lines[0]["library"] == "some.library"
    assert "OSError: gone" in lines[2]["exception"]


def test_configuring_again_moves_every_logger_to_the_new_stream() -> None:
    first, second = io.StringIO(), io.StringIO()
    configure("info", "json", first)
    log = get_logger()
    log.info("worker.started")
    configure("error", "json", second)
    log.info("worker.stopping")
    log.error("worker.died")
    logging.getLogger("some.library").error("lost")
    assert [line["event"] for line in lines_of(first)] == ["worker.started"]
    assert [line["event"] for line in lines_of(second)] == ["worker.died", "library.logged"]


def test_logs_go_to_standard_error_and_leave_standard_output_alone() -> None:
    program = (
        "from holdfast.observe.log import configure, get_logger\n"
        "configure('info', 'auto')\n"
        "get_logger().info('worker.started', pid=1)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert done.stdout == b""
    assert json.loads(done.stderr)["event"] == "worker.started"
