"""The causes of a failed fan-in or of a failed call of a child run, as data and as text (2.14).

Promises that an error stays small however many failures are behind it: `CAUSES_MAX` causes side by side, `DEPTH_MAX`
levels of them, and clipped messages. The history has every failure in full.
"""

from __future__ import annotations

from heapq import nsmallest

import msgspec

from treadle.expression.words import clip
from treadle.kernel.group_state import Group
from treadle.model.errors import Cause, Error
from treadle.model.ids import RunId

CAUSES_MAX = 3
"""Branches that fail mostly have the same reason."""
DEPTH_MAX = 3
"""Levels: a fan-in inside a fan-in inside a child. With three causes each that is at most 39, some 20 KB."""
MESSAGE_MAX = 500
"""Characters of a cause's message."""
SAID_MAX = 200
"""Characters of a cause's message inside the message of the error it has caused."""


def with_branches(error: Error, group: Group) -> Error:
    """A fan-in's error with the errors of its failed branches as causes, by branch index. Without failed branches the
    error is returned as it is."""
    failed = group.failed
    if not failed:
        return error
    causes = tuple(_cause(failed[branch], branch) for branch in nsmallest(CAUSES_MAX, failed))
    more = len(failed) - len(causes)
    link = ": " if error.kind == "BRANCH_FAILED" else f"; {len(failed)} failed: "
    text = f"{error.message}{link}{_said(causes, more)}"
    return msgspec.structs.replace(error, message=text, causes=causes, more_causes=more)


def _said(causes: tuple[Cause, ...], more: int) -> str:
    """`'judge' (branches 0, 2) with TASK_FAILED: no such model, and 4 more`"""
    texts: dict[str, list[str]] = {}
    for cause in causes:
        texts.setdefault(f"with {cause.kind}: {clip(cause.message, SAID_MAX)}", []).append(_place(cause))
    said = [f"{', '.join(places)} {text}" for text, places in texts.items()]
    return "; ".join(said) + (f"; and {more} more" if more else "")


def _place(cause: Cause) -> str:
    return f"{cause.node!r} (branch {cause.branch})" if cause.node is not None else f"branch {cause.branch}"


def of_child(child: RunId, workflow: str | None, status: str, error: Error | None) -> Error:
    """The error of a call whose child run has not completed: the child's workflow, the node it failed at, and why."""
    name = f" of workflow {workflow!r}" if workflow else ""
    if error is None:
        return Error("SUBWORKFLOW_FAILED", f"child run {child}{name} ended {status}")
    place = f" at {error.node!r}" if error.node is not None else ""
    text = f"child run {child}{name} ended {status}{place} with {error.kind}: {clip(error.message, MESSAGE_MAX)}"
    cause = msgspec.structs.replace(_cause(error), run=child, workflow=workflow)
    return Error("SUBWORKFLOW_FAILED", text, causes=(cause,))


def _cause(error: Error, branch: int | None = None) -> Cause:
    return Cause(
        error.kind,
        clip(error.message, MESSAGE_MAX),
        error.node,
        error.path,
        branch,
        causes=_pruned(error.causes, DEPTH_MAX - 1),
        more_causes=error.more_causes,
    )


def _pruned(causes: tuple[Cause, ...], levels: int) -> tuple[Cause, ...]:
    """The causes, cut off below so many levels."""
    if not levels:
        return ()
    return tuple(
        msgspec.structs.replace(cause, causes=_pruned(cause.causes, levels - 1)) if cause.causes else cause
        for cause in causes
    )
