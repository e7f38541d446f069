"""Traces inside an engine: what functions see, what the follower reads again, and engines that cannot trace."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace as api

from tests.peers.collector import Collector
from treadle import Flow, task
from treadle.actions.current import current_attempt
from treadle.errors import SettingsInvalid
from treadle.model import events as e
from treadle.model.ids import RunId, TokenId
from treadle.model.states import RunStatus
from treadle.runtime.engine import Engine, EngineSettings
from treadle.runtime.surroundings.clock import SystemClock
from treadle.runtime.traces import follower
from treadle.runtime.traces.context import SAMPLED, Carrier, RunTrace, attempt_span, trace_of
from treadle.runtime.traces.follower import TraceFollower
from treadle.runtime.traces.span_records import EndedSpan
from treadle.store.memory import MemoryStore
from treadle.store.port import Batch, Commit, Fence

ON = EngineSettings(traces=True)
PARENT = {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with Collector() as one:
        for name, value in one.environment().items():
            if name.startswith("OTEL_"):
                monkeypatch.setenv(name, value)
        yield one


@task
def look() -> dict[str, Any]:
    return seen()


@task
async def look_async() -> dict[str, Any]:
    return seen()


def seen() -> dict[str, Any]:
    """The span that spans made here would be children of, and the headers for requests."""
    context = api.get_current_span().get_span_context()
    return {"span": f"{context.span_id:016x}", "trace": current_attempt().facts.trace}


def test_functions_run_inside_the_span_of_their_attempt(collector: Collector) -> None:
    flow = Flow("looks")
    flow.node("one", look).to(flow.node("two", look_async))

    async def whole() -> tuple[RunId, list[e.Event]]:
        async with Engine(":memory:", settings=ON) as engine:
            run = await engine.start(flow, trace=PARENT)
            await run.wait()
            return run.id, await run.history()

    run, history = asyncio.run(whole())
    outputs = [event.output for event in history if isinstance(event, e.TokenCompleted)]
    spans = [attempt_span(run, TokenId(token), 1) for token in (1, 2)]
    assert [output["span"] for output in outputs] == spans
    head = PARENT["traceparent"][:36]
    assert [output["trace"] for output in outputs] == [{"traceparent": f"{head}{span}-01"} for span in spans]
    assert {span.id for span in collector.spans()} >= set(spans)


def test_traces_without_the_extra_say_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "treadle.runtime.traces.otlp", raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)

    async def whole() -> None:
        async with Engine(":memory:", settings=ON):
            raise AssertionError("it must not open")

    with pytest.raises(SettingsInvalid, match=r"pip install 'treadle\[otel\]'"):
        asyncio.run(whole())


def test_a_protocol_that_is_not_there_is_refused_when_opening(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")

    async def whole() -> None:
        async with Engine(":memory:", settings=ON):
            raise AssertionError("it must not open")

    with pytest.raises(SettingsInvalid, match="http/protobuf"):
        asyncio.run(whole())


def test_opentelemetry_that_is_disabled_altogether_traces_nothing(
    collector: Collector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SDK_DISABLED", "true")

    async def whole() -> Any:
        async with Engine(":memory:", settings=ON) as engine:
            flow = Flow("looks")
            flow.node("one", look)
            return (await (await engine.start(flow)).wait()).status

    assert asyncio.run(whole()) is RunStatus.COMPLETED
    assert collector.spans() == []


class Followed:
    """A follower on a memory store, and the spans it gives."""

    def __init__(self, flags: int = SAMPLED) -> None:
        self.store = MemoryStore()
        self.given: list[EndedSpan] = []
        self.flags = flags
        self.follower = self.another()

    def another(self) -> TraceFollower:
        return TraceFollower(self.store, SystemClock(), self._trace, lambda _trace, span: self.given.append(span))

    def _trace(self, run: RunId, carrier: Carrier | None) -> RunTrace:
        known = trace_of(run, carrier)
        return RunTrace(run, known.trace, None, self.flags)

    async def write(self, run: str, before: int, *events: e.Event) -> Commit:
        """Commits events, without telling the follower."""
        self.fence = getattr(self, "fence", None) or await self._leased()
        commit = Commit(RunId(run), before, list(events), [], RunStatus.RUNNING, False)
        await self.store.commit(Batch([commit]), self.fence)
        return commit

    async def _leased(self) -> Fence:
        fence = await self.store.lease(0, "me", 0, 1 << 50)
        assert fence is not None
        return fence

    @property
    def names(self) -> list[str]:
        return [span.name for span in self.given]


def begun(run: str) -> list[e.Event]:
    return [
        e.RunStarted(1, 10, RunId(run), "w", 1, "hash", {}),
        e.TokenCreated(2, 10, TokenId(1), "a", "root"),
        e.TokenDispatched(3, 10, TokenId(1), 1, {}),
        e.TokenStarted(4, 10, TokenId(1), 1),
    ]


ENDED = [e.TokenCompleted(5, 20, TokenId(1)), e.RunCompleted(6, 20, {})]


def test_events_that_were_missed_are_read_from_the_store() -> None:
    async def whole() -> list[str]:
        followed = Followed()
        followed.follower.observe([await followed.write("r", 0, *begun("r")[:2])], 0.0)
        await followed.write("r", 2, *begun("r")[2:])
        followed.follower.observe([await followed.write("r", 4, *ENDED)], 0.0)
        await followed.follower.close()
        return followed.names

    assert asyncio.run(whole()) == ["a attempt 1", "a", "w"]


def test_a_run_that_was_put_out_of_memory_goes_on_without_sending_a_span_twice(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(follower, "RUNS_MAX", 1)

    async def whole() -> list[str]:
        followed = Followed()
        for run in ("r", "s"):
            followed.follower.observe([await followed.write(run, 0, *begun(run))], 0.0)
        first = await followed.write("r", 4, ENDED[0])
        followed.follower.observe([first], 0.0)
        followed.follower.observe([await followed.write("s", 4, *ENDED)], 0.0)
        followed.follower.observe([await followed.write("r", 5, ENDED[1])], 0.0)
        await followed.follower.close()
        return followed.names

    assert asyncio.run(whole()) == ["a attempt 1", "a", "a attempt 1", "a", "w", "w"]


def test_spans_of_a_killed_owner_are_sent_again_once_and_only_the_newest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(follower, "RUNS_MAX", 0)

    async def whole() -> list[str]:
        followed = Followed()
        now = SystemClock().now()
        known = begun("r")
        await followed.write("r", 0, *known, e.TokenCompleted(5, 20, TokenId(1)))  # ended long ago
        await followed.write("r", 5, e.TokenCreated(6, now, TokenId(2), "b", "root"))
        await followed.write("r", 6, e.TokenCompleted(7, now, TokenId(2)))
        await followed.write("r", 7, e.TokenCreated(8, now, TokenId(3), "c", "root"))
        followed.follower.took_over([0], lambda _run: 0)
        followed.follower.observe([await followed.write("r", 8, e.TokenCompleted(9, now + 60_000, TokenId(3)))], 0.0)
        followed.follower.observe([await followed.write("r", 9, e.RunCompleted(10, now + 60_000, {}))], 0.0)
        await followed.follower.close()
        return followed.names

    assert asyncio.run(whole()) == ["b", "c", "w"]


def test_runs_that_are_not_sampled_are_read_at_most_once_and_never_folded() -> None:
    async def whole() -> tuple[list[str], int]:
        followed = Followed(flags=0)
        await followed.write("r", 0, *begun("r"))
        read = 0
        history = followed.store.history

        async def counted(run: RunId, after: int = 0, limit: int | None = None) -> list[e.Event]:
            nonlocal read
            read += 1
            return await history(run, after, limit)

        followed.store.history = counted  # type: ignore[method-assign]
        for commit in (await followed.write("r", 4, ENDED[0]), await followed.write("r", 5, ENDED[1])):
            followed.follower.observe([commit], 0.0)
        await followed.follower.close()
        return followed.names, read

    assert asyncio.run(whole()) == ([], 1)


def test_late_news_of_a_run_that_has_ended_read_nothing() -> None:
    async def whole() -> list[str]:
        followed = Followed()
        followed.follower.observe([await followed.write("r", 0, *begun("r"), *ENDED)], 0.0)
        late = await followed.write("r", 6, e.ResultIgnored(7, 30, TokenId(1), 1, "late"))
        followed.store.history = None  # type: ignore[assignment, method-assign]
        followed.follower.observe([late], 0.0)
        await followed.follower.close()
        return followed.names

    assert asyncio.run(whole()) == ["a attempt 1", "a", "w"]
