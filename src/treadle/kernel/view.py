"""The view of a token's expressions: layered scopes, its branch, item variables, its error, its run and visit, and the
marking."""

from __future__ import annotations

from typing import Any

from treadle.expression.paths import MISSING, Path, get_in
from treadle.graph.execution_graph import ExecutionGraph
from treadle.kernel import standing
from treadle.kernel.group_state import Group
from treadle.kernel.identity import run_facts, visit_facts
from treadle.kernel.scope import Scope, overlaid, read
from treadle.kernel.state import RunState, Token
from treadle.model.errors import Error
from treadle.model.ids import Frame, Frames, GroupId, TokenId

Json = Any
_SCOPED = ("state", "output", "nodes")


class TokenView:
    """Implements `expression.view.View` over a run's state. Cheap to make: layers are looked up on first use."""

    __slots__ = ("_chain", "_extra", "_frames", "_last_error", "_state", "_token")

    def __init__(
        self,
        state: RunState,
        frames: Frames,
        last_error: Error | None = None,
        extra: dict[str, Json] | None = None,
        token: Token | None = None,
    ) -> None:
        self._state = state
        self._token = token
        self._frames = frames
        self._last_error = last_error
        self._extra = extra
        self._chain: list[Scope] | None = None

    @property
    def bytes_max(self) -> int:
        return self._state.graph.cel_bytes_max

    @property
    def chain(self) -> list[Scope]:
        """Scopes innermost first; branches that have written nothing have none."""
        if self._chain is None:
            self._chain = scope_chain(self._state, self._frames)
        return self._chain

    def get(self, path: Path) -> Json:
        if not path:
            return {name: self.root(name, None) for name in ("input", *_SCOPED)}
        root = path[0]
        if self._extra is not None and root in self._extra:
            return get_in(self._extra[str(root)], path[1:])
        if root in _SCOPED:
            return read(self.chain, path) if len(path) > 1 else self.root(str(root), None)
        return get_in(self.root(str(root), None), path[1:])

    def root(self, name: str, keys: frozenset[str] | None) -> Json:
        if self._extra is not None and name in self._extra:
            return self._extra[name]
        if name in _SCOPED:
            if keys is None:
                value = read(self.chain, (name,))
                return {} if value is MISSING else value
            found = {key: read(self.chain, (name, key)) for key in keys}
            return {key: value for key, value in found.items() if value is not MISSING}
        if name == "input":
            return self._state.input
        if name == "_last_error":
            return self._last_error.as_json() if self._last_error is not None else MISSING
        if name == "_branch":
            return branch_of(self._state, self._frames)
        if name == "_run":
            return run_facts(self._state)
        if name == "_visit":
            return visit_facts(self._state, self._token) if self._token is not None else MISSING
        return self._item_variable(name)

    def _item_variable(self, name: str) -> Json:
        for identity, index in reversed(self._frames):
            group = self._state.groups[identity]
            if group.items is not None and self._variable_of(group, index) == name:
                return group.items[index]
        return MISSING

    def _variable_of(self, group: Group, index: int) -> str | None:
        if not group.bounds:
            return group.item_var
        foreach = self._state.graph.transitions[transition_of(group, index)].definition.foreach
        return foreach.item_var if foreach is not None else None

    def tokens_at(self, node: str) -> int:
        item = item_of(self._state, self._frames)
        if item is None:
            return self._state.at_node.get(node, 0)
        members = standing.units_of(self._state.groups[item[0]], item[1])
        return sum(1 for unit in members if unit > 0 and self._state.tokens[TokenId(unit)].node == node)


def scope_chain(state: RunState, frames: Frames) -> list[Scope]:
    """The existing scopes around a token, innermost first."""
    chain = []
    for frame in reversed(frames):
        scope = state.scopes.get(frame)
        if scope is not None:
            chain.append(scope)
    chain.append(state.scopes[None])
    return chain


def item_of(state: RunState, frames: Frames) -> Frame | None:
    """A token's item: its innermost branch of an isolating replicated group, or the run (A0)."""
    for frame in reversed(frames):
        group = state.groups[frame[0]]
        if group.sites and group.replicated:  # named by a synchronization; inherited isolation is about state only
            return frame
    return None


def join_item(state: RunState, frames: Frames) -> Frame | None:
    """The item whose instance of a node's join a token meets. Stragglers that no join waits for meet only one
    another."""
    item = item_of(state, frames)
    inside = frames[frames.index(item) + 1 :] if item is not None else frames
    return next((frame for frame in inside if frame[1] in state.groups[frame[0]].abandoned), item)


def branch_of(state: RunState, frames: Frames) -> Json:
    """`_branch`: the innermost frame; its item is that of the innermost frame which has one."""
    if not frames:
        return MISSING
    frame = frames[-1]
    identity, index = frame
    group = state.groups[identity]
    return {
        "index": index,
        "total": group.total,
        "group": group_name(group),
        "fan_out_node_id": group.node,
        "fan_out_transition_id": transition_of(group, index) if group.transitions else None,
        "item": group.items[index] if group.items is not None else _item(state, frames[:-1]),
        "output": branch_output(state, frames, identity),
    }


def transition_of(group: Group, index: int) -> str:
    """The transition a branch of the group stems from."""
    if not group.bounds:
        return group.transitions[0]
    for name, bound in zip(group.transitions, group.bounds, strict=False):
        if index < bound:
            return name
    return group.transitions[0]


def races(graph: ExecutionGraph, group: Group, policy: str) -> bool:
    """Whether the first branch of the group to start, or to complete, makes the others superfluous."""
    transitions = [graph.transitions[name] for name in group.transitions]
    if group.names[0].startswith("node:"):  # a transition that makes a group of its own speaks for that one
        transitions = [t for t in transitions if not t.replicates and t.definition.sibling_group is None]
    return any(getattr(t.definition, policy) == "cancel_remaining" for t in transitions)


def group_name(group: Group) -> str:
    """The group's name for people: its declared name, else the transition or node it stems from."""
    return group.names[0].split(":", 1)[1]


def _item(state: RunState, frames: Frames) -> Json:
    for identity, index in reversed(frames):
        items = state.groups[identity].items
        if items is not None:
            return items[index]
    return None


def branch_output(state: RunState, frames: Frames, group: GroupId, rest: Path = ()) -> Json:
    """The values that this branch, and those inside it, have written since the group was opened, at `rest`: its
    overlays, innermost first."""
    if frames[-1][0] == group:
        scope = state.scopes.get(frames[-1])
        if scope is None:
            return None if rest else {}
        if len(rest) == 1 and (found := scope.own(rest[0])) is not MISSING:
            return found
        chain = [scope]
    else:
        inside = frames[standing.position(frames, group) :]
        chain = [scope for frame in reversed(inside) if (scope := state.scopes.get(frame)) is not None]
    value = overlaid(chain, ("state", *rest))
    if value is MISSING and rest:
        value = overlaid(chain, ("output", *rest))
    if value is MISSING:
        return None if rest else {}
    return value
