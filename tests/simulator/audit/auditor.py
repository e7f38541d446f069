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
from functools import partial
from typing import Any, NamedTuple

from tests.simulator.audit import (
    answers,
    budgets,
    changing,
    endings,
    forking,
    joins,
    journal,
    lifecycle,
    merges,
    migrating,
    node_joins,
    outside,
    reopening,
    routing,
)
from tests.simulator.audit.chart import Chart
from tests.simulator.audit.complaint import Violation
from tests.simulator.audit.folding import FOLD
from tests.simulator.audit.record import Doing, Record
from tests.simulator.audit.starts import Starts
from tests.simulator.catalog import Deployment
from tests.simulator.post import Letter
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.evolve import evolve, replay
from treadle.kernel.invariants import violations
from treadle.kernel.state import RunState
from treadle.model import events as e
from treadle.model.codec import pack_events, unpack_events
from treadle.model.commands import Command, StartRun
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
    e.ContextUpdated: (merges.check_scope, changing.on_edited),
    e.TokenDispatched: (budgets.on_begin, changing.on_dispatched),
    e.TokenStarted: (budgets.on_begin,),
    e.TokenSkipped: (changing.on_skipped,),
    e.TokenJumped: (changing.on_jumped,),
    e.TokenInputSet: (changing.on_input,),
    e.RunForked: (forking.on_forked,),
    e.RunMigrated: (migrating.on_migrated,),
    e.BudgetExceeded: (budgets.on_exceeded,),
    e.BudgetRaised: (budgets.on_raised,),
    e.GateClaimed: (answers.on_claim,),
    e.GateReleased: (answers.on_claim,),
    e.GateDelegated: (answers.on_claim,),
    e.GateAnswered: (answers.on_answered,),
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
    e.ArtifactWritten: (answers.on_artifact,),
}
"""What is looked at before an event is taken in."""

SETTLED: tuple[Callable[[Record], None], ...] = (
    joins.settled,
    node_joins.settled,
    routing.settled,
    endings.settled,
    reopening.settled,
    changing.settled,
)
"""What must hold between two commits."""


class Seen(NamedTuple):
    """A commit as it was looked at, to be looked at again for a fork."""

    events: list[e.Event]
    effects: Sequence[Effect]
    cause: Command | None
    now: int


class Watched:
    """A run under watch: both folds, and its events as the store gives them back."""

    def __init__(self, run: RunId, graph: ExecutionGraph, charts: Callable[[int], Chart]) -> None:
        self.graph = graph
        """That of the version it began with."""
        self.state = RunState(graph)
        self.record = Record(run, charts(graph.version), charts)
        self.events: list[e.Event] = []
        self.inherited = 0
        """Events of the beginning that were another run's."""
        self.commits: list[Seen] = []
        self.newest: list[e.Event] = []
        """Its own events of the last commit."""


