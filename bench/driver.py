"""The pure path as benches drive it: decide, fold, commit to the memory store, hand results straight back."""

from __future__ import annotations

from collections import deque
from typing import Any

from treadle.graph.compile import compile_graph
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel.decide import decide
from treadle.kernel.state import RunState
from treadle.language import load_value
from treadle.model.commands import Command, FinishAttempt, StartRun
from treadle.model.effects import RunTask
from treadle.model.ids import RunId
from treadle.store.memory import MemoryStore
from treadle.store.port import Batch, Commit, Fence
from treadle.testing.world.instant import instantly


class NoCatalog:
    """No workflow calls another here."""

    def lookup(self, _name: str, _version: int | None) -> ExecutionGraph | None:
        return None


def compiled(document: dict[str, Any]) -> ExecutionGraph:
    loaded = load_value(document, "bench")
    assert loaded.workflow is not None, loaded.problems
    return compile_graph(loaded.workflow)


class Driver:
    """One engine, one store. Results go straight back as commands, first come, first served."""

    def __init__(self) -> None:
        self.store = MemoryStore()
        fence = instantly(self.store.lease(0, "bench", 0, 10**12))
        assert fence is not None
        self.fence: Fence = fence
        self.catalog = NoCatalog()
        self.visits = 0

    def play(self, graph: ExecutionGraph, run: str, given: Any, output: Any) -> RunState:
        """A run from start to end; every task returns `output`."""
        state = RunState(graph)
        identity = RunId(run)
        commands: deque[Command] = deque([StartRun(identity, given)])
        done: list[int] = []
        while commands:
            seq = state.seq
            decision = decide(graph, state, commands.popleft(), 0, self.catalog)
            commit = Commit(identity, seq, decision.events, decision.effects, state.status)
            rows = instantly(self.store.commit(Batch((commit,), done), self.fence))
            for row in rows:
                if isinstance(row.effect, RunTask):
                    commands.append(FinishAttempt(row.effect.token, row.effect.attempt, output))
            done = [row.id for row in rows]
        instantly(self.store.commit(Batch(done=done), self.fence))
        self.visits += state.visits
        return state
