"""The auditor: watches every commit of every run, and knows nothing of how the kernel decides.

Theory of operation. For every run there are two folds of the committed history. One is the kernel's own `evolve`, on
events that went through the codec: it must equal the state an engine holds after each commit (rule `fold`), which is
how an event that says too little, or a state changed behind history's back, is found. The other is the auditor's
`Record`, folded by its own code; the rules look at it before each event and after each commit. At the end the
clients' letters are held against the histories: what was acknowledged is there, what was refused is not.

Only these are used: committed commits in their order, the command that caused each, the store's clock, the letters, and
the definition. `tests/sim` plants mistakes into histories and checks that each rule notices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import fields
from typing import Any

from tests.simulator.audit import (
    answers,
    endings,
    joins,
    journal,
    lifecycle,
    merges,
    node_joins,
    outside,
    reopening,
    routing,
)
from tests.simulator.audit.chart import Chart
from tests.simulator.audit.complaint import Violation
from tests.simulator.audit.folding import FOLD
from tests.simulator.audit.record import Doing, Record
from tests.simulator.catalog import Deployment
from tests.simulator.post import Letter
from treadle.kernel.evolve import evolve, replay
from treadle.kernel.invariants import violations
from treadle.kernel.state import RunState
from treadle.model import events as e
from treadle.model.codec import pack_events, unpack_events
from treadle.model.commands import Command
from treadle.model.effects import Effect
from treadle.model.ids import RunId
from treadle.store.port import Commit, Fence

PREFIX_MAX = 40
"""Events whose every prefix is folded: that costs the square of it."""

Rule = Callable[[Record, Any], None]

RULES: dict[type[e.Event], tuple[Rule, ...]] = {
    e.TokenCreated: (routing.on_created,),
    e.TokenCompleted: (answers.on_result,),
    e.TokenWaiting: (answers.on_result,),
    e.GroupOpened: (routing.on_opened,),
    e.JoinArrived: (joins.on_arrival, node_joins.on_arrival, routing.on_arrived, merges.check_contribution),
    e.JoinFired: (joins.on_fired, node_joins.on_fired),
    e.JoinFailed: (joins.on_failed,),
    e.JoinDead: (joins.on_dead,),
    e.JoinReopened: (reopening.on_join_reopened,),
    e.ContextUpdated: (merges.check_scope,),
    e.GateClaimed: (answers.on_claim,),
    e.GateReleased: (answers.on_claim,),
    e.GateDelegated: (answers.on_claim,),
    e.GateCompleted: (answers.on_gate,),
    e.GateExpired: (answers.on_gate,),
    e.CallbackReceived: (answers.on_callback,),
    e.SignalTaken: (answers.on_taken,),
    e.ChildEnded: (answers.on_child_ended,),
    e.TimerFired: (answers.on_timer,),
    e.CompensationStarted: (endings.on_undo_started,),
    e.CompensationCompleted: (endings.on_undo_ended,),
    e.CompensationFailed: (endings.on_undo_ended,),
    e.CompensationSkipped: (endings.on_skipped,),
    e.RunCompensated: (endings.on_compensated,),
    e.EntityMoved: (endings.on_entity,),
}
"""What is looked at before an event is taken in."""

SETTLED: tuple[Callable[[Record], None], ...] = (
    joins.settled,
    node_joins.settled,
    routing.settled,
    endings.settled,
    reopening.settled,
)
"""What must hold between two commits."""


class Watched:
    """A run under watch: both folds, and its events as the store gives them back."""

    def __init__(self, run: RunId, state: RunState) -> None:
        self.state = state
        self.record = Record(run, Chart(state.graph.definition))
        self.events: list[e.Event] = []


class Auditor:
    """See the module's docstring."""

    def __init__(self, catalog: Deployment) -> None:
        self._catalog = catalog
        self._epochs: dict[int, Fence] = {}
        self.runs: dict[RunId, Watched] = {}

    def committed(
        self,
        commit: Commit,
        cause: Command | None,
        fence: Fence,
        now: int,
        shard: int,
        effects: Sequence[Effect] | None = None,
    ) -> None:
        """A commit has happened."""
        self._check_fence(commit, fence, shard)
        events = unpack_events(pack_events(list(commit.events)))
        watched = self.runs.get(commit.run) or self._begin(commit.run, events)
        self._fold(watched, events)
        inspect(watched.record, events, commit.effects if effects is None else effects, cause, now)
        if commit.status != watched.state.status:
            watched.record.complain("status", f"committed as {commit.status}, history says {watched.state.status}")
        _raise(watched.record)

    def _begin(self, run: RunId, events: list[e.Event]) -> Watched:
        started = events[0]
        assert isinstance(started, e.RunStarted)
        graph = self._catalog.lookup(started.workflow, None)
        assert graph is not None
        watched = self.runs[run] = Watched(run, RunState(graph))
        return watched

    def _check_fence(self, commit: Commit, fence: Fence, shard: int) -> None:
        newest = self._epochs.get(shard)
        if fence.shard != shard or (newest is not None and fence.epoch < newest.epoch):
            raise Violation(commit.run, "fence", f"committed under {fence}, the newest is {newest}")
        self._epochs[shard] = fence

    def _fold(self, watched: Watched, events: list[e.Event]) -> None:
        for event in events:
            watched.events.append(event)
            try:
                evolve(watched.state, event)
            except Exception as problem:
                raise Violation(watched.record.run, "fold", f"{event} cannot be folded: {problem!r}") from problem
        problems = violations(watched.state.graph, watched.state)
        if problems:
            raise Violation(watched.record.run, f"invariant {problems[0].split(':')[0]}", "\n".join(problems))

    def compare(self, run: RunId, state: RunState) -> None:
        """An engine's state after a commit is the fold of the history."""
        mine = self.runs[run].state
        if mine != state:
            different = [
                f"{f.name}: history says {getattr(mine, f.name)!r}, the engine {getattr(state, f.name)!r}"
                for f in fields(mine)
                if f.compare and getattr(mine, f.name) != getattr(state, f.name)
            ]
            raise Violation(run, "fold", "\n".join(different))

    def conclude(self, letters: Sequence[Letter]) -> None:
        """At the end: every history folds to the same state again, and the clients got what they were told."""
        for run, watched in self.runs.items():
            if replay(watched.state.graph, watched.events) != watched.state:
                raise Violation(run, "fold", "folding the history again gives another state")
        if self.runs:
            _check_prefixes(min(self.runs.values(), key=lambda watched: len(watched.events)))
        records = {run: watched.record for run, watched in self.runs.items()}
        journal.check_letters(records, {run: watched.events for run, watched in self.runs.items()}, letters)
        journal.check_families(records)
        for record in records.values():
            _raise(record)


