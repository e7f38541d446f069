"""The traceback of an exception of user code, as it is kept with a failed attempt.

Owns the choice of what is kept: frames of user code and libraries, not those of the engine, and no values of variables;
causes and contexts; at most the last `LENGTH_MAX` characters, because the error is at the end. Known secrets are
removed: those of the attempt, and those in the environment for actions. There is no traceback if all frames are the
engine's. Making it runs no user code except the exception's `__str__`.
"""

from __future__ import annotations

import os
from pathlib import Path
from traceback import StackSummary, TracebackException

from treadle.actions.redact import Redactor, current
from treadle.actions.secrets import environment_secrets

LENGTH_MAX = 4_000
"""Characters: some forty frames, and little enough to keep for every failed attempt."""
CHAIN_MAX = 5
"""Causes behind causes."""
_ENGINE = f"{Path(__file__).resolve().parents[1]}{os.sep}"
_HEAD = "Traceback (most recent call last):\n"


def traceback_of(problem: BaseException) -> str | None:
    """The text to keep; None if no frame of it would help an author."""
    try:
        told = TracebackException.from_exception(problem, compact=True)
        if not _trim(told, CHAIN_MAX):
            return None
        text = "".join(told.format()).rstrip("\n")
    except BaseException:  # the `__str__` of a user's exception failed; the failure is reported nevertheless
        return None
    text = _clean(text.encode(errors="replace").decode())
    if len(text) <= LENGTH_MAX:
        return text
    return f"{_HEAD}  …\n{text[-(LENGTH_MAX - len(_HEAD) - 4) :]}"


def _trim(told: TracebackException | None, depth: int) -> bool:
    """Removes the engine's frames, also from causes and contexts. Returns whether a frame is left."""
    if told is None:
        return False
    kept = [frame for frame in told.stack if not frame.filename.startswith(_ENGINE)]
    told.stack = StackSummary.from_list(kept)
    if depth == 0:
        told.__cause__ = told.__context__ = None
    behind = [_trim(told.__cause__, depth - 1), _trim(told.__context__, depth - 1)]
    return bool(kept) or any(behind)


def _clean(text: str) -> str:
    redactor = current.get()
    return Redactor(environment_secrets()).text(redactor.text(text) if redactor is not None else text)
