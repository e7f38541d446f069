"""`concurrency: {limit, key?}`: how many visits of a node are worked on at a time, across runs (1.2).

Owns who works and who waits in line, in order of arrival. In memory only: an engine that recovers hands everything out
anew and fills the slots again.
"""

from __future__ import annotations

from collections import defaultdict, deque

import msgspec

from treadle.expression.sources import compile_source
from treadle.kernel.state import RunState, Token
from treadle.kernel.view import TokenView
from treadle.model import events as e
from treadle.model.ids import RunId, TokenId
from treadle.store.port import OutboxRow

Visit = tuple[RunId, TokenId]
Slot = tuple[str, str, bytes]
"""(workflow, node, key)."""

ENDINGS = (e.TokenCompleted, e.TokenFailed, e.TokenTimedOut, e.TokenCancelled, e.TokenRetryScheduled, e.TokenWaiting)
"""An attempt is over with any of these."""


class Slots:
    """See the module's docstring."""

    def __init__(self) -> None:
        self._working: dict[Visit, Slot] = {}
        self._line: defaultdict[Slot, deque[OutboxRow]] = defaultdict(deque)

    def take(self, state: RunState, token: Token, row: OutboxRow) -> bool:
        """Whether work may begin now; if not, its row waits in line."""
        slot, limit = _slot(state, token)
        if limit is None or (state.run, token.id) in self._working:
            return True
        if list(self._working.values()).count(slot) >= limit:
            self._line[slot].append(row)
            return False
        self._working[state.run, token.id] = slot
        return True

    def free(self, run: RunId, event: e.Event) -> OutboxRow | None:
        """Something has happened in a run: whose turn it is now, if that ended somebody's work."""
        if not isinstance(event, ENDINGS):
            return None
        slot = self._working.pop((run, event.token), None)
        return self._line[slot].popleft() if slot is not None and self._line[slot] else None


def _slot(state: RunState, token: Token) -> tuple[Slot, int | None]:
    concurrency = state.graph.nodes[token.node].definition.concurrency
    if concurrency is None:
        return ("", "", b""), None
    key = compile_source(concurrency.key).evaluate(TokenView(state, token.frames, token.last_error))
    return (state.graph.workflow_name, token.node, msgspec.json.encode(key)), concurrency.limit
