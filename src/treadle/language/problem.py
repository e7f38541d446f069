"""Problems of a definition, as data: `Problem`, the closed list of codes, and how a place is written.

Owns codes and severities. Promises that a problem always names a place a person can go to.
Must not know how problems are found, nor how they are shown.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable
from typing import Literal

from msgspec import Struct

from treadle.expression.names import escaped

Path = tuple[str | int, ...]
"""A place inside a document: keys and list positions from the root."""

ERRORS = frozenset(
    [
        "UNKNOWN_NODE",
        "UNKNOWN_SIBLING_GROUP",
        "UNKNOWN_TASK",
        "UNKNOWN_FUNCTION",
        "SIGNATURE",
        "UNKNOWN_FIELD",
        "UNKNOWN_NODE_TYPE",
        "NO_START",
        "BAD_SCHEMA",
        "BAD_VALUE",
        "CONDITION_SYNTAX",
        "CYCLE",
        "JOIN_CONFLICT",
        "SPAWN_COUNT",
        "QUORUM_TOO_LARGE",
        "BAD_TIMEOUT",
        "SUSPENDING_STEP",
        "ON_EMPTY_REQUIRED",
        "UNWRITTEN_READ",
        "INPUT_NOT_WRITABLE",
        "SPLITTER_WITHOUT_DOWNSTREAM",
        "COLLECTOR_WITHOUT_UPSTREAM",
    ]
)
WARNINGS = frozenset(
    [
        "UNREACHABLE_NODE",
        "GROUP_NEVER_ON_STACK",
        "JOIN_WITHOUT_FAN_OUT",
        "MAYBE_UNWRITTEN_READ",
        "GROUP_WITHOUT_JOIN",
        "UNREAD_WRITE",
        "TIMEOUT_HIERARCHY",
        "BRANCH_OUTSIDE_GROUP",
    ]
)
ADVICE = frozenset(["FAILURES_UNSEEN", "BRANCH_MAYBE_ABSENT", "NO_PUBLIC_URL"])
"""Warnings that `strict` leaves warnings: whether they matter depends on facts no check can see."""


class Problem(Struct, frozen=True):
    """One mistake an author should correct, and its place."""

    code: str
    message: str
    severity: Literal["error", "warning"]
    at: str
    """The place, spelled as the author spelled it: `transitions[2].synchronization.sibling_group`."""
    file: str
    line: int | None = None
    """1-based; None when the definition was not read from text."""
    column: int | None = None
    hint: str | None = None

    def __str__(self) -> str:
        spot = self.file if self.line is None else f"{self.file}:{self.line}:{self.column}"
        where = f" at {self.at}" if self.at else ""
        hint = f" ({self.hint})" if self.hint else ""
        return f"{spot}: {self.severity} {self.code}{where}: {self.message}{hint}"


_PLAIN_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*\Z")


def path_text(path: Path) -> str:
    """`("nodes", "odd key", 0)` → `nodes["odd key"][0]`."""
    parts: list[str] = []
    for step in path:
        if isinstance(step, int):
            parts.append(f"[{step}]")
        elif _PLAIN_KEY.match(step):
            parts.append(f".{step}" if parts else step)
        else:
            quoted = escaped(step.replace("\\", "\\\\").replace('"', '\\"'))
            parts.append(f'["{quoted}"]')
    return "".join(parts)


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name an author most probably meant, if one is close."""
    if len(name) > 64:  # difflib is quadratic in the length; nobody mistypes so long a name
        return None
    candidates = list(known)
    found = difflib.get_close_matches(name, candidates, n=1, cutoff=0.6)
    if not found:
        lowered = {candidate.lower(): candidate for candidate in candidates}
        matches = difflib.get_close_matches(name.lower(), lowered, n=1, cutoff=0.6)
        found = [lowered[match] for match in matches]
    return found[0] if found else None


def did_you_mean(name: str, known: Iterable[str]) -> str | None:
    """A hint in words, or None when nothing is near."""
    near = nearest(name, known)
    return f"did you mean `{near}`?" if near is not None else None
