"""Structured logs: an event name with values, as JSON lines or for people to read.

`log = get_logger()`, then `log.info("items.claimed", items=200)`. Every event is in EVENTS or in
the manifest of an extension.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import structlog
from structlog.typing import EventDict, FilteringBoundLogger, Processor, WrappedLogger

from holdfast.clock import Clock, SystemClock
from holdfast.errors import UserError
from holdfast.observe.tracing import current_trace_id

#: Bound once per job of a worker, so they are in every event about its work.
WORK_FIELDS = ("job_id", "pipeline", "worker")

#: event -> (what happened, its fields)
EVENTS: dict[str, tuple[str, tuple[str, ...]]] = {
    "job.created": ("A job was created and is running.", ("name",)),
    "items.added": ("Records were added to a standing job.", ("items", "known")),
    "job.opened": ("A standing job was created.", ("by",)),
    "job.ordered": ("A pipeline's plan started or resumed a job.", ("by",)),
    "job.paused": ("A person paused a job.", ("by",)),
    "job.resumed": ("A job was resumed.", ("by",)),
    "job.reprocessed": ("Finished items were opened again.", ("items", "by")),
    "job.items_skipped": ("Open items were skipped by a person.", ("items", "by")),
    "job.cancelled": ("A person cancelled a job.", ("by",)),
    "job.ended": ("A job has ended.", ("state",)),
    "ingest.page": ("Records and cursor were committed.", ("source", "rows", "bytes", "seconds")),
    "items.claimed": ("A worker claimed items.", ("items", "ranges")),
    "items.settled": ("Outcomes were committed.", ("items", "retried", "seconds")),
    "items.released": (
        "Ranges were returned; their items do not lose an attempt.",
        ("ranges", "reason"),
    ),
    "worker.failed": ("Claiming or settling failed permanently; the worker exits.", ("error",)),
    "place.failed": ("A concurrent task of a worker ended with an internal error.", ()),
    "lease.lost": (
        "Nothing was written, because the worker was taken for lost and another one has the range.",
        ("range_id", "error"),
    ),
    "item.retried": ("An item failed and will be retried.", ("seq", "code", "delay")),
    "item.waits": (
        "An item waits for a gate or a source that throttles; this does not count as an attempt.",
        ("seq", "code", "delay"),
    ),
    "item.timeout": ("An item took too long.", ("seq", "seconds")),
    "save.failed": ("A pipeline's domain rows could not be written.", ("error",)),
    "discovery.complete": ("A source was read to its end.", ("source", "pages", "rows")),
    "discovery.capped": ("Reading of a source stopped at a cap.", ("source", "rows")),
    "discovery.failed": ("A source cannot be read further.", ("source", "error")),
    "discovery.waits": ("Reading of a source will continue later.", ("source", "error", "seconds")),
    "gate.closed": ("A gate is closed for a while.", ("gate", "seconds", "reason")),
    "kill_switch.on": ("A kill switch was turned on.", ("scope", "by")),
    "kill_switch.off": ("A kill switch was turned off.", ("scope", "by")),
    "sweep.acted": ("The sweeper found something to do.", ("rescued", "cancelled")),
    "relay.sent": ("A relay sent messages.", ("messages",)),
    "relay.failed": (
        "The broker did not accept a message; it will be sent again.",
        ("message_id", "error"),
    ),
    "message.repeated": (
        "A message arrived again and was not processed twice.",
        ("message_id", "type"),
    ),
    "job.deleting": (
        "A job is deleted with everything that belongs to it.",
        ("job_id", "by"),
    ),
    "user.deleting": ("A person is locked out; everything of theirs is deleted.", ("user", "by")),
    "user.deleted": ("An account and everything that belonged to it are deleted.", ("user",)),
    "retention.applied": (
        "Policies removed something.",
        ("jobs", "items", "files", "exports", "audit", "pruned"),
    ),
    "job.deleted": ("A job is deleted.", ("job_id",)),
    "message.put_off": (
        "A message requests a job that cannot be created now; it is tried again later.",
        ("message_id", "seconds", "reason"),
    ),
    "upkeep.failed": ("A periodic task failed; it will run again.", ("task", "error")),
    "schedule.fired": ("A schedule started a job.", ("schedule", "job_id")),
    "schedule.failed": ("A schedule could not start a job.", ("schedule", "error")),
    "worker.started": ("A worker started.", ("worker", "pipelines")),
    "worker.stopping": ("A worker is stopping and takes no more items.", ("worker",)),
    "worker.stopped": ("A worker stopped as requested.", ("worker",)),
    "worker.died": ("A worker process died.", ("worker", "exit_code")),
    "message.failed": (
        "A message of another program could not be taken; it is tried again.",
        ("queue", "error", "seconds"),
    ),
    "worker.lost": (
        "A worker is gone; what it held was freed.",
        ("worker", "jobs"),
    ),
    "process.died": ("A process of `holdfast up` died; it is restarted.", ("process", "exit_code")),
    "database.gone": ("The database cannot be reached.", ("error",)),
    "files.gone": ("The file store cannot be used.", ("error",)),
    "files.cleared": (
        "Files were removed that killed processes had written without a row.",
        ("count", "bytes"),
    ),
    "adapter.took": ("A file that arrived became a job.", ("adapter", "name")),
    "adapter.failed": ("A place that files arrive at cannot be scanned.", ("adapter", "error")),
    "broker.gone": (
        "The broker cannot be reached; the connection is retried.",
        ("url", "use", "error"),
    ),
    "broker.back": ("The broker can be reached again.", ("url", "use")),
    "broker.refused": (
        "The broker refused the login; the connection is retried.",
        ("url", "use", "error"),
    ),
    "queue.lost": ("A consumer lost its queue and subscribes again.", ("queue", "error")),
    "message.unsettled": (
        "A message was processed, but could not be acknowledged; it will arrive again.",
        ("queue", "message_id", "error"),
    ),
    "message.dead": ("A message was set aside.", ("queue", "message_id", "code", "reason")),
    "dead.failed": (
        "A dead message could not be stored; it is retried.",
        ("message_id", "error", "seconds"),
    ),
    "pace.decided": ("A controller chose a new value.", ("controller", "was", "became", "why")),
    "request.failed": ("A request failed with an unexpected error.", ("path",)),
    "connections.full": (
        "The API has reached its connection limit: idle connections were closed or new ones "
        "refused.",
        ("limit", "closed", "refused"),
    ),
    "page.slow": ("A page of a list was slow to read.", ("list", "after", "seconds")),
    "export.written": ("An export was written.", ("export", "rows")),
    "export.failed": ("An export could not be written.", ("export",)),
    "operation.ended": ("A bulk operation finished.", ("operation", "items")),
    "operation.failed": ("A bulk operation failed with an unexpected error.", ("operation",)),
    "operation.passed_over": ("A bulk operation skipped a job.", ("operation", "error")),
    "library.logged": ("A library logged a warning or an error.", ("library", "message")),
}


def get_logger() -> FilteringBoundLogger:
    logger: FilteringBoundLogger = structlog.get_logger()
    return logger


def configure(
    level: str = "warning",
    format: str = "auto",
    stream: TextIO | None = None,
    clock: Clock | None = None,
) -> None:
    """Sends every log of this process to `stream` (standard error)."""
    stream = stream or sys.stderr
    threshold = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            _join_trace,
            _stamp(clock or SystemClock()),
            _without_trace_for_people,
            *_renderer(format, stream),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(threshold),
        logger_factory=structlog.WriteLoggerFactory(file=stream),
        # A cached logger would keep the stream of an earlier call.
        cache_logger_on_first_use=False,
    )
    _take_in_libraries(max(threshold, logging.WARNING))


def _stamp(clock: Clock) -> Processor:
    def stamp(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
        event["timestamp"] = clock.now().isoformat(timespec="milliseconds")
        return event

    return stamp


def _join_trace(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    trace_id = current_trace_id()
    if trace_id is not None:
        event["trace_id"] = trace_id
    return event


def _without_trace_for_people(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Removes the stack trace of a UserError, which is a mistake that a person can fix."""
    error = _exception(event.get("exc_info"))
    if isinstance(error, UserError):
        del event["exc_info"]
        event["error"] = error.message
        if error.hint:
            event["hint"] = error.hint
    return event


