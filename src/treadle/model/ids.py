"""The types of ids. Nothing here makes one: run ids arrive with commands, and the run's own state counts the others."""

from __future__ import annotations

from typing import NewType

RunId = NewType("RunId", str)
TokenId = NewType("TokenId", int)
"""Also the id of the visit, its gate and its external task: counted from 1 within a run."""
RUN_GATE = TokenId(0)
"""The gate of a run that is out of time (`on_timeout: human_gate`): somebody extends or aborts the run."""
GroupId = NewType("GroupId", int)
ArrivalId = NewType("ArrivalId", int)
TimerId = NewType("TimerId", int)
RecordId = NewType("RecordId", int)

Frame = tuple[GroupId, int]
"""(group instance, branch index)."""
Frames = tuple[Frame, ...]
"""A token's stack of frames, outermost first."""


def visit_key(run: RunId, token: TokenId, retries: int) -> str:
    """The idempotency key of a visit's work (2.1): the same in every automatic retry and after a lost worker. Each
    operator's retry (`retries` of them so far) makes a new one."""
    return f"{run}:{token}:{retries + 1}"


def attempt_name(run: RunId, token: TokenId, attempt: int) -> str:
    """The name of one attempt, different from every other attempt of the visit: the id of a message that is sent for
    it."""
    return f"{run}:{token}:{attempt}"
