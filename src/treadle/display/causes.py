"""What the branches of a join that failed have died of, in a few words: the join itself only says that too many did.

Owns how causes are counted and written, wherever a failed run is shown. Must not know who shows it.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from treadle.model import events as e
from treadle.model.errors import Error
from treadle.model.ids import Frames, TokenId

OF_BRANCHES = frozenset({"QUORUM_UNREACHABLE", "NO_SUCCESSFUL_BRANCH"})
"""Errors of a run that has failed because branches have."""
CAUSES_MAX = 3
"""Branches that fail have mostly the same reason; history has all of them."""


def counted(errors: Iterable[Error]) -> tuple[str, ...]:
    """`TASK_FAILED: no such model (3 times)`, the commonest first."""
    texts = Counter(f"{error.kind}: {error.message}" for error in errors)
    return tuple(f"{text} ({count} times)" if count > 1 else text for text, count in texts.most_common(CAUSES_MAX))


def causes_of(history: Iterable[e.Event]) -> tuple[str, ...]:
    """Those of the join that failed last."""
    frames: dict[TokenId, Frames] = {}
    failed: dict[TokenId, Error] = {}
    causes: tuple[str, ...] = ()
    for event in history:
        if isinstance(event, e.TokenCreated):
            frames[event.token] = event.frames
        elif isinstance(event, e.TokenFailed | e.TokenTimedOut):
            failed[event.token] = event.error
        elif isinstance(event, e.TokenRetryScheduled):
            failed.pop(event.token, None)
        elif isinstance(event, e.JoinFailed):
            died = [
                error
                for token, error in failed.items()
                if any(frame[0] == event.group for frame in frames.get(token, ()))
            ]
            causes = counted(died)
    return causes


def with_causes(text: str, causes: Iterable[str]) -> str:
    """An error's text and what is behind it."""
    said = ", ".join(causes)
    return f"{text}; branches failed with {said}" if said else text
