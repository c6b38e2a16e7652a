import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from holdfast.cli.references import events_page
from holdfast.extension import installed, merged_events
from holdfast.observe.log import EVENTS as CORE_EVENTS
from holdfast.observe.log import WORK_FIELDS

EVENTS = merged_events(CORE_EVENTS, installed().values())
ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reference" / "events.md"
LOGGERS = {"log", "_log", "logger", "_logger"}
METHODS = {"debug", "info", "warning", "error", "exception", "critical"}


def log_calls(source: str) -> Iterator[ast.Call]:
    """The calls `log.info(…)`, `self._log.error(…)`, `get_logger().bind(…).info(…)`."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and is_logging(node.func):
            yield node


def is_logging(function: ast.expr) -> bool:
    return (
        isinstance(function, ast.Attribute)
        and function.attr in METHODS
        and is_logger(function.value)
    )


def is_logger(node: ast.expr) -> bool:
    if isinstance(node, ast.Name):
        return node.id in LOGGERS
    if isinstance(node, ast.Attribute):
        return node.attr in LOGGERS
    if isinstance(node, ast.Call):
        function = node.func
        if isinstance(function, ast.Name):
            return function.id == "get_logger"
        return isinstance(function, ast.Attribute) and (
            function.attr == "get_logger" or is_logger(function.value)
        )
    return False


def mistake(call: ast.Call) -> str | None:
    event = call.args[0] if call.args else None
    if not (isinstance(event, ast.Constant) and isinstance(event.value, str)):
        return f"line {call.lineno}: the event is no literal"
    if event.value not in EVENTS:
        return f"line {call.lineno}: {event.value} is not in EVENTS"
    allowed = {*EVENTS[event.value][1], *WORK_FIELDS, "exc_info"}
    strange = sorted({keyword.arg for keyword in call.keywords if keyword.arg} - allowed)
    return f"line {call.lineno}: {event.value} has no field {strange}" if strange else None


def mistakes(source: str) -> list[str]:
    return [found for call in log_calls(source) if (found := mistake(call))]


def test_the_source_logs_only_known_events_with_their_fields() -> None:
    files = sorted([*ROOT.glob("src/**/*.py"), *ROOT.glob("pipelines/*/src/**/*.py")])
    assert files
    found = {str(file.relative_to(ROOT)): mistakes(file.read_text("utf-8")) for file in files}
    assert {name: lines for name, lines in found.items() if lines} == {}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ('log.info("items.claimed", items=1, job_id=2)', []),
        ('log.exception("worker.failed", exc_info=error)', []),
        ('math.log(2); page.info("anything")', []),
        ('self._log.info("slice.taken")', ["line 1: slice.taken is not in EVENTS"]),
        ('get_logger().bind(a=1).error("x.y")', ["line 1: x.y is not in EVENTS"]),
        ('log.info(f"slice.{verb}")', ["line 1: the event is no literal"]),
        ('log.info("items.claimed", count=1)', ["line 1: items.claimed has no field ['count']"]),
    ],
)
def test_the_scan_finds_what_it_should(source: str, found: list[str]) -> None:
    assert mistakes(source) == found


def test_events_are_named_noun_dot_verb() -> None:
    for event, (description, _) in EVENTS.items():
        noun, _, verb = event.partition(".")
        assert noun.isidentifier() and verb.isidentifier() and event == event.lower()
        assert description.endswith(".")


def test_the_page_is_what_the_events_say() -> None:
    assert PAGE.read_text(encoding="utf-8") == events_page(), (
        "run: python -m holdfast.cli.references events > docs/reference/events.md"
    )
