"""Checks of the graph's shape: cycles that nothing ends (A11), and nodes that nothing reaches."""

from __future__ import annotations

from treadle.language.checks.flow import Flow
from treadle.language.reading import Reading
from treadle.model.definition import Transition


def check(flow: Flow, reading: Reading) -> None:
    """CYCLE, UNREACHABLE_NODE."""
    _cycles(flow, reading)
    if flow.workflow.start:
        _unreachable(flow, reading)


def _unreachable(flow: Flow, reading: Reading) -> None:
    for ref in flow.workflow.nodes:
        if ref not in flow.live:
            message = f"no run can get to the node `{ref}`"
            hint = "lead a transition to it, or name it in `start`"
            reading.problem_in("UNREACHABLE_NODE", ("nodes", ref), message, hint)


def _cycles(flow: Flow, reading: Reading) -> None:
    """Report cycles none of whose transitions has a loop, a condition or a trigger: they go round for ever."""
    told: set[str] = set()
    circling = _circling(flow)
    for index, transition in flow.edges:
        if _bounded(transition) or transition.from_ in told or not circling >= {transition.from_, transition.to}:
            continue
        cycle = _way(flow, transition.to, transition.from_)
        if cycle is not None:
            told.update(cycle)
            around = " → ".join([transition.from_, *cycle])
            message = f"the cycle {around} never ends"
            hint = "give one of its transitions a `condition`, a `trigger` or `loop: {max_iterations: …}`"
            if not reading.cycles_allowed:
                hint = "a canvas has no cycles: take one of its edges away"
            reading.problem_in("CYCLE", ("transitions", index), message, hint)


def _circling(flow: Flow) -> set[str]:
    """The nodes on cycles of unbounded transitions: those left when nodes without such an inbound transition are
    removed, again and again."""
    inbound = dict.fromkeys(flow.workflow.nodes, 0)
    for _, transition in flow.edges:
        inbound[transition.to] += not _bounded(transition)
    gone = [ref for ref, count in inbound.items() if not count]
    for ref in gone:
        for _, transition in flow.out[ref]:
            if not _bounded(transition):
                inbound[transition.to] -= 1
                if not inbound[transition.to]:
                    gone.append(transition.to)
    return flow.workflow.nodes.keys() - set(gone)


def _bounded(transition: Transition) -> bool:
    return (
        transition.condition is not None or transition.loop_max_iterations is not None or transition.trigger is not None
    )


def _way(flow: Flow, start: str, goal: str) -> list[str] | None:
    """The shortest way over unbounded transitions, both ends included."""
    before: dict[str, str | None] = {start: None}
    todo = [start]
    for ref in todo:
        if ref == goal:
            way = [ref]
            while (previous := before[way[-1]]) is not None:
                way.append(previous)
            return way[::-1]
        for _, transition in flow.out[ref]:
            if not _bounded(transition) and transition.to not in before:
                before[transition.to] = ref
                todo.append(transition.to)
    return None
