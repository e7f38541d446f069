"""Ids are types. Nothing here makes one: run ids arrive with commands, the rest are counted by the run's own state."""

from __future__ import annotations

from typing import NewType

RunId = NewType("RunId", str)
TokenId = NewType("TokenId", int)
"""Also the id of the visit, its gate and its external task: counted from 1 within a run."""
GroupId = NewType("GroupId", int)
ArrivalId = NewType("ArrivalId", int)
TimerId = NewType("TimerId", int)
RecordId = NewType("RecordId", int)

Frame = tuple[GroupId, int]
"""(group instance, branch index)."""
Frames = tuple[Frame, ...]
"""A token's stack of frames, outermost first."""


def dispatch_key(run: RunId, token: TokenId, attempt: int) -> str:
    """The stable idempotency key of one attempt (run, visit, attempt)."""
    return f"{run}:{token}:{attempt}"