def _exception(exc_info: Any) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return exc_info[1] if len(exc_info) == 3 else None
    return sys.exc_info()[1] if exc_info else None


def _renderer(format: str, stream: TextIO) -> list[Processor]:
    if format == "console" or (format == "auto" and stream.isatty()):
        return [
            structlog.dev.ConsoleRenderer(
                colors=stream.isatty(),
                pad_event_to=20,
                # Values come from outside: quoted, they cannot break a line or colour it.
                repr_native_str=True,
                # The default one prints the values of local variables, secrets among them.
                exception_formatter=structlog.dev.plain_traceback,
            )
        ]
    return [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]


class _LibraryHandler(logging.Handler):
    """Forwards what libraries log, so that a JSON log contains only JSON."""

    def emit(self, record: logging.LogRecord) -> None:
        logger = get_logger()
        # Libraries have their own levels between these two.
        write = logger.error if record.levelno >= logging.ERROR else logger.warning
        try:
            message = record.getMessage()
            write("library.logged", library=record.name, message=message, exc_info=record.exc_info)
        except Exception:
            self.handleError(record)


def _take_in_libraries(threshold: int) -> None:
    root = logging.getLogger()
    for handler in [each for each in root.handlers if isinstance(each, _LibraryHandler)]:
        root.removeHandler(handler)
    root.addHandler(_LibraryHandler(threshold))
    # It logs every failed reconnect with a traceback; we log that the database is gone ourselves.
    logging.getLogger("asyncpg.pool").setLevel(logging.ERROR)
    # The same for the broker: whatever they log, `messaging` says once and in our words.
    logging.getLogger("aiormq").setLevel(logging.CRITICAL)
    logging.getLogger("aio_pika").setLevel(logging.CRITICAL)


def reference(events: Mapping[str, tuple[str, tuple[str, ...]]]) -> str:
    """Returns the reference page of these events, in Markdown."""
    carried = ", ".join(f"`{field}`" for field in WORK_FIELDS)
    lines = [
        "# Log events",
        "",
        "Every line has `timestamp`, `level` and `event`; one that was written during work, or is",
        f"about a job or a worker, also has {carried} as far as they apply, and `trace_id` where",
        "the work belongs to a trace. Logs go to standard error, by `HOLDFAST_LOG_LEVEL` and",
        "`HOLDFAST_LOG_FORMAT`.",
        "",
        "",
    ]
    return "\n".join(lines) + table(events)


def table(events: Mapping[str, tuple[str, tuple[str, ...]]]) -> str:
    lines = ["| Event | What happened | Fields |", "|---|---|---|"]
    for event, (description, fields) in events.items():
        lines.append(f"| `{event}` | {description} | {', '.join(f'`{name}`' for name in fields)} |")
    return "\n".join(lines) + "\n"
