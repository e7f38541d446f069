"""Commands for runs that another node coordinates: they are written to the inbox, and that node is woken.

Owns the commands on their way to an inbox. Promises that the command of an outbox row reaches its run whatever happens
in between, in the order of the rows: the id of the request has the row's number, so writing it again finds the first
one. An outbox row is removed once its request is written, since the inbox is as durable as the outbox. A caller that
needs the answer gets it. Must not decide.

    row ─► run here ──────────────────────────► coordinator ─► decision
      └──► run elsewhere ─► submit ─► row done       ▲
                              └─► inbox ─► its owner ┘   (a wake may be lost: the owner also reads by itself)

An item whose run is not here goes one of these ways:
    a request of the inbox     stays there: the new owner of the run reads it
    from a row of our outbox   into the inbox; if the row's run has moved too, its new owner delivers the row
    a result with a claim      into the inbox: the attempt goes on here (`handover`)
    a result, shard in doubt   kept until the owner of the shard is known; decided here if no other node had it
    a caller waits for it      `Moved`: nothing was written, the caller asks the other node
    anything else              dropped: the new owner fires timers and notices lost workers itself
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Coroutine
from functools import partial
from itertools import count
from typing import Any

from treadle.model import commands as c
from treadle.model.ids import RunId
from treadle.runtime.coordinate.gathering import Item
from treadle.runtime.coordinate.shards import Moved, Shards
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.patience import reliably
from treadle.runtime.surroundings.ports import Alarm, Clock
from treadle.store.port import InboxAnswer, InboxRequest, Store

LOOK_FIRST_MS, LOOK_LAST_MS = 500, 5_000
"""Pauses between two readings of answers that were waited for: the wake that announces one may be lost."""

log = logger("treadle.other_nodes")


class OtherNodes:
    """See the module's docstring."""

    def __init__(
        self,
        store: Store,
        shards: Shards,
        clock: Clock,
        spawn: Callable[[Coroutine[Any, Any, None]], None],
        settle: Callable[[int], None],
        is_over: Callable[[], bool],
    ) -> None:
        self._store = store
        self._shards = shards
        self._clock = clock
        self._spawn = spawn
        self._settle = settle
        self._is_over = is_over
        self.wake: Callable[[RunId], None] = lambda _run: None
        """Called with a run whose owner has a new request in its inbox."""
        self.left_in_inbox: Callable[[str], None] = lambda _request: None
        """Called with a request that was taken up here and will be answered by another node."""
        self.signed: Callable[[RunId, c.Command], c.Command] = lambda _run, command: command
        """Adds this node as the worker to a result of claimed work (`Claims.signed`)."""
        self.owner = ""
        """Name of this node in the leases, new after a restart. Reports have it in their ids, which makes them
        unique."""
        self._reports = count(1)
        self._held: list[Item] = []
        """Reports about runs whose shard is in doubt."""
        self._lines: dict[RunId, deque[tuple[Item, InboxRequest]]] = {}
        """Requests to be written, by run: they keep their order."""
        self._under_way: set[str] = set()
        """Ids of the requests in `_lines`."""
        self._waiting: dict[str, tuple[Item, InboxRequest]] = {}
        """Requests written to an inbox whose answer a caller here waits for, by id."""
        self._alarm: Alarm | None = None
        self._pause_ms = LOOK_FIRST_MS
        self._looking = False

    def take(self, item: Item) -> None:
        """Takes an item whose run is not here. The table in the module's docstring says where it goes."""
        item.command = self.signed(item.run, item.command)
        if item.request:
            self.left_in_inbox(item.request)
        elif item.row and item.source is not None and item.source != item.run:
            if self._shards.owns(item.source):
                self._send(item, f"outbox:{item.row}")
                return
        elif _is_kept_report(item.command):
            self._send(item, f"{self.owner}:{next(self._reports)}")
            return
        elif item.epoch and self._shards.is_in_doubt(item.run, item.epoch):
            self._held.append(item)
            return
        if item.future is not None and not item.future.done():  # also starts waiting for one with the same key
            item.future.set_exception(Moved(item.run))

    def release_held(self, put: Callable[[Item], None]) -> None:
        """Called when shards have come back from doubt or are lost: reports that were kept back are decided here, or
        dropped."""
        held, self._held = self._held, []
        for item in held:
            if self._shards.is_current(item.run, item.epoch):
                put(item)
            else:
                self.take(item)

    def look(self, run: RunId | None = None) -> None:
        """Reads the answers that are waited for: of this run, or of all runs for None."""
        wanted = [id for id, (item, _request) in self._waiting.items() if run in (None, item.run)]
        if wanted and not self._is_over() and not (run is None and self._looking):
            self._looking = self._looking or run is None
            self._spawn(self._look(wanted, run is None))

    def close(self) -> None:
        if self._alarm is not None:
            self._alarm.cancel()

    def _send(self, item: Item, id: str) -> None:
        if id in self._under_way or id in self._waiting:
            return  # recovery delivers a row again that is under way
        self._under_way.add(id)
        request = InboxRequest(id, item.run, item.command, self._clock.now(), item.workflow)
        line = self._lines.get(item.run)
        if line is not None:
            line.append((item, request))
            return
        self._lines[item.run] = deque([(item, request)])
        self._spawn(self._work_off(item.run))

    async def _work_off(self, run: RunId) -> None:
        line = self._lines[run]
        try:
            while line:
                item, request = line[0]
                answer = await reliably(partial(self._store.submit, request), self._is_over)
                line.popleft()
                self._submitted(item, request, answer)
        finally:
            del self._lines[run]
            self._under_way.difference_update(request.id for _item, request in line)

    def _submitted(self, item: Item, request: InboxRequest, answer: InboxAnswer | None) -> None:
        self._under_way.discard(request.id)
        if answer is None:
            self.wake(request.run)
        if item.row and not item.keeps_row:
            self._settle(item.row)
        if item.future is None or item.future.done():
            return
        if answer is not None:
            self._answered(item, answer)
            return
        self._waiting[request.id] = (item, request)
        if self._alarm is None:
            self._pause_ms = LOOK_FIRST_MS
            self._look_later()

    def _answered(self, item: Item, answer: InboxAnswer) -> None:
        if item.keeps_row and answer.rejection is None:
            self._settle(item.row)
        if item.future is not None and not item.future.done():
            item.future.set_result(answer)

    def _look_later(self) -> None:
        self._alarm = self._clock.call_at(self._clock.now() + self._pause_ms, self._ring)

    def _ring(self) -> None:
        self._alarm = None
        if self._waiting and not self._is_over():
            self.look()
            self._pause_ms = min(2 * self._pause_ms, LOOK_LAST_MS)
            self._look_later()

    async def _look(self, wanted: list[str], is_for_all: bool) -> None:
        try:
            for id in wanted:
                if id not in self._waiting:
                    continue
                item, request = self._waiting[id]
                answer = await reliably(partial(self._store.answer, request), self._is_over)
                if answer is not None and self._waiting.pop(id, None) is not None:
                    self._answered(item, answer)
        finally:
            self._looking = self._looking and not is_for_all


def _is_kept_report(command: c.Command) -> bool:
    """Whether the new owner of the run needs this report: it is about an attempt that goes on here under a claim, or
    that ends because this node closes."""
    if isinstance(command, c.FinishAttempt | c.FailAttempt | c.ExtendLease):
        return command.worker is not None
    return isinstance(command, c.ReportProgress) or (isinstance(command, c.LoseWorker) and command.graceful)
