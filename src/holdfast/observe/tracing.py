"""Traces: which work belongs to which request, across processes, in W3C `traceparent` form.

Ids are always created and passed on, so that logs and rows can be joined by them. Spans leave the
process only after `configure`, which loads OpenTelemetry; without it nothing of that is
imported.
"""

from __future__ import annotations

import atexit
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from threading import Thread
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.trace import Span, SpanContext

_TRACES_PATH = "/v1/traces"
_EXPORT_SECONDS = 5.0
_STOP_SECONDS = 2.0
_FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?", re.ASCII)
_SAMPLED = 0x01

_traceparent: ContextVar[str | None] = ContextVar("traceparent", default=None)
_provider: TracerProvider | None = None


class TraceIds(NamedTuple):
    trace_id: str
    span_id: str
    flags: int


def parse(traceparent: str | None) -> TraceIds | None:
    """Returns the ids of a `traceparent`, or None if it is malformed: a foreign header must not
    stop anything."""
    found = _FORM.fullmatch(traceparent or "")
    if found is None:
        return None
    version, trace_id, span_id, flags, rest = found.groups()
    # Version 00 has exactly four parts; a later one may have more; ff is invalid.
    if version == "ff" or (version == "00" and rest):
        return None
    if not int(trace_id, 16) or not int(span_id, 16):
        return None
    return TraceIds(trace_id, span_id, int(flags, 16) & _SAMPLED)


def child_of(parent: str | None) -> str:
    """Returns the `traceparent` of a new span in the parent's trace, or in a new trace."""
    ids = parse(parent)
    if ids is None:
        return _written(secrets.token_hex(16), secrets.token_hex(8), _SAMPLED)
    return _written(ids.trace_id, secrets.token_hex(8), ids.flags)


def current() -> str | None:
    """Returns the `traceparent` of the current span, to be passed on."""
    if _provider is not None:
        from opentelemetry.trace import get_current_span

        # A library's span, such as the web framework's, is known only there.
        context = get_current_span().get_span_context()
        if context.is_valid:
            return _of_context(context)
    return _traceparent.get()


def current_trace_id() -> str | None:
    ids = parse(current())
    return None if ids is None else ids.trace_id


@contextmanager
def span(
    name: str, parent: str | None = None, **attributes: str | int | float | bool
) -> Iterator[str]:
    """Records a span as a child of `parent`, of the current span or of a new trace; yields its own
    `traceparent`."""
    parent = parent or current()
    if _provider is None:
        with _carried(child_of(parent)) as traceparent:
            yield traceparent
        return
    tracer = _provider.get_tracer("holdfast")
    with (
        tracer.start_as_current_span(name, _context_of(parent), attributes=attributes) as exported,
        _carried(_of_context(exported.get_span_context())) as traceparent,
    ):
        yield traceparent


@contextmanager
def received(traceparent: str | None) -> Iterator[None]:
    """Continues a trace that a request began elsewhere; a malformed header is ignored."""
    if traceparent is None or parse(traceparent) is None:
        yield
        return
    with _carried(traceparent):
        yield


def note(**attributes: str | int | float | bool) -> None:
    """Adds to the current span what is known only at its end."""
    if _provider is not None:
        from opentelemetry.trace import get_current_span

        get_current_span().set_attributes(attributes)


def configure(endpoint: str | None, service_name: str) -> None:
    """Sends spans to `endpoint` from now on; does nothing without one."""
    global _provider
    if endpoint is None or _provider is not None:
        return
    from opentelemetry import trace
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
    from opentelemetry.sdk.resources import Resource
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor

    base = endpoint.rstrip("/").removesuffix(_TRACES_PATH)
    exporter = OTLPSpanExporter(base + _TRACES_PATH, timeout=_EXPORT_SECONDS)
    resource = Resource.create({"service.name": service_name})
    _provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    _provider.add_span_processor(BatchSpanProcessor(exporter))
    trace.set_tracer_provider(_provider)
    atexit.register(stop)


def stop() -> None:
    """Sends what is left, for a moment only: an unreachable collector does not delay the exit."""
    global _provider
    if _provider is None:
        return
    ending = Thread(target=_provider.shutdown, name="last traces", daemon=True)
    _provider = None
    ending.start()
    ending.join(_STOP_SECONDS)


@contextmanager
def _carried(traceparent: str) -> Iterator[str]:
    token = _traceparent.set(traceparent)
    try:
        yield traceparent
    finally:
        _traceparent.reset(token)


def _context_of(parent: str | None) -> Context:
    """Returns OpenTelemetry's form of a parent in another process or task."""
    from opentelemetry.context import Context
    from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags, set_span_in_context

    ids = parse(parent)
    if ids is None:
        return Context()
    remote: Span = NonRecordingSpan(
        SpanContext(int(ids.trace_id, 16), int(ids.span_id, 16), True, TraceFlags(ids.flags))
    )
    return set_span_in_context(remote, Context())


def _of_context(context: SpanContext) -> str:
    return _written(f"{context.trace_id:032x}", f"{context.span_id:016x}", int(context.trace_flags))


def _written(trace_id: str, span_id: str, flags: int) -> str:
    return f"00-{trace_id}-{span_id}-{flags:02x}"
