"""Whoever executes tasks: the engines' own executors, and the workers of queues.

Owns results. An executor dies with its engine and may go on as a zombie while a new owner has handed the same attempt
out again; a queue's worker claims, sends heartbeats, answers, or vanishes. The same attempt may be executed twice and
give two different results: exactly one may count.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import TYPE_CHECKING, Any

from treadle.model import commands as c
from treadle.model.effects import RunTask, StopTask
from treadle.model.errors import Error
from treadle.model.ids import RunId
from treadle.model.requests import AnyRequest, Emit, Send, WriteArtifact
from treadle.model.states import TokenState
from treadle.testing.simulator.generator.contents import SIGNALS
from treadle.testing.simulator.post import answered
from treadle.testing.simulator.schedule import Host, Process

if TYPE_CHECKING:
    from treadle.testing.simulator.engine import Engine
    from treadle.testing.simulator.world import World

DURATION_MS = (0, 1, 5, 20, 60, 150)
QUICK_MS = (0, 1, 3)
"""When faults are over nobody dawdles past a deadline."""
QUEUE_LEASE_MS = 100
OFFER_AGAIN_MS = 60
Key = tuple[RunId, int, int]
Claiming = Generator[int, None, bool]


class Crew:
    """See the module's docstring."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._draw = world.draw
        self._serial = 0
        self._workers = 0
        self._stopped: set[Key] = set()
        self._slots: dict[str, int] = {}

    def _duration(self) -> int:
        return self._draw.pick(QUICK_MS if self._world.faults.calm else DURATION_MS)

    # What anybody in this world answers

    def answer(self) -> dict[str, Any]:
        """An answer that nobody else gives: `v` identifies it."""
        draw = self._draw
        self._serial += 1
        small = draw.between(0, 3)
        odd = not self._world.faults.calm and draw.chance(0.03)
        return {
            "v": self._serial,
            "n": draw.pick((-1, "x", None, 9)) if odd else small,
            "list": [self._serial] * draw.between(0, 2),
            "items": list(range(draw.between(0, 3))),
        }

    def error(self) -> Error:
        """A failure, half of them worth another try."""
        self._serial += 1
        return Error(
            self._draw.pick(("TASK_FAILED", "BOOM")), f"failure {self._serial}", retryable=self._draw.chance(0.5)
        )

    # Work

    def begin(self, engine: Engine, run: RunId, effect: RunTask) -> None:
        """An attempt is handed out."""
        key = (run, effect.token, effect.attempt)
        if effect.queue is not None:
            self._serve(run, effect)
            if self._world.faults.happens("duplicate_effect"):
                self._serve(run, effect)
        elif key in engine.executing:
            engine.wanted_again.add(key)
        else:
            engine.executing.add(key)
            self._world.schedule.spawn(self._execute(engine, run, effect), engine)

    def stop(self, run: RunId, effect: StopTask) -> None:
        """Nobody wants this attempt any more. An executor may hear it too late."""
        self._stopped.add((run, effect.token, effect.attempt))

    def _execute(self, engine: Engine, run: RunId, effect: RunTask) -> Process:
        key = (run, effect.token, effect.attempt)
        yield from self._attempt(engine, run, effect)
        while key in engine.wanted_again:
            engine.wanted_again.discard(key)
            yield from self._attempt(engine, run, effect)
        engine.executing.discard(key)

    def _attempt(self, engine: Engine, run: RunId, effect: RunTask) -> Process:
        key = (run, effect.token, effect.attempt)
        if effect.slot is not None:
            yield self._duration()
            if not (yield from self._claim(run, effect, None, engine)):
                return
        yield self._duration()
        if self._is_silent(run, effect):
            return
        if self._world.plan.has("native") and self._draw.chance(0.1):
            part = self._draw.between(1, 3)
            self._world.post.send(run, c.ReportProgress(effect.token, effect.attempt, part, "said", part), host=engine)
        if key not in self._stopped or self._draw.chance(0.5):
            letter = self._world.post.send(run, self._result(effect, None), host=engine)
            yield from answered(letter)

    def _is_silent(self, run: RunId, effect: RunTask) -> bool:
        """Only where somebody watches the clock; a task that hangs without a deadline hangs for ever."""
        node = self._world.node(run, effect.node)
        limit = node.compensate.timeout_ms if effect.record is not None and node.compensate else node.timeout_ms
        return limit is not None and self._world.faults.happens("silent_task", 3)

    def _result(self, effect: RunTask, worker: str | None) -> c.Command:
        tries = 1 if self._draw.chance(0.1) else 0
        if self._world.faults.happens("task_failure", 4):
            return c.FailAttempt(effect.token, effect.attempt, self.error(), tries=tries, worker=worker)
        return c.FinishAttempt(
            effect.token, effect.attempt, self.answer(), self._requests(effect), tries=tries, worker=worker
        )

    def _requests(self, effect: RunTask) -> tuple[AnyRequest, ...]:
        if effect.record is not None or not self._world.plan.has("native") or not self._draw.chance(0.1):
            return ()
        wishes: tuple[AnyRequest, ...] = (
            Emit("noted", 1),
            Send(self._draw.pick(SIGNALS), None, {"v": 0}),
            Send("alpha", None, {"v": 0}, self._draw.pick(self._world.runs)),
            WriteArtifact("report", f"sha256:{self._serial}", 10),
        )
        return (self._draw.pick(wishes),)

    # Queues

    def _serve(self, run: RunId, effect: RunTask) -> None:
        self._workers += 1
        worker = Host(f"worker-{self._workers}")
        self._world.schedule.spawn(self._take(worker, run, effect), None, self._duration())

    def _take(self, worker: Host, run: RunId, effect: RunTask) -> Process:
        mine = yield from self._claim(run, effect, worker.name, None)
        if mine and not self._world.faults.happens("dead_worker", 2):
            yield from self._work(worker, run, effect)

    def _claim(self, run: RunId, effect: RunTask, worker: str | None, host: Host | None) -> Claiming:
        """Until it is ours or no longer on offer. Of a paused run nothing is on offer; a doubled claim may succeed
        after its twin was refused, and whoever claims has to look."""
        while True:
            lease = self._world.depot.now + QUEUE_LEASE_MS if worker is not None else None
            claim = self._world.post.send(run, c.StartAttempt(effect.token, effect.attempt, worker, lease), host=host)
            yield from answered(claim)
            token = self._world.state(run).tokens.get(effect.token)
            if token is None or token.attempt != effect.attempt:
                return False
            if claim.accepted or (token.state is TokenState.EXECUTING and token.worker == worker):
                return True
            if token.state is not TokenState.DISPATCHED:
                return False
            yield OFFER_AGAIN_MS

    def _work(self, worker: Host, run: RunId, effect: RunTask) -> Process:
        post = self._world.post
        if self._draw.chance(0.3):
            yield self._draw.between(1, QUEUE_LEASE_MS)
            lease = self._world.depot.now + QUEUE_LEASE_MS
            beat = post.send(run, c.ExtendLease(effect.token, effect.attempt, worker.name, lease), tries=2)
            yield QUEUE_LEASE_MS // 2
            if beat.rejection is not None:
                return
        yield self._duration()
        post.send(run, self._result(effect, worker.name), tries=8)
