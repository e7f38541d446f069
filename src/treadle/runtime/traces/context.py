"""Trace contexts: the headers of W3C Trace Context, and the ids of the trace and spans of a run.

Owns the form of both. Promises that ids are a function of the run's id and of what the run was started with: an engine
that continues a run after a crash, or on another machine, continues the same trace and gives every span the same id.
Must not know OpenTelemetry: a caller's context is kept also where traces are off.

Known limit: without a caller's context the trace follows from the run's id alone. If two stores send traces to the same
place and their users choose run ids themselves, runs with the same id share a trace.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping

from msgspec import Struct

from treadle.model.ids import RunId, TokenId

Carrier = dict[str, str]
"""Headers: `traceparent`, and `tracestate` if there is one."""

SAMPLED = 1
STATE_MAX = 512
"""Characters of a `tracestate` that is passed on, as the standard asks for; a longer one is dropped."""
_PARENT = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")
_VISIBLE = re.compile(r"[\x20-\x7e]+")


def read_context(headers: Mapping[str, str] | None) -> Carrier | None:
    """The context of a caller, by names in lower case. None if there is none, or none that can be read: the run then
    begins a trace of its own, as the standard asks for."""
    text = headers.get("traceparent") if headers is not None else None
    found = _PARENT.fullmatch(text.strip()) if isinstance(text, str) else None
    if headers is None or found is None:
        return None
    version, trace, span, flags, more = found.groups()
    if version == "ff" or (version == "00" and more) or not int(trace, 16) or not int(span, 16):
        return None
    carrier = {"traceparent": f"00-{trace}-{span}-{flags}"}
    state = headers.get("tracestate")
    if isinstance(state, str) and len(state) <= STATE_MAX and _VISIBLE.fullmatch(state):
        carrier["tracestate"] = state
    return carrier


class RunTrace(Struct, frozen=True):
    """The trace that a run belongs to. Ids are hexadecimal."""

    run: RunId
    trace: str
    parent: str | None
    """The span of the caller."""
    flags: int
    state: str | None = None

    @property
    def is_sampled(self) -> bool:
        return bool(self.flags & SAMPLED)

    def carrier(self, span: str) -> Carrier:
        """The headers that make a request a child of a span."""
        carrier = {"traceparent": f"00-{self.trace}-{span}-{self.flags:02x}"}
        if self.state is not None:
            carrier["tracestate"] = self.state
        return carrier


def trace_of(run: RunId, carrier: Carrier | None) -> RunTrace:
    """The trace of a run, as its caller wants it sampled; without a caller it is not sampled."""
    if carrier is None:
        return RunTrace(run, _digest(16, f"trace {run}"), None, 0)
    _version, trace, parent, flags = carrier["traceparent"].split("-")
    return RunTrace(run, trace, parent, int(flags, 16), carrier.get("tracestate"))


def run_span(run: RunId, life: int) -> str:
    """The span of a run. A run that goes on after its end, by a retry or to be undone, begins another `life`."""
    return _digest(8, f"run {run} {life}")


def visit_span(run: RunId, token: TokenId, life: int) -> str:
    """The span of a visit. A visit that goes on after its end, by a person's retry, begins another `life`."""
    return _digest(8, f"visit {run} {token} {life}")


def attempt_span(run: RunId, token: TokenId, attempt: int) -> str:
    """The span of an attempt; the same when its worker was lost and it is executed again."""
    return _digest(8, f"attempt {run} {token} {attempt}")


def _digest(size: int, text: str) -> str:
    return hashlib.blake2b(text.encode(), digest_size=size).hexdigest()
