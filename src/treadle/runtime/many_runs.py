"""Questions and commands about many runs at once: a signal to all that wait for it, runs counted by status.

Owns how many runs are found and spoken to. Must not decide anything: each run decides for itself.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, cast

import uuid_utils

from treadle.graph.execution_graph import ExecutionGraph
from treadle.model import commands as c
from treadle.model.ids import RunId
from treadle.model.states import RunStatus
from treadle.runtime.command.commander import Commander
from treadle.runtime.coordinate.library import KIND
from treadle.runtime.given import given, named
from treadle.store.port import RunQuery
from treadle.store.service import ServiceStore

Json = Any

AT_ONCE = 32
"""Runs that are spoken to at the same time: enough to share commits, too few to push others aside."""
PAGE = 500
_SPOKEN_TO = (RunStatus.RUNNING, RunStatus.PAUSED)


class ManyRuns:
    """See the module's docstring. `Client` is one."""

    _commander: Commander

    async def signal_all(
        self,
        name: str,
        data: Json = None,
        *,
        key: Json = None,
        id: str | None = None,
        sees: Callable[[str], bool] | None = None,
    ) -> list[RunId]:
        """Sends a signal to every run that waits for it now, and returns those runs. If none does, nothing is kept.
        `sees`: only runs of such workflows. With the same `id` it counts once in each run."""
        named("signal", name)
        named("id of the signal", id)
        chosen = id or str(uuid_utils.uuid7())
        command = c.SendSignal(name, given("key", key), given("data", data), chosen, awaited=True)
        taken: list[RunId] = []
        async for page in self._that_may_wait(name, sees):
            for begin in range(0, len(page), AT_ONCE):
                part = page[begin : begin + AT_ONCE]
                answers = await asyncio.gather(*(self._commander.ask(run, command) for run in part))
                taken += [run for run, answer in zip(part, answers, strict=True) if answer.rejection is None]
        return taken

    async def run_counts(self, workflow: str | None = None, since: int | None = None) -> dict[str, dict[str, int]]:
        """Workflow → status → number of runs: of one workflow or of all, those started at `since` or later."""
        found: dict[str, dict[str, int]] = {}
        for one in await cast(ServiceStore, self._commander.store).count_runs(workflow, since):
            found.setdefault(one.workflow, {})[one.status.value] = one.runs
        return found

    async def _that_may_wait(self, signal: str, sees: Callable[[str], bool] | None) -> AsyncIterator[list[RunId]]:
        """Runs whose definition has something that waits for such a signal, a page at a time. The others are not
        even asked."""
        store, library = self._commander.store, self._commander.library
        for document in await store.documents(KIND):
            if sees is not None and not sees(document.name):
                continue
            waits: dict[int, bool] = {}
            after: RunId | None = None
            while True:
                query = RunQuery(workflow=document.name, statuses=_SPOKEN_TO, after=after, limit=PAGE)
                rows = await store.find_runs(query)
                for version in {row.version for row in rows} - waits.keys():
                    graph = await library.graph(document.name, version)
                    waits[version] = graph is not None and may_wait_for(graph, signal)
                yield [row.run for row in rows if waits[row.version]]
                if len(rows) < PAGE:
                    break
                after = rows[-1].run


def may_wait_for(graph: ExecutionGraph, signal: str) -> bool:
    """Whether something in a workflow can wait for a signal of this name: a trigger, or a `signal` action, whose name
    may be computed."""
    for t in graph.transitions.values():
        if t.definition.trigger is not None and t.definition.trigger.signal == signal:
            return True
    for node in graph.nodes.values():
        if node.suspends == "signal" and node.task is not None:
            wanted = node.task.steps[0].action.config.get("name")
            if wanted == signal or not isinstance(wanted, str) or wanted.startswith("$"):
                return True
    return False
