"""Admission: whether a start becomes a run now, waits, or is refused, and which queued run is next (6.7).

Owns the rules of `concurrency`, `rate`, `debounce`, `batch` and `priority`. They are functions of a workflow's *book*
(`kernel.book`) and of the time; nothing is kept or sent here. `runtime.coordinate.flow_control` has the book in memory,
keeps it durable, and carries out what is decided.

The rules
 1. A start first joins the batch of its key, or replaces the queued start of its flurry, if the workflow has one of the
    two. Such a run waits until its time is up or its batch is full, then the limits are looked at.
 2. Live are runs that have started and not ended, paused and compensating ones included. A retry is never refused, so
    only retries can take a key beyond its limit.
 3. A rate without `burst` looks at the last starts: the next may begin `per_ms` after the start that is `limit` back. A
    bucket counts in parts of 1 / `per_ms`: a start takes `per_ms` of them, and each millisecond gives `limit` back.
 4. Of several queued runs that may start the one with the largest priority is next; then one of the key that was served
    longest ago; then the one that came first. A run whose limits do not let it start does not hold up others.
"""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from msgspec import Struct

from treadle.errors import EvaluationError
from treadle.expression.paths import MISSING, Path, get_in
from treadle.expression.sources import CompiledSource
from treadle.expression.view import only_keys
from treadle.graph.execution_graph import ExecutionGraph, GraphFlow
from treadle.kernel.book import StartBook
from treadle.kernel.deciding import Refused
from treadle.kernel.start_place import StartKeys, StartPlace
from treadle.model.definition import RunConcurrency
from treadle.model.errors import Error, Rejection
from treadle.model.ids import RunId

Json = Any
PRIORITY_MIN, PRIORITY_MAX = -100, 100


class Verdict(Struct, frozen=True):
    """What becomes of a start."""

    outcome: Literal["start", "queue", "join", "refuse", "fail"]
    why: str = ""
    """Of a queued run: concurrency, rate, debounce or batch."""
    due: int | None = None
    """Until then it waits for further starts of its flurry or batch."""
    since: int = 0
    """When the first start of its flurry came."""
    batch: RunId | None = None
    """The queued run it joins."""
    rejection: Rejection | None = None
    error: Error | None = None
    cancel: tuple[RunId, ...] = ()
    """Runs that give way to it."""


class InputAlone:
    """The view of a key: `$.input.x` and `$.x` are both the input's `x`."""

    __slots__ = ("_input", "bytes_max")

    def __init__(self, value: Json, bytes_max: int) -> None:
        self._input = value
        self.bytes_max = bytes_max

    def get(self, path: Path) -> Json:
        if path and path[0] == "input":
            found = get_in(self._input, path[1:])
            if found is not MISSING:
                return found
        return get_in(self._input, path)

    def root(self, name: str, keys: frozenset[str] | None) -> Json:
        return only_keys(self._input if name == "input" else get_in(self._input, (name,)), keys)

    def tokens_at(self, node: str) -> int:  # noqa: ARG002
        return 0


def priority_of(graph: ExecutionGraph, value: Json) -> int:
    """The priority of a run with this input. Raises Refused."""
    assert graph.priority is not None
    try:
        found = graph.priority.evaluate(InputAlone(value, graph.cel_bytes_max))
    except EvaluationError as problem:
        raise Refused("BAD_REQUEST", f"priority of {graph.workflow_name!r}: {problem}") from None
    if found is None or found is MISSING:
        return 0
    if isinstance(found, float) and found.is_integer():
        found = int(found)
    if isinstance(found, bool) or not isinstance(found, int) or not PRIORITY_MIN <= found <= PRIORITY_MAX:
        text = f"the priority must be a whole number from {PRIORITY_MIN} to {PRIORITY_MAX}, it is {found!r:.60}"
        raise Refused("BAD_REQUEST", f"{graph.workflow_name!r}: {text}")
    return found


def keys_of(graph: ExecutionGraph, flow: GraphFlow, value: Json) -> StartKeys:
    """The values of all keys for this input, as texts. Raises Refused."""
    concurrency = _key(graph, "concurrency", flow.concurrency_key, value)
    rate = _key(graph, "rate", flow.rate_key, value)
    group = _key(graph, "debounce" if flow.debounce is not None else "batch", flow.group_key, value)
    fair = next((key for key in (concurrency, rate, group) if key), "")
    return StartKeys(concurrency, rate, fair, group)


def _key(graph: ExecutionGraph, name: str, source: CompiledSource | None, value: Json) -> str:
    """An empty text if there is no key: all starts share one count."""
    if source is None:
        return ""
    try:
        found = source.evaluate(InputAlone(value, graph.cel_bytes_max))
    except EvaluationError as problem:
        raise Refused("BAD_REQUEST", f"key of {name} of {graph.workflow_name!r}: {problem}") from None
    return msgspec.json.encode(None if found is MISSING else found, order="deterministic").decode()


def arrive(book: StartBook, place: StartPlace, now: int) -> Verdict:
    """What becomes of a start that comes now. The book is not changed."""
    flow, waiting = place.flow, book.collecting.get(place.keys.group)
    if flow.batch is not None:
        if waiting is not None and waiting.count + waiting.joining < flow.batch.size:
            return Verdict("join", batch=waiting.run)
        if flow.batch.size > 1:
            return Verdict("queue", "batch", now + flow.batch.within_ms, now)
    if flow.debounce is not None:
        since = waiting.since if waiting is not None else now
        due = now + flow.debounce.ms
        if flow.debounce.max_wait_ms is not None:
            due = min(due, since + flow.debounce.max_wait_ms)
        return Verdict("queue", "debounce", due, since, cancel=(waiting.run,) if waiting is not None else ())
    return within_limits(book, place, now)


def within_limits(book: StartBook, place: StartPlace, now: int) -> Verdict:
    """What the limits say to a start that waits for no further ones."""
    concurrency, rate = place.flow.concurrency, place.flow.rate
    if concurrency is not None and not book.has_room(place):
        return _over(book, place, concurrency)
    if rate is not None and not book.may_start(place, now):
        if rate.on_limit == "queue":
            return Verdict("queue", "rate")
        wait_ms = book.next_start(place, now) - now
        text = f"{_limit_of('rate', place.keys.rate)} is {rate.limit} in {rate.per_ms} ms: try again in {wait_ms} ms"
        return Verdict("refuse", rejection=Rejection("RATE_LIMITED", text, retry_after_ms=wait_ms))
    return Verdict("start")


def _over(book: StartBook, place: StartPlace, concurrency: RunConcurrency) -> Verdict:
    limit, key = concurrency.limit, place.keys.concurrency
    if concurrency.on_limit == "queue":
        return Verdict("queue", "concurrency")
    if concurrency.on_limit == "cancel_oldest":
        return Verdict("queue", "concurrency", cancel=book.oldest(key, limit))
    holder = next(iter(book.live.get(key, ())), "")
    text = f"{_limit_of('concurrency', key)} is {limit} and run {holder} is in the way"
    if concurrency.on_limit == "skip":
        rejection = Rejection("DUPLICATE", f"{text}: wait for its end, or cancel it")
        return Verdict("refuse", rejection=rejection)
    return Verdict("fail", error=Error("LIMIT_EXCEEDED", text))


def _limit_of(what: str, key: str) -> str:
    return f"the limit of {what}" + (f" for key {key}" if key else "")
