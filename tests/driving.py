"""One run driven command by command through the pure kernel, in front of a world that keeps its books.

Owns the commands a test sends, the history they leave, and `Outside`: what the world was asked to do and has not done
yet, folded from the effects alone. Promises to use nothing of the engine but `decide`, `evolve` and the codec, so that
what a test finds out about the kernel is true of the kernel.
"""

from __future__ import annotations

from itertools import accumulate
from typing import Any

import msgspec

from treadle.graph.compile import compile_graph
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.decide import decide, decide_fork
from treadle.kernel.invariants import violations
from treadle.kernel.lifecycle import LIVE
from treadle.kernel.points import Past
from treadle.kernel.state import RunState, Token
from treadle.language import load_value
from treadle.model import commands as c
from treadle.model import effects as x
from treadle.model.codec import pack_events, unpack_events
from treadle.model.decision import Decision
from treadle.model.errors import Error
from treadle.model.events import Event
from treadle.model.ids import RUN_GATE, RunId, TimerId, TokenId
from treadle.model.states import RUN_ENDED, GateState, Mode, RunStatus, TokenState
from treadle.testing.scenario.log import render
from treadle.testing.world.projection import Projection

Json = Any

RUN = RunId("run-1")
BEGAN = 1_000
"""The instant a driven run starts at; not 0, which would hide a forgotten `now`."""
TASK = {"action": {"kind": "mock"}}
"""A node that is dispatched, for documents written in tests."""


def graph_of(document: dict[str, Json]) -> ExecutionGraph:
    """The graph of a definition as an author would write it; `workflow` may be left out."""
    return compile_graph(load_value({"workflow": "driven", **document}).require())


class Shelf:
    """A catalog: the deployed workflows of a test."""

    def __init__(self, *graphs: ExecutionGraph) -> None:
        self._graphs = {graph.workflow_name: graph for graph in graphs}

    def lookup(self, name: str, version: int | None) -> ExecutionGraph | None:
        found = self._graphs.get(name)
        return found.versions.get(version, found) if found is not None and version is not None else found


def versions_of(*graphs: ExecutionGraph) -> ExecutionGraph:
    """These graphs as versions 1, 2, … of one workflow; the first of them."""
    shelf: dict[int, ExecutionGraph] = {}
    for number, graph in enumerate(graphs, 1):
        graph.version, graph.versions = number, shelf
        shelf[number] = graph
    return graphs[0]


class Outside:
    """What the world was asked for and has not done yet."""

    def __init__(self) -> None:
        self.timers: dict[TimerId, int] = {}
        self.attempts: dict[TokenId, int] = {}
        self.gates: set[TokenId] = set()
        self.children: set[RunId] = set()
        self.said: list[x.Effect] = []
        """Every effect, in order."""

    def hear(self, effect: x.Effect) -> None:
        self.said.append(effect)
        match effect:
            case x.SetTimer(timer, due):
                self.timers[timer] = due
            case x.ClearTimer(timer):
                self.timers.pop(timer, None)
            case x.RunTask(token, attempt):
                self.attempts[token] = attempt
            case x.StopTask(token):
                self.attempts.pop(token, None)
            case x.OpenGate(token):
                self.gates.add(token)
            case x.CloseGate(token):
                self.gates.discard(token)
            case x.StartChild(_, child):
                self.children.add(child)
            case x.CancelChild(child):
                self.children.discard(child)

    def act(self, command: c.Command) -> None:
        """The world has done something and the run took notice: that it no longer owes."""
        match command:
            case c.FinishAttempt(token, attempt) | c.FailAttempt(token, attempt):
                if self.attempts.get(token) == attempt:
                    del self.attempts[token]
            case c.FireTimer(timer):
                self.timers.pop(timer, None)
            case c.EndChild(_, child):
                self.children.discard(child)


