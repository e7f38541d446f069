"""Writing a visit's output into its scope: the output mapping, checked as a whole before anything is written (2.4)."""

from __future__ import annotations

from typing import Any

from treadle.errors import EvaluationError
from treadle.expression.paths import MISSING, Path, get_in
from treadle.expression.values import json_equal
from treadle.graph.execution_graph import GraphNode
from treadle.kernel.deciding import Deciding
from treadle.kernel.defined import defining
from treadle.kernel.evolve_tokens import scope_frame
from treadle.kernel.scope import Scope, read
from treadle.kernel.short_ways.writes import plucked
from treadle.kernel.state import Token
from treadle.kernel.view import TokenView, scope_chain
from treadle.model.errors import Error
from treadle.model.events import Write
from treadle.model.ids import Frame, Frames

Json = Any


class BadOutput(Exception):
    """An output mapping that cannot be carried out: the token fails."""

    def __init__(self, error: Error) -> None:
        super().__init__(error.message)
        self.error = error


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

    @property
    def bytes_max(self) -> int:
        return self._view.bytes_max

    def tokens_at(self, node: str) -> int:
        return self._view.tokens_at(node)


def apply_output(d: Deciding, token: Token, output: Json) -> None:
    """Write the values of `output_mapping`, and keep the whole output if some expression reads it."""
    node = d.graph.nodes[token.node]
    defined = node if token.under is None else defining(d.state, token)
    frames = token.frames
    scope = scope_frame(d.state, frames) if frames else None
    if defined.plucks is not None and d.graph.state_schema is None:
        writes = plucked(defined.plucks, output)
    else:
        writes = mapped(d, token, defined, scope, output)
    if d.carries and d.state.edited:
        writes = _under_edits(d, scope, writes)
    if node.read:
        writes.append((("nodes", node.ref, "output"), output))
    branch = _unjoined_branch(d, frames, scope) if frames and frames[-1] is not scope else None
    if branch is not None:
        _report_conflicts(d, token, writes, scope, branch)
    d.context_updated(writes, scope, token.id, branch)


def _under_edits(d: Deciding, scope: Frame | None, writes: list[Write]) -> list[Write]:
    """The writes of an answer that came during a pause, as if it had come before the operator's edits (6.4)."""
    places = [path for frame, path in d.state.edited if frame == scope]
    if not places:
        return writes
    chain = [d.state.scopes[scope]]
    found: list[Write] = []
    for write in writes:
        if any(write[0][: len(path)] == path for path in places):
            continue
        inside = [(path, read(chain, path)) for path in places if path[: len(write[0])] == write[0]]
        if not inside or _fits([write, *inside]):  # else the edit has a value where the answer leaves no room for it
            found += [write, *inside]
    return found


def _fits(writes: list[Write]) -> bool:
    """Whether the later writes find the places that the first one leaves them."""
    trial = Scope(overlay=False)
    try:
        for path, value in writes:
            trial.write(path, value)
    except EvaluationError:
        return False
    return True


def check_output(d: Deciding, token: Token, output: Json) -> None:
    """Raises BadOutput if this output of the visit cannot be mapped. Writes nothing."""
    node = d.graph.nodes[token.node]
    if node.outputs:
        mapped(d, token, node, scope_frame(d.state, token.frames), output)


def mapped(d: Deciding, token: Token, node: GraphNode, scope: Frame | None, output: Json) -> list[Write]:
    """The writes of a node's output mapping. Raises BadOutput."""
    view = _OutputView(TokenView(d.state, token.frames, None, None, token), output)
    try:
        writes: list[Write] = [(path, source.evaluate(view)) for path, source in node.outputs]
    except EvaluationError as problem:
        raise BadOutput(Error(problem.kind, f"output_mapping of {node.ref!r}: {problem}")) from None
    refusal = write_problem(d, token.frames, scope, writes)
    if refusal is not None:
        raise BadOutput(Error("SCHEMA", f"output_mapping of {node.ref!r}: {refusal}"))
    return writes


def write_problem(d: Deciding, frames: Frames, scope: Frame | None, writes: list[Write]) -> str | None:
    """The reason these writes cannot be made, or None: a path that does not fit, or the state schema.

    A write of a whole top-level key always fits; anything else is tried out on a twin of the scope first.
    """
    schema = d.graph.state_schema
    if schema is None and all(len(path) == 2 for path, _ in writes):
        return None
    existing = d.state.scopes.get(scope)
    trial = existing.copy() if existing is not None else Scope(overlay=scope is not None)
    try:
        for path, value in writes:
            trial.write(path, value)
    except EvaluationError as misfit:
        return str(misfit)
    if schema is None:
        return None
    outer = scope_chain(d.state, frames[: frames.index(scope)]) if scope is not None else []
    value = read([trial, *outer], ("state",))
    problem = schema.problem({} if value is MISSING else value)
    return f"state_schema: {problem}" if problem is not None else None


def merge_problem(d: Deciding, frames: Frames, writes: list[Write]) -> str | None:
    """As `write_problem`, for the writes of a join into the scope around its group."""
    return write_problem(d, frames, scope_frame(d.state, frames), [w for w in writes if w[0][0] != "nodes"])


def _unjoined_branch(d: Deciding, frames: Frames, scope: Frame | None) -> Frame | None:
    """The branch of a replicated group without a join through which a token writes into `scope`."""
    for frame in reversed(frames):
        if frame == scope:
            return None
        if d.state.groups[frame[0]].replicated:
            return frame
    return None


def _report_conflicts(d: Deciding, token: Token, writes: list[Write], scope: Frame | None, branch: Frame) -> None:
    chain = scope_chain(d.state, token.frames)
    for path, value in writes:
        writer = d.state.writers.get((scope, path))
        sibling = writer is not None and writer[0] == branch[0] and writer != branch
        if path[0] != "nodes" and sibling and not json_equal(read(chain, path), value):
            d.context_conflict(path, token.node)
