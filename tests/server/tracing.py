"""Parts of the tests of traces: a peer that remembers headers, services that send spans, and spans by name."""

from __future__ import annotations

import queue
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self

from tests.peers.collector import Collector, SentSpan
from tests.server.client import Served
from treadle.model.ids import RunId, TokenId
from treadle.runtime.traces.context import attempt_span

TRACE, CALLER = "4bf92f3577b34da6a3ce929d0e0e4736", "00f067aa0ba902b7"
PARENT = {"traceparent": f"00-{TRACE}-{CALLER}-01", "tracestate": "vendor=1"}
UNSAMPLED = {"traceparent": f"00-{TRACE}-{CALLER}-00"}


class Peer:
    """A server that answers each request with the next status, the last one for ever, and remembers the headers."""

    def __init__(self, *statuses: int, body: bytes = b"{}") -> None:
        self.told: queue.Queue[dict[str, str]] = queue.Queue()
        left = list(statuses)
        peer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                self.rfile.read(int(self.headers.get("Content-Length") or 0))
                peer.told.put({name.lower(): value for name, value in self.headers.items()})
                self.send_response(left.pop(0) if len(left) > 1 else left[0])
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_words: Any) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_exception: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def next(self) -> dict[str, str]:
        return self.told.get(timeout=30)


def sending(service: Served, collector: Collector, **variables: str) -> Any:
    service.environment |= {**collector.environment(), **variables}
    return service


def started(service: Served, workflow: str, headers: dict[str, str] | None = None, **body: Any) -> str:
    reply = service.as_("operator").api("POST", "/runs?wait_ms=30000", {"workflow": workflow, **body}, headers)
    assert reply.status == 201, reply
    run: str = reply.json["run"]
    return run


def parent_of(run: str, visit: int, attempt: int, trace: str, flags: str = "01") -> str:
    """The `traceparent` of everything that is sent for an attempt."""
    return f"00-{trace}-{attempt_span(RunId(run), TokenId(visit), attempt)}-{flags}"


def one(spans: list[SentSpan], name: str, **attributes: Any) -> SentSpan:
    found = [
        span
        for span in spans
        if span.name == name
        and {f"treadle.{key}": value for key, value in attributes.items()}.items() <= span.attributes.items()
    ]
    assert len(found) == 1, (name, attributes, spans)
    return found[0]


def wait_gate(service: Served, run: str) -> None:
    """Until the run asks a person, so that everything before is committed."""
    reply = service.as_("viewer").api("GET", f"/runs/{run}/history?type=gate.opened&wait_ms=30000")
    assert reply.status == 200 and reply.json["items"], reply
