"""One command being decided: the transient record that every rule writes into.

Owns the order of things. A rule *records* an event (`recording`), which is folded into the state at once, so the next
rule sees it, and asks for *effects*. It puts tokens that may begin on `ready`, groups whose joins may have changed on
`dirty`, and groups without a branch on `empty`: each of those stands for a token to come and is looked at before
anything else. `decide` works all three off until nothing is left to decide.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Protocol

from treadle.graph.execution_graph import ExecutionGraph, GraphNode
from treadle.kernel.members import RUNNING
from treadle.kernel.recording_changes import ChangeRecording
from treadle.kernel.state import RunState, Token
from treadle.kernel.view import TokenView
from treadle.model.effects import Effect
from treadle.model.errors import Error, FieldProblem, Rejection
from treadle.model.ids import Frame, Frames, GroupId, TokenId


class Catalog(Protocol):
    """The deployed workflows a run may call."""

    def lookup(self, name: str, version: int | None) -> ExecutionGraph | None:
        """The graph of a version, the newest for None."""


CancelGroups = Callable[["Deciding", str, Frames, str, str, int], int]
"""The rule of `kernel.cancel_groups`. `fan_out` needs it and cannot import it: cancelling a group completes its joins,
a join that fails takes failure transitions, and `fan_out` carries those out. `decide` hands it in."""


class Refused(Exception):
    """A command cannot be carried out. Raised before anything was recorded; becomes a `Rejection`."""

    def __init__(self, kind: str, message: str, problems: tuple[FieldProblem, ...] = ()) -> None:
        super().__init__(message)
        self.rejection = Rejection(kind, message, problems)


class RunFails(Exception):
    """The run fails as a whole: a failure nothing handles, or a limit that forbids a dispatch (2.2)."""

    def __init__(self, error: Error, *, own: bool = True, undo: bool = True) -> None:
        super().__init__(error.message)
        self.error = error
        self.own = own
        """False: a visit or a fan-in has failed, and that may be retried."""
        self.undo = undo
        """False: it was never let in (6.7), so it has done nothing that would be undone."""


class Deciding(ChangeRecording):
    """See the module's docstring."""

    __slots__ = (
        "_youngest",
        "cancel_groups",
        "carries",
        "catalog",
        "dirty",
        "effects",
        "empty",
        "graph",
        "inherited",
        "items",
        "ready",
        "rejection",
    )

    def __init__(
        self, graph: ExecutionGraph, state: RunState, now: int, catalog: Catalog, cancel_groups: CancelGroups
    ) -> None:
        self.state = state
        self.now = now
        self.events = []
        self.because = 0
        self.graph = graph
        self.catalog = catalog
        self.cancel_groups = cancel_groups
        self.effects: list[Effect] = []
        self.ready: deque[TokenId] = deque()
        self.dirty: set[GroupId] = set()
        self._youngest: list[int] = []
        self.empty: list[GroupId] = []
        self.items: dict[Frame, None] = {}
        """Branches in which something has moved: node joins are kept per item."""
        self.rejection: Rejection | None = None
        self.carries = False
        """Answers that came during a pause are being applied: what an operator has edited meanwhile stays (6.4)."""
        self.inherited = False
        """The answer being applied came before the run was forked: the work is another run's to undo (6.3)."""

    def effect(self, effect: Effect) -> None:
        """Ask the runtime for something. It happens once the decision is durable."""
        self.effects.append(effect)

    def mark(self, group: GroupId) -> None:
        """Note that the joins of this group must be evaluated."""
        if group not in self.dirty:
            self.dirty.add(group)
            heappush(self._youngest, -group)

    def next_dirty(self) -> GroupId:
        """The next group to evaluate, innermost first: the join around an inner join still waits for it. An inner group
        is always younger than the one around it."""
        group = GroupId(-heappop(self._youngest))
        self.dirty.remove(group)
        return group

    def forget_marks(self) -> None:
        """Forget all groups to be evaluated, because the run is over."""
        self.dirty.clear()
        self._youngest.clear()

    def node(self, token: Token) -> GraphNode:
        """The node the token is at."""
        return self.graph.nodes[token.node]

    def view(self, token: Token) -> TokenView:
        """The data that the token's expressions read."""
        return TokenView(self.state, token.frames, token.last_error, None, token)

    def touch(self, frames: Frames) -> None:
        """Note that something has moved inside these branches, so the joins around it must be evaluated."""
        groups = self.state.groups
        if self.graph.join_nodes:
            self.items.update(dict.fromkeys(frames))
        for identity, _ in reversed(frames):
            if identity not in self.dirty:
                group = groups[identity]
                if group.sites or group.max_in_flight is not None or group.open:
                    self.mark(identity)

    @property
    def running(self) -> bool:
        """Whether forward work may begin."""
        return self.state.status is RUNNING
