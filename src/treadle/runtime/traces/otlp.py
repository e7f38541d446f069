"""The border to OpenTelemetry: sampling, and sending spans by OTLP.

Owns the SDK's parts: resource, sampler and exporter, all made of the environment variables that OpenTelemetry defines
(`OTEL_EXPORTER_OTLP_ENDPOINT`, `OTEL_TRACES_SAMPLER`, `OTEL_SERVICE_NAME`, …). Spans are sent in batches by a thread of
the SDK; what cannot be sent is dropped, and runs never wait for it. Only this module imports the SDK, and only an
engine whose operator has turned traces on imports this module.
"""

from __future__ import annotations

import os
from threading import Thread

from opentelemetry.context import attach
from opentelemetry.sdk.resources import SERVICE_NAME, Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import Link, NonRecordingSpan, SpanContext, TraceFlags, TraceState, set_span_in_context
from opentelemetry.trace.status import Status, StatusCode

from treadle.errors import SettingsInvalid
from treadle.model.ids import RunId
from treadle.runtime.traces.context import SAMPLED, Carrier, RunTrace, trace_of
from treadle.runtime.traces.span_records import EndedSpan

QUEUE_MAX = 16_384
"""Spans that wait to be sent, unless OTEL_BSP_MAX_QUEUE_SIZE says otherwise: a second of a busy engine. The SDK's own
2,048 are for programs with a few spans per request."""
NS = 1_000_000
"""Nanoseconds in a millisecond."""
_SCOPE = InstrumentationScope("treadle")


class OtlpSender:
    """Samples runs and sends spans."""

    def __init__(self) -> None:
        resource = Resource.create()
        if str(resource.attributes.get(SERVICE_NAME, "")).startswith("unknown_service"):
            resource = resource.merge(Resource({SERVICE_NAME: "treadle"}))
        self._resource = resource
        self._sampler = TracerProvider(resource=resource, shutdown_on_exit=False).sampler
        size = None if os.environ.get("OTEL_BSP_MAX_QUEUE_SIZE") else QUEUE_MAX
        self._processor = BatchSpanProcessor(_exporter(), max_queue_size=size)

    def sampled(self, trace: RunTrace) -> bool:
        """Whether the spans of a run are sent. The answer must follow from the trace alone, as it does with every
        sampler of the SDK: engines ask again after a restart."""
        parent = None if trace.parent is None else set_span_in_context(NonRecordingSpan(_context(trace, trace.parent)))
        asked = self._sampler.should_sample(parent, int(trace.trace, 16), "run")
        return asked.decision is Decision.RECORD_AND_SAMPLE

    def send(self, trace: RunTrace, span: EndedSpan) -> None:
        """Queues a span that has ended. Returns at once."""
        self._processor.on_end(
            ReadableSpan(
                name=span.name,
                context=_context(trace, span.id, is_remote=False),
                parent=None if span.parent is None else _context(trace, span.parent),
                resource=self._resource,
                attributes=span.attributes,
                events=[Event(name, attributes, at * NS) for name, at, attributes in span.notes],
                links=[Link(_context(trace, link, is_remote=False)) for link in span.links],
                status=Status(StatusCode.UNSET) if span.error is None else Status(StatusCode.ERROR, span.error),
                start_time=span.start * NS,
                end_time=max(span.start, span.end) * NS,  # a clock may have been set back meanwhile
                instrumentation_scope=_SCOPE,
            )
        )

    def close(self, timeout_s: float) -> None:
        """Sends what is queued and stops. Blocks for `timeout_s` at most."""
        closing = Thread(target=self._processor.shutdown, name="treadle-traces", daemon=True)
        closing.start()
        closing.join(timeout_s)


def enter_trace(carrier: Carrier) -> None:
    """Makes an attempt's span the current one of this context, for code that makes spans of its own."""
    trace = trace_of(RunId(""), carrier)
    assert trace.parent is not None, "a carrier names a span"
    attach(set_span_in_context(NonRecordingSpan(_context(trace, trace.parent))))


def _exporter() -> SpanExporter:
    variables = ("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL")
    protocol = next((os.environ[name] for name in variables if os.environ.get(name)), "http/protobuf")
    if protocol != "http/protobuf":
        raise SettingsInvalid(f"traces are sent by http/protobuf; OTEL_EXPORTER_OTLP_PROTOCOL is {protocol!r}")
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter

    return OTLPSpanExporter()


def _context(trace: RunTrace, span: str, *, is_remote: bool = True) -> SpanContext:
    state = TraceState.from_header([trace.state]) if trace.state is not None else None
    flags = TraceFlags(trace.flags & SAMPLED)
    return SpanContext(int(trace.trace, 16), int(span, 16), is_remote, flags, state)