class Driven:
    """A run and all it has been through."""

    def __init__(self, graph: ExecutionGraph, catalog: Shelf | None = None) -> None:
        self.catalog = catalog or Shelf()
        self.state = RunState(graph)
        self.history: list[Event] = []
        self.blocks: list[bytes] = []
        """The history as it was packed when it was decided, a block per command."""
        self.commands: list[tuple[int, c.Command]] = []
        self.outside = Outside()
        self.now = BEGAN

    @property
    def graph(self) -> ExecutionGraph:
        """The graph the run goes by: that of another version once it was migrated."""
        return self.state.graph

    def do(self, command: c.Command) -> Decision:
        """One command, now."""
        self.commands.append((self.now, command))
        try:
            decision = decide(self.graph, self.state, command, self.now, self.catalog)
        except Exception as problem:
            problem.add_note(f"deciding {command}\n{self.log()}\nas a regression: {self.recipe(str(problem))}")
            raise
        if decision.events and decision.rejection is None:
            self.outside.act(command)
        self.history.extend(decision.events)
        self.blocks.append(pack_events(decision.events))
        for effect in decision.effects:
            self.outside.hear(effect)
        return decision

    @property
    def ends(self) -> list[int]:
        """The sequence numbers at which its decisions end."""
        counts = [len(unpack_events(block)) for block in self.blocks]
        return sorted(set(accumulate(counts)) - {0})

    def fork(self, run: RunId, **asked: Any) -> tuple[Driven, Decision]:
        """A fork of this run, and how it began."""
        forked = Driven(self.graph, self.catalog)
        forked.now = self.now
        history = [event for block in self.blocks for event in unpack_events(block)]
        command = c.ForkRun(run, origin=self.state.run, **asked)
        past = Past(history, self.ends)
        decision = decide_fork(self.graph, forked.state, command, past, forked.now, self.catalog)
        forked.history.extend(decision.events)
        forked.blocks.append(pack_events(decision.events))
        for effect in decision.effects:
            forked.outside.hear(effect)
        return forked, decision

    def start(self, input: Json = None, **given: Any) -> Driven:
        """Start the run; for chaining."""
        decision = self.do(c.StartRun(RUN, {} if input is None else input, **given))
        assert decision.rejection is None, decision.rejection
        return self

    @property
    def ended(self) -> bool:
        return self.state.status in RUN_ENDED

    def token(self, node: str, *branch: int) -> Token:
        """The one visit kept of a node, in the branch given by its last indexes."""
        found = self.tokens(node, *branch)
        assert len(found) == 1, f"{len(found)} visits fit {node}{list(branch)}\n{self.log()}"
        return found[0]

    def tokens(self, node: str, *branch: int) -> list[Token]:
        """Every visit kept of a node."""

        def fits(token: Token) -> bool:
            indexes = tuple(index for _, index in token.frames)
            return token.node == node and (not branch or indexes[-len(branch) :] == branch)

        return [token for token in self.state.tokens.values() if fits(token)]

    def finish(self, node: str, *branch: int, output: Json = None) -> Decision:
        """The task of a visit succeeds."""
        token = self.token(node, *branch)
        return self.do(c.FinishAttempt(token.id, token.attempt, {} if output is None else output, worker=token.worker))

    def fail(self, node: str, *branch: int, kind: str = "TASK_FAILED", retryable: bool = False) -> Decision:
        """The task of a visit fails."""
        token = self.token(node, *branch)
        error = Error(kind, "as told", retryable=retryable)
        return self.do(c.FailAttempt(token.id, token.attempt, error, worker=token.worker))

    def fire(self, purpose: str) -> Decision:
        """The earliest timer with this purpose falls due."""
        timers = [timer for timer in self.state.timers.values() if timer.purpose == purpose]
        assert timers, f"no {purpose} timer is set\n{self.log()}"
        timer = min(timers, key=lambda timer: timer.due)
        self.now = max(self.now, timer.due)
        return self.do(c.FireTimer(timer.id))

    def types(self) -> list[str]:
        """The history, types only."""
        return [event.type for event in self.history]

    def count(self, kind: str) -> int:
        return self.types().count(kind)

    def log(self) -> str:
        """The compact history, for a failing test to print."""
        projection = Projection()
        projection.apply(self.history)
        return "\n".join(render(projection, BEGAN))

    def recipe(self, why: str = "") -> str:
        """This run as a regression file (tests/property/regressions)."""
        definition = msgspec.to_builtins(self.graph.definition)
        commands = [[at, msgspec.to_builtins(command)] for at, command in self.commands]
        return msgspec.json.encode({"why": why, "definition": definition, "commands": commands}).decode()


def problems(driven: Driven) -> list[str]:
    """Everything that must hold between two commands and does not: the numbered invariants, and the world's books."""
    return [*violations(driven.graph, driven.state), *disagreements(driven)]


def disagreements(driven: Driven) -> list[str]:
    """Where what the world was asked to do is not what the state waits for."""
    state, outside = driven.state, driven.outside
    live = [token for token in state.tokens.values() if token.state in LIVE]
    answered = set(state.deferred)
    own = {RUN_GATE} if state.is_out_of_time else set()
    wanted = {
        "attempts": (
            {t.id: t.attempt for t in live if _is_worked_on(state, t) and t.id not in answered},
            outside.attempts,
        ),
        "gates": ({t.id for t in live if t.gate is GateState.OPEN} | own, outside.gates),
        "children": (
            {t.child for t in live if t.child is not None} | _undoing(state),
            outside.children | _undoing(state),
        ),
    }
    if state.status is not RunStatus.PAUSED:
        wanted["timers"] = ({timer.id: timer.due for timer in state.timers.values()}, outside.timers)
    return [
        f"the state has {name} {ours}, the world {theirs}" for name, (ours, theirs) in wanted.items() if ours != theirs
    ]


def _is_worked_on(state: RunState, token: Token) -> bool:
    node = state.graph.nodes[token.node]
    works = token.mode is Mode.COMPENSATION or (node.task is not None and node.suspends is None)
    return works and token.state in (TokenState.DISPATCHED, TokenState.EXECUTING)


def _undoing(state: RunState) -> set[RunId]:
    record = state.records.get(state.compensating) if state.compensating is not None else None
    return {record.child} if record is not None and record.child is not None else set()
