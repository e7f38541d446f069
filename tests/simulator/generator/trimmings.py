"""What may be put on any finished sketch: retries, deadlines, failure edges, compensation, critical sections,
cancellation, group actions, entity moves. Each is drawn per node or transition and needs no shape of its own."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.simulator.generator.conditions import compare
from tests.simulator.generator.contents import task, work
from tests.simulator.generator.sketch import Fields, Sketch
from treadle.model.definition import (
    Cancels,
    Compensation,
    EntityMove,
    EntityMoves,
    Mutex,
    Retry,
    Synchronization,
)


def trim(s: Sketch) -> None:
    """Draw everything the plan allows."""
    for name, trimming in _TRIMMINGS:
        if s.plan.has(name):
            trimming(s)


def _working(s: Sketch) -> list[Fields]:
    """Nodes that have a task, the first node foremost."""
    return [fields for fields in s.nodes.values() if fields.get("task") is not None]


def _retry(s: Sketch) -> None:
    for fields in _working(s):
        if s.draw.chance(0.5):
            fields["retry"] = retry(s)


def retry(s: Sketch) -> Retry:
    """A small retry policy."""
    return Retry(
        max_attempts=s.draw.between(2, 3),
        backoff=s.draw.pick(("none", "linear", "exponential")),
        initial_delay_ms=s.draw.pick((0, 10, 50)),
    )


def _timeout(s: Sketch) -> None:
    for fields in _working(s):
        if s.draw.chance(0.4):
            fields["timeout_ms"] = s.draw.pick((20, 150, 400))


def _failure_edge(s: Sketch) -> None:
    for ref in [ref for ref, fields in s.nodes.items() if ref not in s.spared and fields]:
        if not s.draw.chance(0.3):
            continue
        handler = work(s)
        fields: dict[str, Any] = {"on": "failure"}
        if s.draw.chance(0.3):
            fields["condition"] = compare("_last_error.kind", "!=", "TASK_TIMEOUT")
        s.edge(ref, handler, **fields)
        following = [e for e in s.out(ref) if not e.keys() & {"on", "trigger", "loop_max_iterations"}]
        if following and s.draw.chance(0.7):
            way = s.draw.pick(following)
            s.join(handler, way["to"], way.get("synchronization"))
    for edge in s.edges:
        if not edge.keys() & {"on", "trigger"} and s.draw.chance(0.05):
            edge["on"] = "always"


def _compensate(s: Sketch) -> None:
    for fields in _working(s):
        if s.draw.chance(0.5):
            fields["compensate"] = Compensation(
                task=task("mock"),
                input_mapping={"v": "$.output.v"} if s.draw.chance(0.5) else None,
                retry=retry(s) if s.draw.chance(0.3) else None,
                timeout_ms=s.draw.pick((None, 100)),
            )
            fields["compensate_on_failure"] = s.draw.chance(0.2)


def _mutex(s: Sketch) -> None:
    keep = s.draw.chance(0.4)
    for fields in s.nodes.values():
        if s.draw.chance(0.35):
            fields["mutex"] = Mutex(name=s.draw.pick(("m1", "m1", "m2")), keep=keep)


def _terminate(s: Sketch) -> None:
    ref = s.draw.pick(list(s.nodes))
    if ref != "n0":
        s.nodes[ref]["terminates"] = s.draw.pick(("completed", "cancelled", "failed"))


def _cancels(s: Sketch) -> None:
    joined = [
        e["synchronization"].sibling_group for e in s.edges if isinstance(e.get("synchronization"), Synchronization)
    ]
    groups = sorted({*s.groups, *joined})
    for edge in s.edges:
        if s.draw.chance(0.12):
            edge["cancels"] = Cancels(
                nodes=s.draw.some(list(s.nodes), 0.2),
                groups=s.draw.some(groups, 0.4),
                join=s.draw.pick(("fire", "drop")),
            )


def _group_actions(s: Sketch) -> None:
    """A member lets its open group grow, or closes it."""
    for group in s.open_groups:
        fields = _member(s, group)
        if fields is not None and s.draw.chance(0.5):
            config: dict[str, Any] = s.draw.pick(({"items": [7]}, {"count": 1}, {"count": 2}))
            grow = task("add_siblings", group=group, **config)
            _replace_work(fields, grow if s.draw.chance(0.7) else task("close_group", group=group))


def _withdraw_group(s: Sketch) -> None:
    """A member, or somebody elsewhere, withdraws a group."""
    for group in s.groups:
        fields = _member(s, group) if s.draw.chance(0.8) else s.draw.pick(_working(s)[1:] or [None])
        if fields is not None and s.draw.chance(0.15):
            _replace_work(fields, task("cancel_group", group=group, join=s.draw.pick(("fire", "drop"))))


def _member(s: Sketch, group: str) -> Fields | None:
    working = [s.nodes[ref] for ref in s.inside.get(group, ()) if s.nodes[ref].get("task") is not None]
    return s.draw.pick(working) if working else None


def _replace_work(fields: Fields, action: Any) -> None:
    for name in ("queue", "concurrency"):
        fields.pop(name, None)
    fields["task"] = action


def _entity(s: Sketch) -> None:
    for fields in s.nodes.values():
        if s.draw.chance(0.3):
            fields["entity"] = EntityMoves(
                on_success=_move(s) if s.draw.chance(0.5) else None,
                on_failure=_move(s) if s.draw.chance(0.5) else None,
            )


def _move(s: Sketch) -> EntityMove:
    return EntityMove(
        section=s.draw.pick((None, "done", "trash")),
        complete_as=s.draw.pick((None, None, "success", "failure")),
        set_type=s.draw.pick((None, "converted")),
    )


_TRIMMINGS: tuple[tuple[str, Callable[[Sketch], None]], ...] = (
    ("open_group", _group_actions),
    ("native", _withdraw_group),
    ("failure_edge", _failure_edge),
    ("retry", _retry),
    ("timeout", _timeout),
    ("compensate", _compensate),
    ("mutex", _mutex),
    ("terminate", _terminate),
    ("cancels", _cancels),
    ("entity", _entity),
)
