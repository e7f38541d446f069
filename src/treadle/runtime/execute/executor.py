"""The executor of an engine: takes attempts, reports results, keeps the limits.

    begin ──► ready ──► slot ──► queue ──► room ──► RunningAttempt ──► report
               ▲          └────────┴─────────┘ lines, first come, first served
               └── attempts whose turn has come

Owns every attempt this process has in hand, from `begin` until it has been reported or stopped. Promises:
 1. At most as many attempts run at once as the workshop has room for, as the slot allows and as the queue allows. An
    attempt that waits in a line holds only places of earlier lines, always in this order: no deadlock.
 2. Nothing is reported from inside `begin` or `stop`, and nothing for an attempt after its `stop`.
 3. An attempt gives its places back when its work has ended, or after `attempt.PATIENCE_S`.
 4. A burst does not block the loop: attempts begin in slices, including the work they do at once. A single attempt
    begins at once: a turn of the loop is a tenth of the cost of a step in a chain, its commit aside.

Cost of an attempt, its pipeline included, measured with 10,000 attempts of one step (CPython 3.11, one core): 17 µs
of processor time for a `set` that waits for nothing; 23 µs for an async function that returns at once, which needs a
task and a turn of the loop; about 50 µs for a function in a thread.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Mapping
from contextvars import Context, copy_context
from functools import partial

from msgspec import Struct
from msgspec.structs import replace

from treadle.model.commands import ExtendLease, StartAttempt
from treadle.model.errors import Error
from treadle.model.ids import RunId, TokenId
from treadle.runtime.execute.answer import result_command
from treadle.runtime.execute.attempt import RunningAttempt
from treadle.runtime.execute.slots import Line, Slots
from treadle.runtime.execute.task import TaskOutcome
from treadle.runtime.execute.workshop import Workshop
from treadle.runtime.surroundings.logs import logger
from treadle.runtime.surroundings.ports import Alarm, Attempt, Report

log = logger("treadle.executor")
SLICE_S = 0.005
"""Seconds a burst may keep the loop before others get a turn: half a frame, about a hundred attempts."""


class LocalExecutor:
    """See the module's docstring. Made on the event loop it serves. `queues`: queue → how many attempts at once, for
    the queues it serves; None: all queues, unlimited."""

    def __init__(
        self,
        shop: Workshop,
        report: Report,
        *,
        queues: Mapping[str, int] | None = None,
        name: str = "local",
        lease_ms: int = 30_000,
    ) -> None:
        self._report = report
        self._clock = shop.clock
        self._name = name
        self._lease_ms = lease_ms
        self._loop = shop.loop
        self._context = copy_context()
        """The context variables every attempt starts with: those of the code that opened the engine, not of the code
        that caused the attempt."""
        self._shop = shop
        self._room: Line[_Entry] = shop.room
        self._only_room = (self._room,)
        self._queues = None if queues is None else {queue: Line[_Entry](limit) for queue, limit in queues.items()}
        self._slots: Slots[_Entry] = Slots()
        self._in_hand: dict[tuple[RunId, TokenId, int], _Entry] = {}
        self._ready: deque[_Entry] = deque()
        self._awake = False
        self._in_begin = False
        self._running: set[_Entry] = set()
        self._closing = False
        self._quiet = asyncio.Event()

    @property
    def executing(self) -> int:
        """How many attempts it has in hand, waiting ones included."""
        return len(self._in_hand)

    @property
    def in_hand(self) -> list[Attempt]:
        """The attempts it will still report for, waiting ones included."""
        return [entry.attempt for entry in self._in_hand.values()]

    def has_in_hand(self, run: RunId, token: TokenId, attempt: int) -> bool:
        """Whether it will still report for this attempt."""
        return (run, token, attempt) in self._in_hand

    @property
    def places(self) -> int:
        """How many more attempts would begin at once. A number below 1 counts the attempts that already wait for
        room."""
        waiting = sum(entry.waiting is not None for entry in self._in_hand.values())
        return -waiting if waiting else max(0, self._room.limit - self._room.held - len(self._ready))

    def serves(self, queue: str | None) -> bool:
        """Whether it would begin work of that queue."""
        return queue is None or self._queues is None or queue in self._queues

    def begin(self, attempt: Attempt) -> None:
        """Executes the attempt when there is room. Ignores an attempt that is already in hand, or whose queue is not
        served."""
        identity = attempt.run, attempt.token, attempt.attempt
        is_plain = attempt.queue is None and attempt.slot is None
        if self._closing or identity in self._in_hand or not (is_plain or self.serves(attempt.queue)):
            return
        entry = self._in_hand[identity] = _Entry(attempt, identity, self._context.copy(), self)
        if is_plain:
            entry.lines = self._only_room
        if self._awake or not is_plain:
            self._ready.append(entry)
            if not self._awake:
                self._wake()
        else:
            self._wake()  # further attempts of this turn of the loop wait for the next
            self._in_begin = True
            self._admit(entry)
            self._in_begin = False

    def stop(self, run: RunId, token: TokenId, attempt: int) -> None:
        """Stops the attempt; nothing is reported for it any more. A thread is told to stop and left to itself."""
        entry = self._in_hand.pop((run, token, attempt), None)
        if entry is None:
            return
        entry.stopped = True
        if entry.waiting is not None:
            entry.waiting.withdraw(entry)
        if entry.execution is None:
            self._release(entry)
        else:
            entry.execution.stop(partial(self._release, entry))

    async def close(self, grace_ms: int) -> None:
        """Drops attempts that have not begun, lets the others go on for `grace_ms`, then stops them. Afterwards nothing
        runs except threads that do not return. The workshop stays open for other executors."""
        self._closing = True
        for entry in [entry for entry in self._in_hand.values() if entry.execution is None]:
            self.stop(*entry.identity)
        try:
            await self._wait_quiet(grace_ms)
        finally:
            for identity in tuple(self._in_hand):
                self.stop(*identity)
            await self._wait_quiet(None)

    def _lines(self, attempt: Attempt) -> tuple[Line[_Entry], ...]:
        """The lines an attempt has to pass, in order. The slot comes first: an attempt that waits for a slot must not
        occupy a place of its queue."""
        slot = (self._slots.line(attempt.slot),) if attempt.slot is not None else ()
        served = self._queues is not None and attempt.queue is not None
        queue = (self._queues[attempt.queue],) if served else ()  # type: ignore[index]
        return (*slot, *queue, self._room)

    def _wake(self) -> None:
        if not self._awake:
            self._awake = True
            self._loop.call_soon(self._admit_some)

    def _admit_some(self) -> None:
        self._awake = False
        until = self._loop.time() + SLICE_S
        try:
            while self._ready:
                self._admit(self._ready.popleft())
                if self._loop.time() > until:
                    break
        finally:
            if self._ready:
                self._wake()

    def _admit(self, entry: _Entry) -> None:
        if entry.stopped:
            return
        if not entry.lines:
            entry.lines = self._lines(entry.attempt)  # not earlier: an empty slot's line is dropped
        for line in entry.lines[entry.places :] if entry.places else entry.lines:
            if not line.enter(entry):
                entry.waiting = line
                self._call_up(line)  # its limit may have been raised meanwhile
                return
            entry.places += 1
        self._start(entry)

    def _call_up(self, line: Line[_Entry]) -> None:
        for entry in line.turns():
            entry.waiting = None
            entry.places += 1
            entry.executor._go_on(entry)  # perhaps another executor: they share the room

    def _go_on(self, entry: _Entry) -> None:
        self._ready.append(entry)
        self._wake()

    def _start(self, entry: _Entry) -> None:
        attempt = entry.attempt
        entry.execution = RunningAttempt(attempt, self._shop, entry.context, partial(self._finish, entry))
        self._running.add(entry)
        if attempt.queue is not None:
            until = self._clock.now() + self._lease_ms
            self._renew_later(entry)
            self._report(attempt.run, StartAttempt(attempt.token, attempt.attempt, self._name, until))
        elif attempt.slot is not None:
            self._report(attempt.run, StartAttempt(attempt.token, attempt.attempt))
        if attempt.facts.trace is not None and self._shop.enter_trace is not None:
            entry.context.run(self._shop.enter_trace, attempt.facts.trace)
        if not entry.stopped:  # the report may have led to its stop
            entry.execution.start()

    def _renew_later(self, entry: _Entry) -> None:
        """Renews the lease after a third of it: two renewals may be lost or late before the work is taken away."""
        entry.lease = self._clock.call_at(self._clock.now() + self._lease_ms // 3, partial(self._renew, entry))

    def _renew(self, entry: _Entry) -> None:
        attempt = entry.attempt
        until = self._clock.now() + self._lease_ms
        self._renew_later(entry)
        self._report(attempt.run, ExtendLease(attempt.token, attempt.attempt, self._name, until))

    def _finish(self, entry: _Entry, outcome: TaskOutcome) -> None:
        if entry.stopped:
            return
        if self._in_begin:
            self._loop.call_soon(self._finish, entry, outcome)
            return
        attempt = entry.attempt
        del self._in_hand[entry.identity]
        self._release(entry)
        worker = self._name if attempt.queue is not None else None
        if outcome.error is not None and outcome.error.traceback is not None:
            outcome = self._told(attempt, outcome, outcome.error)
        self._report(attempt.run, result_command(attempt.token, attempt.attempt, outcome, worker))

    def _told(self, attempt: Attempt, outcome: TaskOutcome, error: Error) -> TaskOutcome:
        """Logs the failure. The traceback is kept with the attempt unless the operator has turned that off."""
        known = {"run": attempt.run, "node": attempt.facts.node, "attempt": attempt.attempt, "error": error.message}
        if not self._shop.tracebacks:
            log.info("an attempt failed", **known)
            return replace(outcome, error=error.briefly())
        log.info("an attempt failed", **known, traceback=error.traceback)
        return outcome

    def _release(self, entry: _Entry) -> None:
        """Gives back every place the attempt holds."""
        if entry.lease is not None:
            entry.lease.cancel()
        entry.execution = None  # breaks the reference cycle: both are freed at once
        places, entry.places = entry.places, 0
        for line in entry.lines[:places] if places < len(entry.lines) else entry.lines:
            if line.leave():
                self._call_up(line)
        if entry.attempt.slot is not None:
            self._slots.forget(entry.attempt.slot)
        self._running.discard(entry)
        if not self._running:
            self._quiet.set()

    async def _wait_quiet(self, grace_ms: int | None) -> None:
        """Waits until nothing runs, at most `grace_ms`."""
        self._quiet.clear()
        if not self._running or grace_ms == 0:
            return
        alarm = None if grace_ms is None else self._clock.call_at(self._clock.now() + grace_ms, self._quiet.set)
        await self._quiet.wait()
        if alarm is not None:
            alarm.cancel()


class _Entry(Struct, eq=False):
    """One attempt in hand."""

    attempt: Attempt
    identity: tuple[RunId, TokenId, int]
    context: Context
    """Its own context: other attempts do not see the variables its code sets."""
    executor: LocalExecutor
    lines: tuple[Line[_Entry], ...] = ()
    """The lines it has to pass; empty until they are looked up."""
    places: int = 0
    """How many of its lines it has passed."""
    waiting: Line[_Entry] | None = None
    execution: RunningAttempt | None = None
    lease: Alarm | None = None
    stopped: bool = False
