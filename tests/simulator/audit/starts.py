"""The starts of all runs of a workflow together (6.7): no key ever exceeds its limit, none of a flurry runs but the
last, every item of a batch was asked for and is there once, and nobody is passed over again and again.

A run counts from the commit that starts it to the one that ends it. Retries are exempt: they may take a key beyond its
limit, but as long as they do nothing starts.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.simulator.audit.record import Record
from treadle.model import events as e
from treadle.model.definition import RunRate, Workflow
from treadle.model.ids import RunId

LIVE = ("running", "paused", "compensating")
PASSED_OVER_MAX = 2
"""A run that was chosen may begin a little later than one that was chosen after it."""
SLACK_MS = 10
"""So much may the clocks of two engines that have decided one after the other differ."""


@dataclass(slots=True)
class Start:
    """One run, or one that waits to become one."""

    run: RunId
    concurrency: Any
    rate: Any
    group: Any
    fair: Any
    """The key between whose values turns are taken: that of `concurrency`, else of `rate`, else of the group."""
    number: int
    priority: int
    why: str = ""
    asked_at: int = 0
    due: int | None = None
    items: list[Any] = field(default_factory=list)
    status: str = "created"
    started_at: int | None = None
    replaced: bool = False
    passed_over: int = 0


class Starts:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._of: dict[str, dict[RunId, Start]] = {}

    def committed(self, record: Record, events: Sequence[e.Event]) -> None:
        """A commit of a run has been looked at."""
        workflow = record.chart.workflow
        if (workflow.concurrency or workflow.rate or workflow.debounce or workflow.batch) is None:
            return
        starts = self._of.setdefault(workflow.workflow, {})
        start = starts.get(record.run)
        if start is None:
            start = starts[record.run] = _new(record, workflow, len(starts) + 1)
        before, start.status = start.status, record.status
        others = [other for other in starts.values() if other is not start]
        for event in events:
            if isinstance(event, e.RunQueued):
                _queued(start, event, others, None if record.is_fork else workflow.batch, workflow.debounce)
            elif isinstance(event, e.RunStarted):
                _check_batch(record, workflow, start, event)
                _check_flurry(record, start, event.at)
            elif isinstance(event, e.RunCancelled) and event.by == "debounce":
                later = [o for o in others if o.group == start.group and o.number > start.number]
                record.expect(bool(later), "flurry", f"{start.run} gives way, and nobody came after it")
        if before in ("created", "queued") and record.status in LIVE:
            self._check_limits(record, workflow, start, others, events)

    def _check_limits(
        self, record: Record, workflow: Workflow, start: Start, others: list[Start], events: Sequence[e.Event]
    ) -> None:
        start.started_at = next(event.at for event in events if isinstance(event, e.RunStarted | e.RunForked))
        if workflow.concurrency is not None:
            same = [o.run for o in others if o.status in LIVE and o.concurrency == start.concurrency]
            text = f"{start.run} starts beside {same} of key {start.concurrency}, limit {workflow.concurrency.limit}"
            record.expect(len(same) < workflow.concurrency.limit, "concurrency", text)
        if workflow.rate is not None:
            times = sorted(o.started_at for o in others if o.started_at is not None and o.rate == start.rate)
            _check_rate(record, workflow.rate, times, start.started_at)
        if start.why in ("concurrency", "rate"):
            _check_turn(record, start, others)

    def conclude(self, asked: Iterable[tuple[RunId, Any, RunId | None]], records: dict[RunId, Record]) -> None:
        """At the end: everybody whose start was accepted is in one run, once, however often it came, and was told that
        run. `asked`: run, input and answer of each."""
        for run, value, told in asked:
            if not isinstance(value, dict) or "id" not in value:
                continue
            holders = [s.run for of in self._of.values() for s in of.values() for i in s.items if _id(i) == value["id"]]
            record = records.get(run) or next(iter(records.values()))
            record.expect(holders == [told], "batch", f"the start {value} of {run} is in {holders}, told was {told}")


def _id(item: Any) -> Any:
    return item.get("id") if isinstance(item, dict) else None


def _new(record: Record, workflow: Workflow, number: int) -> Start:
    assert record.started is not None
    value = record.asked
    parts = (workflow.concurrency, workflow.rate, workflow.debounce or workflow.batch)
    keys = [part.key if part is not None else None for part in parts]
    return Start(
        record.run,
        _key(keys[0], value),
        _key(keys[1], value),
        _key(keys[2], value),
        _key(next((key for key in keys if key is not None), None), value),
        number,
        record.started.priority,
    )


def _key(source: Any, value: Any) -> Any:
    """What the generator's keys mean: one field of the input."""
    return value.get(source.rpartition(".")[2]) if source is not None and isinstance(value, dict) else None


def _queued(start: Start, event: e.RunQueued, others: list[Start], batch: Any, debounce: Any) -> None:
    if batch is not None:
        start.items.append(event.input)
    if event.alias is not None:
        return
    start.why, start.asked_at, start.due, start.priority = event.why, event.at, event.due, event.priority
    if debounce is not None and event.due is not None:
        for other in others:
            waits = other.status == "queued" and other.group == start.group and other.due is not None
            if waits and other.due > event.at + SLACK_MS:  # type: ignore[operator]
                other.replaced = True


def _check_flurry(record: Record, start: Start, at: int) -> None:
    if start.why != "debounce" or start.due is None:
        return
    record.expect(not start.replaced, "flurry", f"{start.run} starts, and another of its flurry came after it")
    record.expect(at >= start.due - SLACK_MS, "flurry", f"{start.run} starts {start.due - at} ms before its time")


def _check_batch(record: Record, workflow: Workflow, start: Start, event: e.RunStarted) -> None:
    if workflow.batch is None or record.is_fork:
        return
    items = event.input.get("items") if isinstance(event.input, dict) else None
    if start.items:
        record.expect(items == start.items, "batch", f"{start.run} has items {items}, asked for were {start.items}")
    else:
        start.items = list(items or [])
    record.expect(len(items or ()) <= workflow.batch.size, "batch", f"{start.run} has more than {workflow.batch.size}")
    if start.due is not None and len(start.items) < workflow.batch.size:
        early = event.at < start.due - SLACK_MS
        record.expect(not early, "batch", f"{start.run} starts with {len(start.items)} items before its time")


def _check_rate(record: Record, rate: RunRate, times: list[int], now: int) -> None:
    if rate.burst is None:
        within = [at for at in times if now - rate.per_ms < at <= now]
        text = f"starts at {within} and {now}, limit {rate.limit} in {rate.per_ms} ms"
        record.expect(len(within) < rate.limit, "rate", text)
        return
    every = sorted((*times, now))
    for place, first in enumerate(every):
        count, room = len(every) - place, rate.burst + (every[-1] - first) * rate.limit / rate.per_ms
        record.expect(count <= room, "rate", f"{count} starts from {first} to {every[-1]}, the bucket has {room:.2f}")


def _check_turn(record: Record, start: Start, others: list[Start]) -> None:
    for other in others:
        lane = (other.concurrency, other.rate, other.fair) == (start.concurrency, start.rate, start.fair)
        waits = other.status == "queued" and other.why in ("concurrency", "rate")
        if lane and waits and other.number < start.number and other.priority >= start.priority:
            other.passed_over += 1
            text = f"{start.run} starts, and {other.run} has waited longer for the same: {other.passed_over} times"
            record.expect(other.passed_over <= PASSED_OVER_MAX, "turn", text)
