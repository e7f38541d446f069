"""Traces of one engine: implements `ports.Tracing`, and is opened and closed with the engine.

Owns which runs are sampled and the choice of the context that leaves with an attempt's requests.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from msgspec.structs import replace

from treadle.errors import SettingsInvalid
from treadle.model.ids import RunId, TokenId
from treadle.runtime.surroundings.ports import Clock
from treadle.runtime.traces.context import SAMPLED, Carrier, RunTrace, attempt_span, trace_of
from treadle.runtime.traces.follower import TraceFollower
from treadle.store.port import Commit, Store

if TYPE_CHECKING:
    from treadle.runtime.traces.otlp import OtlpSender

CLOSE_S = 5.0
"""How long a closing engine tries to send the last spans."""
KNOWN_MAX = 10_000
"""Runs whose decision about sampling is remembered."""
EXTRA = "traces.enabled needs the extra `otel`: pip install 'treadle[otel]'"


class RunTracing:
    """See the module's docstring. Made on the event loop."""

    def __init__(self, store: Store, clock: Clock, sender: OtlpSender) -> None:
        self._sender = sender
        self._known = lru_cache(KNOWN_MAX)(self._decide)
        self._follower = TraceFollower(store, clock, self.trace, sender.send)
        self.observe: Callable[[Sequence[Commit], float], None] = self._follower.observe
        self.took_over = self._follower.took_over
        self.drop_unless = self._follower.drop_unless

    def trace(self, run: RunId, carrier: Carrier | None) -> RunTrace:
        """The trace of a run that was started with this context."""
        if carrier is None:
            return self._known(run, None, None)
        return self._known(run, carrier["traceparent"], carrier.get("tracestate"))

    def carried(self, run: RunId, trace: Carrier | None, token: TokenId, attempt: int) -> Carrier:
        """The headers for everything that is sent on behalf of an attempt."""
        return self.trace(run, trace).carrier(attempt_span(run, token, attempt))

    async def close(self) -> None:
        """Sends the spans of everything that was committed."""
        await self._follower.close()
        await asyncio.to_thread(self._sender.close, CLOSE_S)

    def _decide(self, run: RunId, parent: str | None, state: str | None) -> RunTrace:
        carrier = None if parent is None else {"traceparent": parent, **({"tracestate": state} if state else {})}
        trace = trace_of(run, carrier)
        is_sampled = self._sender.sampled(trace)
        return replace(trace, flags=trace.flags | SAMPLED if is_sampled else trace.flags & ~SAMPLED)


async def open_tracing(
    enabled: bool, store: Store, clock: Clock, closing: list[Callable[[], Awaitable[None]]]
) -> RunTracing | None:
    """Traces, if they are on; they are closed with `closing`. Raises SettingsInvalid."""
    if not is_on(enabled):
        return None
    tracing = RunTracing(store, clock, await asyncio.to_thread(_sender))
    closing.append(tracing.close)
    return tracing


def is_on(enabled: bool) -> bool:
    """Whether runs are traced. OTEL_SDK_DISABLED turns everything of OpenTelemetry off."""
    return enabled and os.environ.get("OTEL_SDK_DISABLED", "").lower() != "true"


def _sender() -> OtlpSender:
    """Imports the SDK, which takes a while: not on the event loop."""
    try:
        from treadle.runtime.traces.otlp import OtlpSender
    except ImportError as problem:
        raise SettingsInvalid(f"{EXTRA} ({problem})") from None
    return OtlpSender()


def entering(enabled: bool) -> Callable[[Carrier], None] | None:
    """Makes an attempt's span the current one of its context, for functions that make spans of their own; None if
    traces are off. Raises SettingsInvalid."""
    if not is_on(enabled):
        return None
    try:
        from treadle.runtime.traces.otlp import enter_trace
    except ImportError as problem:
        raise SettingsInvalid(f"{EXTRA} ({problem})") from None
    return enter_trace