class Auditor:
    """See the module's docstring."""

    def __init__(self, catalog: Deployment) -> None:
        self._catalog = catalog
        self._epochs: dict[int, Fence] = {}
        self._charts: dict[tuple[str, int], Chart] = {}
        self._starts = Starts()
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
        asked = commit.effects if effects is None else effects
        place = forking.place(events) if watched.record.seq == 0 else None
        if place is not None:
            events = self._inherit(watched, events, place)
        watched.newest = events
        watched.commits.append(Seen(events, asked, cause, now))
        before = watched.record.budget.own_visits
        inspect(watched.record, events, asked, cause, now)
        self._starts.committed(watched.record, events)
        if watched.record.budget.own_visits > before:
            self._check_family(watched.record)
        if commit.status != watched.state.status:
            watched.record.complain("status", f"committed as {commit.status}, history says {watched.state.status}")
        _raise(watched.record)

    def _begin(self, run: RunId, events: list[e.Event]) -> Watched:
        started = events[0]
        assert isinstance(started, e.Beginning)
        graph = self._catalog.lookup(started.workflow, started.version)
        assert graph is not None
        watched = self.runs[run] = Watched(run, graph, partial(self._chart, started.workflow))
        return watched

    def _chart(self, workflow: str, version: int) -> Chart:
        if (workflow, version) not in self._charts:
            graph = self._catalog.lookup(workflow, version)
            assert graph is not None
            self._charts[workflow, version] = Chart(graph.definition)
        return self._charts[workflow, version]

    def _inherit(self, watched: Watched, events: list[e.Event], place: int) -> list[e.Event]:
        """The past of a fork is looked at once more, as it was when it was the other run's. What is its own."""
        forked, record = events[place], watched.record
        assert isinstance(forked, e.RunForked)
        other = self.runs[forked.from_]
        past, watched.inherited = events[:place], place
        ends = [seen.events[-1].seq for seen in other.commits if seen.events]
        if forked.point:
            watched.commits = [seen for seen in other.commits if not seen.events or seen.events[-1].seq <= forked.point]
            for seen in watched.commits:
                inspect(record, seen.events, seen.effects, seen.cause, seen.now)
        record.complaints.clear()
        forking.check_past(record, past, forked, other.events, ends)
        record.is_fork, record.callers, record.store_timers, record.run = True, [], {}, watched.state.run
        if not forked.point:
            return events
        record.started = next(event for event in reversed(past) if isinstance(event, e.Beginning))
        changed = (forked.changes or {}).get("input")
        record.asked = changed if changed is not None else record.asked
        return events[place:]

    def _batches(self, workflow: str | None) -> bool:
        graph = self._catalog.lookup(workflow or "", None)
        return graph is not None and graph.definition.batch is not None

    def _check_family(self, record: Record) -> None:
        """Visits of a run and its children together are within every budget above it."""
        above: Record | None = record
        while above is not None:
            limit = above.budget.limit(above, "visits")
            if limit is not None:
                count = self._visits(above)
                text = f"{above.run} and its children make {count} visits, its budget is {limit}"
                record.expect(count <= limit, "budget", text)
            caller = self.runs.get(RunId(above.callers[0][0])) if above.callers else None
            above = caller.record if caller is not None and above.run in caller.record.own_children else None

    def _visits(self, record: Record) -> int:
        below = [self.runs[RunId(child)].record for child in sorted(record.own_children) if child in self.runs]
        return record.budget.own_visits + sum(self._visits(child) for child in below)

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
            if replay(watched.graph, watched.events) != watched.state:
                raise Violation(run, "fold", "folding the history again gives another state")
        if self.runs:
            _check_prefixes(min(self.runs.values(), key=lambda watched: len(watched.events)), len(letters))
        records = {run: watched.record for run, watched in self.runs.items()}
        journal.check_letters(records, {run: watched.events for run, watched in self.runs.items()}, letters)
        journal.check_families(records)
        accepted = [(letter, letter.command) for letter in letters if letter.accepted]
        self._starts.conclude(
            [
                (letter.run, command.input, letter.result)
                for letter, command in accepted
                if type(command) is StartRun and self._batches(letter.workflow)
            ],
            records,
        )
        for record in records.values():
            _raise(record)


PREFIXES_MAX, PREFIXES_EVERY = 60, 6
"""Folding every prefix costs the square of a history: some of a short stretch of one small run are enough, seed after
seed."""


def _check_prefixes(watched: Watched, chosen: int) -> None:
    """Folding is the same in one go and step by step. `chosen`: which of the sequence numbers are tried."""
    graph = watched.graph
    state = RunState(graph)
    for number, event in enumerate(watched.events[:PREFIXES_MAX], start=1):
        evolve(state, event)
        if number % PREFIXES_EVERY == chosen % PREFIXES_EVERY and replay(graph, watched.events[:number]) != state:
            raise Violation(watched.record.run, "fold", f"the first {number} events fold to another state in one go")


def inspect(record: Record, events: list[e.Event], effects: Sequence[Effect], cause: Command | None, now: int) -> None:
    """All rules on one commit; what they complain of is in `record.complaints`."""
    record.doing = Doing(cause, now, record.seq, events=events)
    for effect in effects:
        record.take_effect(effect)
    for event in events:
        _take(record, event)
    try:
        for rule in SETTLED:
            rule(record)
    except (KeyError, IndexError, AttributeError, StopIteration) as problem:
        record.complain("nonsense", f"after {cause} something is where nothing is: {problem!r}")
    outside.settled(record, effects)
    forking.settled(record, effects)


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
