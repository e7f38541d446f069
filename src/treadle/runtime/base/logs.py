"""What an engine writes into a log: lines on stderr, scrubbed of secrets, tracebacks without local variables.

Owns the loggers of this room and the configuration a program chooses. An engine used as a library leaves the
application's logging alone: where that has configured structlog, everything goes there; where it has not, warnings go
to stderr and the rest nowhere. structlog's own default would write all of it to stdout, among the application's output,
and show every local variable.
"""

from __future__ import annotations

import logging
import sys
from functools import cache
from typing import Any

import structlog

from treadle.actions.redact import redact_event


class _Stderr:
    """Whatever stderr is at the moment: a live picture puts itself in its place."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


class _Logger:
    """Asks each time: an application may configure its logging later than it imports us."""

    def __init__(self, name: str) -> None:
        self._applications = structlog.get_logger(name)

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._applications if structlog.is_configured() else _ours(), verb)


def logger(name: str) -> Any:
    """The logger of a part of the engine."""
    return _Logger(name)


def log_to_stderr(level: int = logging.WARNING) -> None:
    """Everything from `level` on, of all that use structlog in this process: for a program, not for a library."""
    structlog.configure(
        **_settings(level),
        logger_factory=structlog.PrintLoggerFactory(_Stderr()),  # type: ignore[arg-type]
        cache_logger_on_first_use=False,
    )


@cache
def _ours() -> Any:
    return structlog.wrap_logger(structlog.PrintLogger(_Stderr()), **_settings(logging.WARNING))  # type: ignore[arg-type]


def _settings(level: int) -> dict[str, Any]:
    shown = structlog.dev.ConsoleRenderer(colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback)
    return {
        "processors": [
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            redact_event,
            shown,
        ],
        "wrapper_class": structlog.make_filtering_bound_logger(level),
    }
