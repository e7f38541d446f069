"""A run driven by hand under the auditor's eyes, whose history a test may falsify before the auditor sees it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.driving import Driven, Shelf, graph_of
from tests.simulator.audit.auditor import inspect
from tests.simulator.audit.chart import Chart
from tests.simulator.audit.record import Record
from treadle.graph.execution_graph import ExecutionGraph
from treadle.model import commands as c
from treadle.model.effects import Effect
from treadle.model.events import Event

Forgery = Callable[[list[Event], list[Effect]], None]
"""Changes what the auditor is shown of one decision."""


class Watching:
    """Decides honestly, shows the auditor what the test lets it see."""

    def __init__(self, graph: ExecutionGraph, *others: ExecutionGraph) -> None:
        self.driven = Driven(graph, Shelf(graph, *others))
        charts = {version: Chart(other.definition) for version, other in (graph.versions or {1: graph}).items()}
        self.record = Record(self.driven.state.run, Chart(graph.definition), charts.__getitem__)

    def do(self, command: c.Command, forge: Forgery | None = None, late_ms: int = 0) -> Watching:
        """One command; `late_ms` is how far the store's clock is behind the engine's."""
        decision = self.driven.do(command)
        events, effects = list(decision.events), list(decision.effects)
        if forge is not None:
            forge(events, effects)
        inspect(self.record, events, effects, command, self.driven.now - late_ms)
        return self

    def show(self, *events: Event, cause: c.Command | None = None) -> Watching:
        """A commit that the kernel never made."""
        for place, event in enumerate(events, start=1):
            event.seq = self.record.seq + place
        inspect(self.record, list(events), (), cause, self.driven.now)
        return self

    @property
    def rules(self) -> list[str]:
        """The rules that were broken, in order."""
        return [rule for rule, _ in self.record.complaints]

    def finish(self, token: int, output: Any = None, forge: Forgery | None = None) -> Watching:
        visit = self.driven.state.tokens[token]  # type: ignore[index]
        return self.do(c.FinishAttempt(visit.id, visit.attempt, output, worker=visit.worker), forge)


def watching(document: dict[str, Any], input: Any = None, *others: ExecutionGraph) -> Watching:
    """A run of a definition, started."""
    watched = Watching(graph_of(document), *others)
    return watched.do(c.StartRun(run=watched.driven.state.run, input=input))


def without(*kinds: type[Event], but: int = 0) -> Forgery:
    """Hide every event of these kinds, all `but` the first so many."""

    def forge(events: list[Event], _effects: list[Effect]) -> None:
        hidden = [event for event in events if isinstance(event, kinds)][but:]
        events[:] = [event for event in events if event not in hidden]
        renumber(events)

    return forge


def without_effect(kind: type[Effect]) -> Forgery:
    def forge(_events: list[Event], effects: list[Effect]) -> None:
        effects[:] = [effect for effect in effects if not isinstance(effect, kind)]

    return forge


def twice(kind: type[Event]) -> Forgery:
    """The first event of a kind happens once more."""

    def forge(events: list[Event], _effects: list[Effect]) -> None:
        place = next(place for place, event in enumerate(events) if isinstance(event, kind))
        events.insert(place + 1, copied(events[place]))
        renumber(events)

    return forge


def changed(kind: type[Event], **fields: Any) -> Forgery:
    """Every event of a kind says something else."""

    def forge(events: list[Event], _effects: list[Effect]) -> None:
        for place, event in enumerate(events):
            if isinstance(event, kind):
                events[place] = copied(event)
                for name, value in fields.items():
                    setattr(events[place], name, value)

    return forge


def copied(event: Event) -> Event:
    return type(event)(**{name: getattr(event, name) for name in event.__struct_fields__})


def renumber(events: list[Event]) -> None:
    """A falsified history has no gap: the other rules shall find out."""
    first = events[0].seq if events else 0
    for place, event in enumerate(list(events)):
        events[place] = copied(event)
        events[place].seq = first + place
