"""A recorded run: its history, the definition it ran by, and its children. Read through a client, of a store or of a
service."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field

from treadle.errors import CommandRefused
from treadle.model import events as e
from treadle.model.definition import Workflow
from treadle.model.ids import RunId
from treadle.runtime.client import Client


@dataclass(slots=True)
class RecordedRun:
    """See the module's docstring."""

    run: RunId
    workflow: Workflow
    history: list[e.Event]
    children: list[RecordedRun] = field(default_factory=list)
    called: list[Workflow] = field(default_factory=list)
    """Workflows it names in a call, as they are deployed now: a call may have failed before a child began."""
    ends: list[int] = field(default_factory=list)
    """The sequence numbers at which its decisions end."""
    versions: dict[int, Workflow] = field(default_factory=dict)
    """Other versions of its workflow that it was migrated to."""

    @property
    def started(self) -> e.Beginning:
        """Its start. Of a run that waits for its start: the event that says with what it will start."""
        first = self.history[0]
        assert isinstance(first, e.Beginning), "a history begins with the start of its run"
        return next((event for event in self.history if isinstance(event, e.RunStarted)), first)

    @property
    def began(self) -> int:
        """When the play of this run begins: with its start, or with what it had to wait for by itself."""
        first = self.history[0]
        collects = isinstance(first, e.RunQueued) and first.why in ("debounce", "batch")
        return first.at if collects else self.started.at

    def decision(self, event: e.Event) -> list[e.Event]:
        """All events of the decision that an event lies in."""
        if not self.ends:
            return [other for other in self.history if other.at == event.at]
        place = bisect_left(self.ends, event.seq)
        return self.history[self.ends[place - 1] if place else 0 : self.ends[place] if place < len(self.ends) else None]

    def without_child(self) -> frozenset[str]:
        """Nodes whose calls are played by their outcome alone: of one of them there is no recorded child."""
        nodes = {event.token: event.node for event in self.history if isinstance(event, e.TokenCreated)}
        known = {child.run for child in self.children}
        calls = [event for event in self.history if isinstance(event, e.ChildStarted)]
        return frozenset(nodes[event.token] for event in calls if event.run not in known)

    def family(self) -> Iterator[RecordedRun]:
        """The run, its children, and their children."""
        yield self
        for child in self.children:
            yield from child.family()

    def workflows(self) -> list[Workflow]:
        """The definitions of the family, one for each name; the one of this run wins over those of its children."""
        found = {workflow.workflow: workflow for run in self.family() for workflow in run.called}
        found |= {run.workflow.workflow: run.workflow for run in reversed(list(self.family()))}
        return list(found.values())


async def read_run(client: Client, run: str) -> RecordedRun:
    """A run with everything that is needed to play it again. Raises CommandRefused(NOT_FOUND)."""
    history = await client.run(run).history()
    first = next((event for event in history if isinstance(event, e.RunStarted)), history[0] if history else None)
    if not isinstance(first, e.Beginning) or not isinstance(history[0], e.Beginning):
        await client.run(run).info()  # raises if there is no such run
        raise LookupError(f"of run {run} only the end is kept: it cannot be played again")
    workflow = await client.definition(first.workflow, first.version)
    found = RecordedRun(RunId(run), workflow, history, ends=await client.run(run).decisions())
    for event in history:
        if isinstance(event, e.RunMigrated):
            for version in (event.from_, event.to):
                found.versions[version] = await client.definition(first.workflow, version)
    for event in history:
        if isinstance(event, e.ChildStarted):
            with suppress(CommandRefused, LookupError):  # deleted, or an item of a batch: the call itself is mocked
                found.children.append(await read_run(client, event.run))
    for name in called_by(workflow):
        if await client.deployed(name) is not None:
            found.called.append(await client.definition(name))
    return found


def called_by(workflow: Workflow) -> set[str]:
    """Names of workflows that its nodes call."""
    steps = [step for node in workflow.nodes.values() if node.task is not None for step in node.task.steps]
    names = [step.action.config.get("workflow") for step in steps if step.action.kind == "workflow_call"]
    return {name for name in names if isinstance(name, str) and not name.startswith("$")}
