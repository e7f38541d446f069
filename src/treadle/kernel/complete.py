"""A visit's work has succeeded: apply its output, choose what follows, and end it or let it wait at a join."""

from __future__ import annotations

from typing import Any

from treadle.errors import EvaluationError
from treadle.expression.paths import Path, get_in
from treadle.graph.execution_graph import GraphTransition
from treadle.kernel import cancel, deliver, entity, fan_out, join, saga
from treadle.kernel.deciding import Deciding
from treadle.kernel.evolve_tokens import scope_frame
from treadle.kernel.failure import fail_token, write_problem
from treadle.kernel.finish import terminate
from treadle.kernel.route import Origin, RoutingFailed, choose, no_match
from treadle.kernel.scope import read
from treadle.kernel.state import Token
from treadle.kernel.view import TokenView, scope_chain
from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.events import Write
from treadle.model.ids import Frame
from treadle.model.states import Waiting

Json = Any


class _OutputView:
    """An output mapping's view: `$` is the task's output; CEL sees it as `output`, beside the token's scope."""

    __slots__ = ("_output", "_view")

    def __init__(self, view: TokenView, output: Json) -> None:
        self._view = view
        self._output = output

    def get(self, path: Path) -> Json:
        return get_in(self._output, path)

    def root(self, name: str, keys: frozenset[str] | None) -> Json:
        return self._output if name == "output" else self._view.root(name, keys)

    def tokens_at(self, node: str) -> int:
        return self._view.tokens_at(node)


def complete_visit(d: Deciding, token: Token, output: Json, tries: int = 0) -> None:
    """The visit's task has succeeded with this output."""
    node = d.node(token)
    if token.timers:
        cancel.clear_timers(d, token)
    problem = node.output_schema.problem(output) if node.output_schema is not None else None
    if problem is not None:
        fail_token(d, token, Error("SCHEMA", f"output of {node.ref!r}: {problem}"))
        return
    if node.outputs or node.read:
        try:
            apply_output(d, token, output)
        except BadOutput as bad:
            fail_token(d, token, bad.error)
            return
    if node.definition.terminates is not None:
        terminate(d, token, output, tries, node.definition.terminates)
        return
    if node.next is not None and d.state.entity is None and node.definition.compensate is None:
        _hop(d, token, node.next, output, tries)
        return
    holds = token.mutex if node.definition.mutex is not None and node.definition.mutex.keep else None
    origin = Origin(token.id, node, token.path, token.frames, token.loops, None, holds, True, output)
    try:
        firings = _chosen(d, token, origin)
    except RoutingFailed as failed:
        fail_token(d, token, failed.error)
        return
    if node.definition.compensate is not None:
        saga.record(d, token, output)
    if d.state.entity is not None:
        entity.outcome(d, node, token.id, success=True)
    _leave(d, token, origin, firings, output, tries)


def _hop(d: Deciding, token: Token, t: GraphTransition, output: Json, tries: int) -> None:
    """The commonest case, kept short: one unconditional way on, no group, no join, nothing to record."""
    origin = Origin(token.id, t.source, token.path, token.frames, token.loops)
    fan_out.check_tokens(d, origin, t, 1)
    d.emit(e.TokenCompleted(d.seq, d.now, token.id, output, tries))
    deliver.create(d, t.target, t, origin, token.frames, token.path, token.loops)
    if token.frames:
        d.touch(token.frames)


def _chosen(d: Deciding, token: Token, origin: Origin) -> list[fan_out.Firing]:
    node = origin.node
    if not node.success:
        return []
    view = TokenView(d.state, token.frames)
    matches = choose(d, view, node.success, origin)
    if not matches:
        if node.definition.on_no_match == "error":
            raise no_match(origin)
        return []
    return fan_out.plan(d, view, origin, matches)


def _leave(d: Deciding, token: Token, origin: Origin, firings: list[fan_out.Firing], output: Json, tries: int) -> None:
    """End the visit and dispatch, or dispatch and wait where a join holds it."""
    frames = token.frames
    at_join = any(f.transition.site is not None or f.transition.target.definition.join is not None for f in firings)
    if not at_join:
        d.emit(e.TokenCompleted(d.seq, d.now, token.id, output, tries))
        fan_out.carry_out(d, origin, firings)
    else:
        fan_out.carry_out(d, origin, firings)
        if token.arrivals:
            awaiting = _awaiting(d, token)
            detail = {"at": sorted({d.state.arrivals[a].target for a in token.arrivals})}
            d.emit(e.TokenWaiting(d.seq, d.now, token.id, Waiting.SIBLINGS, None, awaiting, output, detail))
        else:
            d.emit(e.TokenCompleted(d.seq, d.now, token.id, output, tries))
    if frames:
        d.touch(frames)
        if not firings:
            join.choose_by_end(d, frames)


def _awaiting(d: Deciding, token: Token) -> int | None:
    arrival = d.state.arrivals[token.arrivals[0]]
    if arrival.group is None:
        return None
    group = d.state.groups[arrival.group]
    return next(
        (
            join.live_branches(d, group, site)
            for site in group.sites
            if d.graph.sites[site.index].target.ref == arrival.target
        ),
        None,
    )


class BadOutput(Exception):
    """An output mapping that cannot be carried out: the token fails."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        self.error = error


def apply_output(d: Deciding, token: Token, output: Json) -> None:
    """Write what `output_mapping` says, and keep the output where some expression reads it."""
    node = d.node(token)
    writes: list[Write] = []
    if node.outputs:
        view = _OutputView(TokenView(d.state, token.frames), output)
        try:
            writes = [(path, source.evaluate(view)) for path, source in node.outputs]
        except EvaluationError as problem:
            raise BadOutput(Error("TASK_FAILED", f"output_mapping of {node.ref!r}: {problem}")) from None
        refusal = write_problem(d, token.frames, writes)
        if refusal is not None:
            raise BadOutput(Error("SCHEMA", f"output_mapping of {node.ref!r}: {refusal}"))
    if node.read:
        writes.append((("nodes", node.ref, "output"), output))
    scope = scope_frame(d.state, token.frames)
    branch = _unjoined_branch(d, token, scope)
    if branch is not None:
        _report_conflicts(d, token, writes, scope, branch)
    d.emit(e.ContextUpdated(d.seq, d.now, writes, scope, token.id, False, branch))


def _unjoined_branch(d: Deciding, token: Token, scope: Frame | None) -> Frame | None:
    """The branch of a replicated group without a join through which this token writes into `scope`."""
    for frame in reversed(token.frames):
        if frame == scope:
            return None
        if d.state.groups[frame[0]].replicated:
            return frame
    return None


def _report_conflicts(d: Deciding, token: Token, writes: list[Write], scope: Frame | None, branch: Frame) -> None:
    chain = scope_chain(d.state, token.frames)
    for path, value in writes:
        writer = d.state.writers.get((scope, path))
        if path[0] != "nodes" and writer is not None and writer != branch and read(chain, path) != value:
            d.emit(e.ContextConflict(d.seq, d.now, list(path), token.node))
