"""The scenario of a recorded run that has never begun, because a limit of its workflow stood in its way (6.7).

What stood in its way is not in its history. So as many other runs are started first as the limit lets, with the same
input and so with the same key; they take the room, and the recorded run waits behind them.
"""

from __future__ import annotations

from typing import Any

from treadle.model import events as e
from treadle.testing.recorded.past import RecordedRun

Json = Any

NAME = "recorded"
"""What such a run is called in its scenario."""


def never_began(recorded: RecordedRun) -> bool:
    """Whether a limit has kept the run from beginning, for now or for good."""
    if any(isinstance(event, e.TokenCreated) for event in recorded.history):
        return False
    first, limits = recorded.history[0], recorded.workflow
    if isinstance(first, e.RunQueued) and first.why in ("debounce", "batch"):
        return any(isinstance(event, e.RunCancelled) and event.by == "flow" for event in recorded.history)
    return limits.concurrency is not None or limits.rate is not None


def starts_before(recorded: RecordedRun, start: dict[str, Json]) -> list[dict[str, Json]]:
    """The steps after the first start: the others that take the room, then the recorded run itself."""
    limits = recorded.workflow
    room = limits.concurrency.limit if limits.concurrency is not None else 0
    if limits.rate is not None:
        room = max(room, limits.rate.burst or limits.rate.limit)
    other = {"workflow": start["workflow"], "input": start["input"]}
    return [*({"start": other} for _ in range(room - 1)), {"start": {**start, "as": NAME}}]


def held(recorded: RecordedRun) -> dict[str, list[dict[str, Json]]]:
    """Mocks by which the others keep their room: nothing that they begin ends."""
    return {ref: [{"hold": True}] for ref, node in recorded.workflow.nodes.items() if node.task is not None}


def steps_of(recorded: RecordedRun) -> list[dict[str, Json]]:
    """What became of the run while it waited: it was cancelled, by a person or for another start."""
    found: list[dict[str, Json]] = []
    now = recorded.history[0].at
    for event in recorded.history:
        if isinstance(event, e.RunCancelled) and event.by != "flow":
            if event.at > now:
                found.append({"advance_ms": event.at - now})
                now = event.at
            again = {"workflow": recorded.workflow.workflow, "input": recorded.started.input}
            replaced = event.by in ("concurrency", "debounce")
            found.append({"start": again} if replaced else {"cancel": "run", "run": NAME})
    last = recorded.history[-1].at
    return [*found, {"advance_ms": last - now} if last > now else {"settle": True}]
