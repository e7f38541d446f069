"""An OpenTelemetry collector on loopback: takes spans by OTLP over HTTP and remembers them."""

from __future__ import annotations

import gzip
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from msgspec import Struct
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
    ExportTraceServiceResponse,
)

DEADLINE_S = 30.0


class SentSpan(Struct, frozen=True):
    """A span as it came. Ids are hexadecimal, times nanoseconds since 1970."""

    trace: str
    id: str
    parent: str
    name: str
    start: int
    end: int
    attributes: dict[str, Any]
    links: tuple[str, ...]
    notes: tuple[str, ...]
    error: str | None
    service: str

    @property
    def is_run(self) -> bool:
        return "treadle.workflow" in self.attributes

    @property
    def is_attempt(self) -> bool:
        return "treadle.attempt" in self.attributes


class Collector:
    """See the module's docstring."""

    def __init__(self) -> None:
        self.received: list[SentSpan] = []
        """Every span, in order of arrival; one that came twice is there twice."""
        self._news = threading.Condition()
        collector = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                collector._take(body)
                answer = ExportTraceServiceResponse().SerializeToString()
                self.send_response(200 if self.path == "/v1/traces" else 404)
                self.send_header("Content-Type", "application/x-protobuf")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_words: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def environment(self, delay_ms: int = 50) -> dict[str, str]:
        """Variables of a process that sends its spans here."""
        return {
            "TREADLE_TRACES_ENABLED": "true",
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": str(delay_ms),
        }

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def spans(self, trace: str | None = None) -> list[SentSpan]:
        """The spans so far, of one trace or of all."""
        with self._news:
            return [span for span in self.received if trace in (None, span.trace)]

    def wait_run(self, run: str) -> SentSpan:
        """The span of a run, when it has ended."""
        return self.wait(lambda span: span.is_run and span.attributes["treadle.run"] == run)

    def wait(self, is_wanted: Any) -> SentSpan:
        """The first span that fits; the test fails if none comes."""
        until = time.monotonic() + DEADLINE_S
        with self._news:
            while True:
                for span in self.received:
                    if is_wanted(span):
                        return span
                left = until - time.monotonic()
                names = [span.name for span in self.received]
                assert left > 0 and self._news.wait(left), f"no such span came within {DEADLINE_S} s, only {names}"

    def _take(self, body: bytes) -> None:
        request = ExportTraceServiceRequest.FromString(body)
        found = [
            _span(span, {pair.key: _value(pair.value) for pair in sent.resource.attributes}["service.name"])
            for sent in request.resource_spans
            for scope in sent.scope_spans
            for span in scope.spans
        ]
        with self._news:
            self.received += found
            self._news.notify_all()


def _span(span: Any, service: str) -> SentSpan:
    return SentSpan(
        trace=span.trace_id.hex(),
        id=span.span_id.hex(),
        parent=span.parent_span_id.hex(),
        name=span.name,
        start=span.start_time_unix_nano,
        end=span.end_time_unix_nano,
        attributes={pair.key: _value(pair.value) for pair in span.attributes},
        links=tuple(link.span_id.hex() for link in span.links),
        notes=tuple(event.name for event in span.events),
        error=span.status.message if span.status.code == 2 else None,
        service=service,
    )


def _value(value: Any) -> Any:
    kind = value.WhichOneof("value")
    if kind == "array_value":
        return [_value(one) for one in value.array_value.values]
    return getattr(value, kind)
