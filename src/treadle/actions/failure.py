"""Exceptions → errors: an exception of user code becomes a value.

Owns the classification (2.6): infrastructure trouble is retryable, everything else is a business failure. A
function that knows better raises `TaskFailure` or `Retryable`. Everything user code raises fails its attempt, whether
it is an `Exception` or not (`SystemExit`, a library's own `BaseException`), but for two things that are not the
attempt's: its cancellation, and a person's Ctrl-C (`is_interrupt`).
"""

from __future__ import annotations

import signal
import threading
import traceback
from typing import Any

from msgspec.structs import replace

from treadle.actions.plain import NotPlain, plain
from treadle.actions.task_failure import Retryable as Retryable
from treadle.actions.task_failure import TaskFailure as TaskFailure
from treadle.actions.tracebacks import traceback_of
from treadle.errors import EvaluationError, TreadleError
from treadle.model.errors import Error

MESSAGE_MAX = 2_000
"""Characters. Long enough for a stack of causes, short enough to be kept in history a thousand times."""


def is_interrupt(problem: BaseException) -> bool:
    """Whether a KeyboardInterrupt comes from Ctrl-C: Python raises that one in the main thread, unless the signal has
    another handler. `asyncio.run` installs one and turns Ctrl-C into a cancellation; then user code raised it."""
    return (
        isinstance(problem, KeyboardInterrupt)
        and threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )


def error_of(problem: BaseException) -> Error:
    """The error that an exception of an action stands for."""
    return replace(_classified(problem), traceback=traceback_of(problem))


def _classified(problem: BaseException) -> Error:
    if isinstance(problem, TaskFailure):
        return Error(
            kind=problem.kind,
            message=_short(_said(problem)),
            retryable=problem.retryable,
            details=_details(problem.details),
        )
    if isinstance(problem, TreadleError):
        kind = problem.kind if isinstance(problem, EvaluationError) else "TASK_FAILED"
        return Error(kind=kind, message=_short(_said(problem)))
    return Error(
        kind="TASK_FAILED",
        message=_short(f"{type(problem).__name__}: {_said(problem)}".removesuffix(": ")),
        retryable=isinstance(problem, OSError),
        details={"type": type(problem).__qualname__, "where": _where(problem)},
    )


def _details(details: Any) -> Any:
    """The details as JSON; as their repr if they are not JSON, so that they do not hide the failure itself."""
    try:
        return plain(details)
    except NotPlain:
        return repr(details)[:MESSAGE_MAX]


def _said(problem: BaseException) -> str:
    """The exception's own text. Making it may run user code, which may fail in turn."""
    try:
        return str(problem)
    except BaseException as worse:
        if is_interrupt(worse):
            raise
        return f"(its text cannot be made: {type(worse).__name__})"


def _short(message: str) -> str:
    message = message.encode(errors="replace").decode()
    return message if len(message) <= MESSAGE_MAX else f"{message[: MESSAGE_MAX - 1]}…"


def _where(problem: BaseException) -> str | None:
    frames = traceback.extract_tb(problem.__traceback__)
    return f"{frames[-1].filename}:{frames[-1].lineno} in {frames[-1].name}" if frames else None