PREFIXES_MAX = 60
"""Folding every prefix costs the square of a history: a short stretch of one small run is enough, seed after seed."""


def _check_prefixes(watched: Watched) -> None:
    """Folding is the same in one go and step by step, at every sequence number."""
    graph = watched.state.graph
    state = RunState(graph)
    for number, event in enumerate(watched.events[:PREFIXES_MAX], start=1):
        evolve(state, event)
        if replay(graph, watched.events[:number]) != state:
            raise Violation(watched.record.run, "fold", f"the first {number} events fold to another state in one go")


def inspect(record: Record, events: list[e.Event], effects: Sequence[Effect], cause: Command | None, now: int) -> None:
    """All rules on one commit; what they complain of is in `record.complaints`."""
    record.doing = Doing(cause, now, record.seq, events=events)
    for effect in effects:
        record.take_effect(effect)
    for event in events:
        _take(record, event)
    for rule in SETTLED:
        rule(record)
    outside.settled(record, effects)


def _take(record: Record, event: e.Event) -> None:
    record.expect(event.seq == record.seq + 1, "sequence", f"event {event.seq} after {record.seq}")
    record.doing.seq = record.seq = event.seq
    lifecycle.check_paused(record, event)
    try:
        for rule in RULES.get(type(event), ()):
            rule(record, event)
        take = FOLD.get(type(event))
        if take is not None:
            take(record, event)
    except (KeyError, IndexError, AttributeError, StopIteration) as problem:
        record.complain("nonsense", f"{event} speaks of what is not there: {problem!r}")


def _raise(record: Record) -> None:
    if record.complaints:
        rule, text = record.complaints[0]
        rest = "".join(f"\n  also {other}: {more}" for other, more in record.complaints[1:5])
        raise Violation(record.run, rule, text + rest)
