"""The follower: folds committed events into spans and gives them to a sender.

Owns the folds of runs under way, in memory. Promises that the coordinator only pays for an append: folding happens in
a task of its own, in short turns. A run that is not in memory, after a restart or because many others came between, is
read from the store; so is what the follower missed. Must not change anything in the store.

Spans and crashes
    A span is sent when it has ended. A process that is killed loses spans that it has not sent yet. So the next owner
    of a run sends those again that ended shortly before it took over: perhaps twice, but with the same ids, times and
    contents. Of runs that ended meanwhile it does so for the newest ones. Known limit: on a shared store a node that
    takes shards cannot tell whether their last owner was killed, so it always does this.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict, deque
from collections.abc import Callable, Sequence

from treadle.errors import StoreUnavailable, TreadleError
from treadle.model import events as e
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.ports import Clock
from treadle.runtime.traces.context import Carrier, RunTrace
from treadle.runtime.traces.span_records import EndedSpan
from treadle.runtime.traces.spans import STEPS, RunSpans
from treadle.store.port import Commit, RunQuery, Store

RUNS_MAX = 10_000
"""Runs whose spans are kept in memory, some kilobytes each. Others are read again when something happens in them."""
SKIPPED_MAX = 100_000
"""Runs that are remembered as not sampled, or as sent again."""
QUEUE_MAX = 100_000
"""Decisions that wait to be folded. Beyond them the oldest are dropped, and read from the store later."""
AGAIN_MS = 30_000
"""Spans that ended so shortly before a takeover are sent again: longer than a lease, the wait for a batch and one
sending take together, by their defaults."""
TURN_S = 0.005
"""How long it folds before other callbacks of the event loop get their turn."""
PAGE = 1_000

log = logger("treadle.traces")


class TraceFollower:
    """See the module's docstring. Made on the event loop it lives on."""

    def __init__(
        self,
        store: Store,
        clock: Clock,
        trace_of: Callable[[RunId, Carrier | None], RunTrace],
        send: Callable[[RunTrace, EndedSpan], None],
    ) -> None:
        self._store = store
        self._clock = clock
        self._trace_of = trace_of
        self._send = send
        self._queue: deque[tuple[RunId, Sequence[e.Event]]] = deque(maxlen=QUEUE_MAX)
        self._runs: OrderedDict[RunId, RunSpans] = OrderedDict()
        self._skipped: OrderedDict[RunId, None] = OrderedDict()
        self._taken: dict[int, int] = {}
        """When a shard was taken over from an owner that was killed."""
        self._repeated: OrderedDict[RunId, int] = OrderedDict()
        """Runs whose spans were sent again, each with the instant of that takeover: once is enough."""
        self._shard_of: Callable[[RunId], int] = lambda _run: 0
        self._woken = asyncio.Event()
        self._tasks = {asyncio.get_running_loop().create_task(self._follow())}

    def observe(self, commits: Sequence[Commit], _seconds: float) -> None:
        """These decisions were written."""
        self._queue.extend((commit.run, commit.events) for commit in commits)
        self._woken.set()

    def took_over(self, shards: Sequence[int], shard_of: Callable[[RunId], int]) -> None:
        """Spans of runs in these shards may have been lost with their last owner."""
        now = self._clock.now()
        self._taken |= dict.fromkeys(shards, now)
        self._shard_of = shard_of
        task = asyncio.get_running_loop().create_task(self._send_again(frozenset(shards), now))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    def drop_unless(self, is_kept: Callable[[RunId], bool]) -> None:
        """Forgets the other runs. Those that come back are read from the store."""
        for run in [run for run in self._runs if not is_kept(run)]:
            del self._runs[run]

    async def close(self) -> None:
        """Folds what is left."""
        tasks = tuple(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._fold_all()

    async def _follow(self) -> None:
        while True:
            await self._woken.wait()
            self._woken.clear()
            await self._fold_all()

    async def _fold_all(self) -> None:
        loop = asyncio.get_running_loop()
        until = loop.time() + TURN_S
        while self._queue:
            run, events = self._queue.popleft()
            try:
                if not self._fold(run, events):
                    await self._catch_up(run, events)
            except StoreUnavailable as problem:
                self._runs.pop(run, None)  # the next event of the run reads it from its beginning
                log.warning("a trace has a gap until the store answers", run=run, error=str(problem))
            except Exception as problem:  # a defect of Treadle in one run must not end the traces of the others
                self._runs.pop(run, None)
                log.error("a run cannot be traced", run=run, exc_info=problem)
            if loop.time() > until:
                await asyncio.sleep(0)
                until = loop.time() + TURN_S

    def _fold(self, run: RunId, events: Sequence[e.Event]) -> bool:
        """Folds the events of one decision. False: something before them is missing."""
        if not events or run in self._skipped:
            return True
        first, spans = events[0], self._runs.get(run)
        if isinstance(first, e.Beginning) and first.seq == 1:
            spans = self._begin(first)
            if spans is None:
                return True
        elif spans is None:
            return not any(type(event) in STEPS for event in events)  # late news of a run that has ended
        elif first.seq > spans.seq + 1:
            return False
        for event in events:
            spans.take(event)
        self._give(spans, spans.drain())
        return True

    def _begin(self, started: e.Beginning) -> RunSpans | None:
        """A run from its first event on; None if it is not sampled."""
        trace = self._trace_of(started.run, started.trace)
        if not trace.is_sampled:
            self._skipped[started.run] = None
            if len(self._skipped) > SKIPPED_MAX:
                self._skipped.popitem(last=False)
            return None
        return RunSpans(trace, started)

    def _give(self, spans: RunSpans, ended: Sequence[EndedSpan]) -> None:
        for span in ended:
            self._send(spans.trace, span)
        if spans.is_over:
            self._runs.pop(spans.run, None)
            return
        self._runs[spans.run] = spans
        self._runs.move_to_end(spans.run)
        if len(self._runs) > RUNS_MAX:
            self._runs.popitem(last=False)

    async def _catch_up(self, run: RunId, events: Sequence[e.Event]) -> None:
        """Reads what is missing before these events, then folds them."""
        spans = self._runs.get(run)
        if spans is not None:
            await self._read(spans, events[0].seq - 1)
            missed = spans.drain()  # events of this process that were dropped: nobody has sent their spans
        else:
            spans = await self._from_store(run, events[0].seq - 1)
            if spans is None:
                return
            missed = self._doubtful(run, spans.drain())
        for event in events:
            spans.take(event)
        self._give(spans, [*missed, *spans.drain()])

    async def _from_store(self, run: RunId, until: int) -> RunSpans | None:
        """A run as it was after an event; None if it is not sampled, or was forgotten meanwhile."""
        history = await self._store.history(run, 0, 1)
        if not history or not isinstance(history[0], e.Beginning):
            return None
        spans = self._begin(history[0])
        if spans is not None:
            await self._read(spans, until)
        return spans

    async def _read(self, spans: RunSpans, until: int) -> None:
        while spans.seq < until:
            page = await self._store.history(spans.run, spans.seq, min(PAGE, until - spans.seq))
            if not page:
                raise TreadleError("its history has a gap")
            for event in page:
                spans.take(event)

    async def _send_again(self, shards: frozenset[int], taken: int) -> None:
        """Sends the doubtful spans of runs that have ended: no event of theirs will come any more."""
        query = RunQuery(statuses=tuple(RUN_ENDED), newest_first=True, limit=PAGE)
        try:
            for row in await self._store.find_runs(query):
                if row.changed >= taken - AGAIN_MS and self._shard_of(row.run) in shards:
                    spans = await self._from_store(row.run, row.seq)
                    if spans is not None:
                        self._give(spans, self._doubtful(row.run, spans.drain()))
        except TreadleError as problem:
            log.warning("the newest spans of the last owner may be missing", error=str(problem))

    def _doubtful(self, run: RunId, ended: Sequence[EndedSpan]) -> list[EndedSpan]:
        """Spans that the last owner of the run may not have sent."""
        taken = self._taken.get(self._shard_of(run))
        if taken is None or self._repeated.get(run) == taken:
            return []
        self._repeated[run] = taken
        if len(self._repeated) > SKIPPED_MAX:
            self._repeated.popitem(last=False)
        return [span for span in ended if taken - AGAIN_MS <= span.end <= taken]
