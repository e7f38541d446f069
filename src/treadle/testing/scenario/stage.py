"""A scenario on stage: its world, the names of its runs, and what an expectation may see of them.

Owns the names. Must not act: `acting` does.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.group_state import Arrival
from treadle.kernel.spending import spent_by
from treadle.kernel.standing import unspawned
from treadle.kernel.state import RunState
from treadle.model.events import ChildStarted, Event
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED, Waiting
from treadle.testing.scenario.observed import Observed, ObservedRun
from treadle.testing.scenario.place import ValuePlace
from treadle.testing.world.projection import Visit
from treadle.testing.world.world import World


@dataclass(slots=True)
class Stage:
    """See the module's docstring."""

    world: World
    main: RunId
    """The run under test."""
    names: dict[str, RunId] = field(default_factory=dict)
    """What `start: {as: name}` and `fork: {as: name}` called them."""
    forks: set[RunId] = field(default_factory=set)
    """Runs that only their name means."""
    marks: dict[str, int] = field(default_factory=dict)
    """Sequence numbers that `mark` remembers."""
    sent: int = 0
    """Messages so far: gives each an id, so that a repeated delivery is recognised."""

    def observed(self) -> Observed:
        """The world as it is now."""
        runs = {run: self._observe(run) for run in self.world.runs}
        apart = {run: observed for run, observed in runs.items() if run not in self.forks}
        named = _by_workflow(apart.values())
        named |= _by_workflow(observed for run, observed in apart.items() if run not in self.names.values())
        named |= {name: [runs[run]] for name, run in self.names.items()}
        workflows = dict.fromkeys(run.workflow for run in runs.values())
        return Observed(runs[self.main], named, self.world.clock.now, lambda: self._queue(workflows))

    def _queue(self, workflows: Iterable[str]) -> list[str]:
        """The run under test is listed by its workflow, another run without a name by its id."""
        names = {self.main: self.world.state(self.main).graph.workflow_name}
        names |= {run: name for name, run in self.names.items()}
        queued = [run for workflow in workflows for run in self.world.queue(workflow)]
        return [names.get(run, str(run)) for run in queued]

    def run_named(self, name: str, place: ValuePlace) -> ObservedRun:
        """The run a step names, by its name, its workflow, or the address of the visit that has called it: of several
        the one that has not ended. Of several that a visit has called and that have ended it is the last."""
        found = self.observed().named.get(name) or self._called_by(name)[-1:]
        if len(found) > 1:
            found = [run for run in found if run.projection.status not in RUN_ENDED] or found
        if len(found) != 1:
            known = ", ".join(sorted(self.observed().named))
            place.refuse(f"{len(found) or 'no'} runs are called {name!r}; there are: {known}")
        return found[0]

    def _called_by(self, address: str) -> list[ObservedRun]:
        called: list[ObservedRun] = []
        for run in self.world.runs:
            projection = self.world.projection(run)
            for event in projection.events:
                if isinstance(event, ChildStarted) and str(projection.visits[event.token]) == address:
                    called += [self._observe(event.run)] if event.run in self.world.runs else []
        return sorted(called, key=lambda run: run.projection.status not in RUN_ENDED)

    def next_id(self) -> str:
        self.sent += 1
        return f"scenario-{self.sent}"

    def _observe(self, run: RunId) -> ObservedRun:
        world = self.world
        state = world.state(run)
        return ObservedRun(
            workflow=state.graph.workflow_name,
            refs=frozenset(ref for graph in (state.graph, *state.graph.versions.values()) for ref in graph.nodes),
            projection=world.projection(run),
            context=state.context,
            dispatches=lambda visit: world.workers.dispatches[run, visit.token],
            awaiting=lambda visit: awaiting(state, visit),
            spent=lambda: spent_by(run, self._past, world.clock.now),
        )

    def _past(self, run: RunId) -> tuple[ExecutionGraph, Sequence[Event]] | None:
        if run not in self.world.runs:
            return None
        return self.world.state(run).graph, self.world.projection(run).events


def _by_workflow(runs: Iterable[ObservedRun]) -> dict[str, list[ObservedRun]]:
    """A workflow's name means its runs; where some have no name of their own, those."""
    found: dict[str, list[ObservedRun]] = {}
    for run in runs:
        found.setdefault(run.workflow, []).append(run)
    return found


def awaiting(state: RunState, visit: Visit) -> int | None:
    """How many live branches a visit that waits for siblings still waits for; None for other waits."""
    token = state.tokens.get(visit.token)
    if token is None or visit.waiting is not Waiting.SIBLINGS or not token.arrivals:
        return None
    return max(_awaited_by(state, state.arrivals[arrival]) for arrival in token.arrivals)


def _awaited_by(state: RunState, arrival: Arrival) -> int:
    if arrival.group is None:
        held = state.node_joins[arrival.target, arrival.item].held
        delivered = {state.arrivals[other].via for other in held}
        return len({transition.id for transition in state.graph.nodes[arrival.target].inbound} - delivered)
    group = state.groups[arrival.group]
    for site in group.sites:
        if state.graph.sites[site.index].target.ref == arrival.target:
            return len(site.live) + unspawned(group)
    return 0
