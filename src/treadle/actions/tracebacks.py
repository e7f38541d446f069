"""The traceback of what user code raised, as it is kept with a failed attempt.

Owns what of it is kept: frames of user code and libraries, without the engine's own and without values of variables;
causes and contexts; at most `LENGTH_MAX` characters, the end rather than the beginning, because that is where it
happened. Known secrets are taken out: those of the attempt, and those the environment holds for actions. None where
the exception came out of the engine alone. Making it runs no user code but the exception's own text.
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
    """The text to keep; None: there is nothing in it that an author could read."""
    try:
        told = TracebackException.from_exception(problem, compact=True)
        if not _trim(told, CHAIN_MAX):
            return None
        text = "".join(told.format()).rstrip("\n")
    except BaseException:  # the text of somebody's exception; there is a failure to report all the same
        return None
    text = _clean(text.encode(errors="replace").decode())
    if len(text) <= LENGTH_MAX:
        return text
    return f"{_HEAD}  …\n{text[-(LENGTH_MAX - len(_HEAD) - 4) :]}"


def _trim(told: TracebackException | None, depth: int) -> bool:
    """Takes the engine's frames out, here and behind; whether a frame is left."""
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
