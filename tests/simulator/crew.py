"""What work in a simulated world takes and gives: durations, answers, failures."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from tests.simulator.generator.contents import SIGNALS
from tests.simulator.tenures import Execution
from treadle.actions.protocol import Call, Done, Failed, Later, Reply
from treadle.model.definition import Node
from treadle.model.errors import Error
from treadle.model.ids import RunId, TokenId
from treadle.model.requests import AnyRequest, Emit, Send, WriteArtifact

if TYPE_CHECKING:
    from tests.simulator.world import World

DURATION_MS = (0, 1, 5, 20, 60, 150)
LONG_MS = (60, 150, 450, 900)
"""Work that outlasts leases: it is in hand when its shard is lost, comes into doubt or is handed over."""
QUICK_MS = (0, 1, 3)
"""When faults are over nobody dawdles past a deadline."""
NEVER_MS = 1 << 40


class Crew:
    """See the module's docstring."""

    def __init__(self, world: World) -> None:
        self._world = world
        self._draw = world.draw
        self._serial = 0
        self.begun: Counter[tuple[RunId, TokenId, int]] = Counter()
        """How often each attempt of an engine's own work was executed."""

    def duration_ms(self) -> int:
        if self._world.faults.calm:
            return self._draw.pick(QUICK_MS)
        return self._draw.pick(LONG_MS if self._world.plan.has("long_work") and self._draw.chance(0.5) else DURATION_MS)

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
        kind = self._draw.pick(("TASK_FAILED", "BOOM"))
        return Error(kind, f"failure {self._serial}", retryable=self._draw.chance(0.5))

    def run(self, call: Call, owner: str, epoch: int) -> Reply:
        """One try of a task's only step, at a process that holds the run's shard by the lease of that epoch."""
        facts = call.facts
        node = self._world.node(facts.run, facts.node)
        is_own = node.queue is None and node.concurrency is None
        if is_own:
            self.begun[facts.run, facts.token, facts.attempt] += 1
        if self._is_silent(node):
            return Later(NEVER_MS, Done({}))
        if call.facts.emit is not None and self._world.plan.has("native") and self._draw.chance(0.1):
            call.facts.emit("said", self._draw.between(1, 3))
        if self._world.faults.happens("task_failure", 4):
            reply: Done | Failed = Failed(self.error(), self._spent())
        else:
            reply = Done(self.answer(), self._requests(), spent=self._spent())
        ms = self.duration_ms()
        tenures, until = self._world.tenures, self._world.schedule.now + ms
        if is_own:
            tenures.executes(Execution((facts.run, facts.token, facts.attempt), owner, epoch, until), self._serial)
        return Later(ms, reply)

    def _spent(self) -> Any:
        """What the work reports beside its output, if there is a budget that counts it."""
        if not self._world.plan.has("budget") or self._draw.chance(0.3):
            return None
        report = {"cost": self._draw.pick((0, 0.1, 0.3)), "usage": {"total_tokens": self._draw.between(0, 30)}}
        return self._draw.pick((report, {"cost": 0.2}, {"usage": {"input_tokens": 3, "output_tokens": 4}}))

    def _is_silent(self, node: Node) -> bool:
        """Only where somebody watches the clock; a task that hangs without a deadline hangs for ever."""
        limits = [node.timeout_ms, *((node.compensate.timeout_ms,) if node.compensate is not None else ())]
        return None not in limits and self._world.faults.happens("silent_task", 3)

    def _requests(self) -> tuple[AnyRequest, ...]:
        if not self._world.plan.has("native") or not self._draw.chance(0.1):
            return ()
        wishes: tuple[AnyRequest, ...] = (
            Emit("noted", 1),
            Send(self._draw.pick(SIGNALS), None, {"v": 0}),
            Send("alpha", None, {"v": 0}, self._draw.pick(self._world.runs)),
            WriteArtifact("report", f"sha256:{self._serial}", 10),
        )
        return (self._draw.pick(wishes),)
