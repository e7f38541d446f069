"""What a batch of seeds has tried: commands × states × node kinds, events, joins, timers, errors, faults.

Owns the counting. A generator that never produces a situation proves nothing about it, so the cells are reported after
every batch, and `tests/sim` fails when one that matters stays empty. Counters add up over seeds and processes.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from treadle.graph.execution_graph import GraphNode
from treadle.kernel.state import RunState
from treadle.model import events as e
from treadle.model.commands import Command
from treadle.model.decision import Decision
from treadle.model.definition import Workflow
from treadle.model.ids import TokenId


class Situation(NamedTuple):
    """In which a command was decided."""

    command: str
    status: str
    """Of the run."""
    kind: str
    """Of the node whose visit the command is about; empty if it is about none."""
    state: str
    """Of that visit."""


class Coverage:
    """Every field is a counter of cells."""

    def __init__(self) -> None:
        self.commands: Counter[str] = Counter()
        """command / run status → what came of it"""
        self.visits: Counter[str] = Counter()
        """command / node kind / state of the visit"""
        self.events: Counter[str] = Counter()
        self.joins: Counter[str] = Counter()
        """strategy / rest / failure policy → outcome"""
        self.node_joins: Counter[str] = Counter()
        self.merges: Counter[str] = Counter()
        self.waits: Counter[str] = Counter()
        self.queued: Counter[str] = Counter()
        """Why runs had to wait for their start."""
        self.answers: Counter[str] = Counter()
        """command and kind of every refusal that a client was told; most are also in `refusals`"""
        self.timers: Counter[str] = Counter()
        self.errors: Counter[str] = Counter()
        self.refusals: Counter[str] = Counter()
        self.endings: Counter[str] = Counter()
        self.faults: Counter[str] = Counter()

    def situation(self, state: RunState, command: Command) -> Situation:
        """To be taken before deciding: states change in place."""
        name = type(command).__name__
        token = state.tokens.get(getattr(command, "token", TokenId(0)))
        if token is None:
            return Situation(name, state.status.value, "", "")
        return Situation(name, state.status.value, _kind(state.graph.nodes[token.node]), _shown(token))

    def decided(self, situation: Situation, decision: Decision) -> None:
        """What came of a command."""
        outcome = "changed" if decision.events else "nothing"
        if decision.rejection is not None:
            outcome = "refused"
            self.refusals[f"{situation.command} {decision.rejection.kind}"] += 1
        self.commands[f"{situation.command} {situation.status} {outcome}"] += 1
        if situation.kind:
            self.visits[f"{situation.command} {situation.kind} {situation.state}"] += 1

    def committed(self, events: Sequence[e.Event], workflow: Workflow) -> None:
        """Events are facts now."""
        for event in events:
            self.events[event.type if not isinstance(event, e.Custom) else "custom"] += 1
            self._look(event, workflow)

    def _look(self, event: e.Event, workflow: Workflow) -> None:
        if isinstance(event, e.JoinFired | e.JoinFailed | e.JoinDead):
            self._join(event, workflow)
        elif isinstance(event, e.TokenWaiting):
            self.waits[event.reason.value] += 1
        elif isinstance(event, e.RunQueued):
            self.queued[event.why] += 1
        elif isinstance(event, e.TimerFired):
            self.timers[event.purpose] += 1
        elif isinstance(event, e.TokenFailed | e.TokenTimedOut):
            self.errors[event.error.kind] += 1
        elif event.type.startswith("run."):
            self.endings[event.type] += 1

    def _join(self, event: e.JoinFired | e.JoinFailed | e.JoinDead, workflow: Workflow) -> None:
        outcome = event.error.kind if isinstance(event, e.JoinFailed) else event.type
        if event.group is None:
            join = workflow.nodes[event.target].join
            assert join is not None
            self.node_joins[f"{join.kind} {join.rest if join.kind == 'inbound' else '-'} {outcome}"] += 1
            return
        sync = next(t.synchronization for t in workflow.transitions if t.to == event.target and t.synchronization)
        rest = event.rest if isinstance(event, e.JoinFired) and event.rest else "-"
        self.joins[f"{sync.strategy.kind} {rest} {sync.on_branch_failure} {outcome}"] += 1
        if isinstance(event, e.JoinFired) and sync.merge is not None:
            self.merges[sync.merge.strategy] += 1
        if isinstance(event, e.JoinFailed):
            self.errors[event.error.kind] += 1

    def add(self, other: Coverage) -> None:
        """Take another batch's counts in."""
        for name, counter in vars(self).items():
            counter.update(getattr(other, name))

    def as_json(self) -> dict[str, dict[str, int]]:
        return {name: dict(sorted(counter.items())) for name, counter in vars(self).items()}

    def summary(self) -> str:
        """How many cells of each kind were seen."""
        return "  ".join(f"{name} {len(counter)}" for name, counter in vars(self).items())


def _kind(node: GraphNode) -> str:
    if node.suspends or node.native:
        return node.suspends or node.native or ""
    if node.task is None:
        return "pass"
    if node.definition.queue is not None:
        return "queue"
    return "slot" if node.definition.concurrency is not None else "task"


def _shown(token: Any) -> str:
    state = token.state.value
    return f"{state}{{{token.waiting.value}}}" if token.waiting is not None else state
