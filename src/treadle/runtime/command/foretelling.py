"""Answers commands to runs that have ended, while no engine runs.

Owns the answer that the next engine would give. A request is kept for that engine, and its sender goes away; a command
that an ended run refuses is refused at once, while the sender is still there. Must not change anything.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from treadle.kernel.decide import decide
from treadle.kernel.migration_outputs import HistoryNeeded
from treadle.kernel.state import RunState
from treadle.model.commands import Command
from treadle.model.ids import RunId
from treadle.model.states import RUN_ENDED
from treadle.runtime.coordinate.library import Library, VersionMissing
from treadle.store.port import InboxAnswer, RunQuery, Store
from treadle.store.rows import shard_of

INBOX_MAX = 10_000
"""Unanswered requests that are searched for one to the same run."""

ReadState = Callable[[RunId], Awaitable[RunState | None]]


async def foretold(
    store: Store, run: RunId, command: Command, now: int, library: Library, read: ReadState
) -> InboxAnswer | None:
    """The answer to a command that cannot change an ended run; None: the command must be kept. A request that waits
    for the same run, such as a retry, may open the run before the command is read."""
    rows = await store.find_runs(RunQuery(run=run))
    if not rows or rows[0].status not in RUN_ENDED:
        return None
    waiting = await store.inbox(shard_of(run, store.shards), INBOX_MAX)
    if any(request.run == run for request in waiting):
        return None
    state = await read(run)
    if state is None:
        return None
    try:
        decision = decide(state.graph, state, command, now, library)
    except (VersionMissing, HistoryNeeded):
        return None
    if decision.events or decision.effects:
        return None
    return InboxAnswer("", decision.rejection, result=False)
