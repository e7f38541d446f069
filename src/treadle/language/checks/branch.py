"""Reads of `_branch` where no group is around the token, so that there is none.

A forward may-analysis of whole stacks of groups, exact as long as no loop enters a fan-out again and again. Where one
does (a stack deeper than `DEPTH_MAX`, or too many stacks) nothing is reported.
"""

from __future__ import annotations

from treadle.errors import ExpressionError
from treadle.language.checks.dataflow import asked_paths
from treadle.language.checks.expressions import compiled_use
from treadle.language.checks.flow import Flow
from treadle.language.checks.groups import is_node_group, makes_group
from treadle.language.checks.uses import Form, Sees, Use, When, uses_of
from treadle.language.phrases import is_computed
from treadle.language.reading import Reading
from treadle.model.definition import Transition

Frame = tuple[str, ...]
"""The names a group answers to."""
Stack = tuple[Frame, ...]
"""Outermost first."""

DEPTH_MAX = 8
STACKS_MAX = 64
"""Stacks at one node. More than either bound is a loop that nests fan-outs, or a graph nobody draws by hand."""


def check(flow: Flow, reading: Reading) -> None:
    """BRANCH_OUTSIDE_GROUP where `_branch` is never there, BRANCH_MAYBE_ABSENT where it is on some paths only."""
    reads = [use for use in uses_of(flow) if _reads_branch(use, flow)]
    if not reads:
        return
    found = stacks(flow)
    for use in reads:
        if use.when is When.END:
            _never(use, "the run's output belongs to no branch", reading)
        elif found is None or use.node not in flow.live:
            continue
        elif not any(found[use.node]):
            _never(use, f"no fan-out leads to `{use.node}`, or a join has ended it", reading)
        elif () in found[use.node]:
            message = f"`_branch` is there only on some of the paths to `{use.node}`: on the others it is null"
            hint = "ask `has(_branch.index)` first, or use a node of its own"
            reading.problem_in("BRANCH_MAYBE_ABSENT", use.at, message, hint)


def _never(use: Use, why: str, reading: Reading) -> None:
    hint = "a group begins with `spawn_count`, `foreach` or a `sibling_group`, and ends at its join"
    message = f"there is no `_branch` here, so this is null or does not match: {why}"
    reading.problem_in("BRANCH_OUTSIDE_GROUP", use.at, message, hint)


def _reads_branch(use: Use, flow: Flow) -> bool:
    """Whether an expression's value depends on being in a branch."""
    computed = use.sees is Sees.OUTPUT and is_computed(use.value)
    if use.form is Form.JOIN or not (computed or (use.sees is Sees.RUN and use.when is not When.NEVER)):
        return False
    try:
        reads = compiled_use(use, flow).reads
    except ExpressionError:
        return False
    asked = [path[:1] for path in asked_paths(use.value)]
    return ("_branch",) not in asked and any(path[:1] == ("_branch",) for path in reads)


def stacks(flow: Flow) -> dict[str, set[Stack]] | None:
    """For each node the groups that may be around its tokens; None: too many to tell."""
    forks = {
        t.synchronization.sibling_group
        for _, t in flow.edges
        if t.synchronization is not None and is_node_group(flow, t.synchronization.sibling_group)
    }
    found: dict[str, set[Stack]] = {ref: set() for ref in flow.workflow.nodes}
    for ref in flow.workflow.start:
        found[ref].add(())
    todo = list(flow.workflow.start)
    while todo:
        ref = todo.pop()
        for _, transition in flow.out[ref]:
            arriving = {stack for before in found[ref] for stack in _across(before, transition, ref in forks)}
            if flow.workflow.nodes[transition.to].join is not None:  # keeps the frames that all consumed tokens share
                arriving |= {stack[:length] for stack in arriving for length in range(len(stack))}
            known = found[transition.to]
            if arriving <= known:
                continue
            known |= arriving
            if len(known) > STACKS_MAX or any(len(stack) > DEPTH_MAX for stack in arriving):
                return None
            todo.append(transition.to)
    return found


def _across(stack: Stack, transition: Transition, forks: bool) -> set[Stack]:
    """The stack of a token that has taken the transition: with the groups it begins, without those the join ends."""
    if forks:
        stack = (*stack, (transition.from_,))
    if makes_group(transition):
        names = (transition.id, transition.sibling_group)
        stack = (*stack, tuple(name for name in names if name is not None))
    sync = transition.synchronization
    if sync is None:
        return {stack}
    for depth in range(len(stack) - 1, -1, -1):
        if sync.sibling_group in stack[depth]:
            return {stack[:depth], stack} if sync.on_early_complete == "pass_through" else {stack[:depth]}
    return {stack}
