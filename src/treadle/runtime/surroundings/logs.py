"""The engine's log: lines on stderr, scrubbed of secrets, with tracebacks that show no local variables.

Owns the loggers of the runtime and the configuration that a program chooses. An engine used as a library leaves the
application's logging alone: if the application has configured structlog, every line goes there; otherwise warnings go
to stderr and other lines are dropped. structlog's own default would write all of them to stdout, among the
application's output, and show every local variable.
"""

from __future__ import annotations

import logging
import sys
from functools import cache
from typing import Any

import structlog

from treadle.actions.redact import redact_event


class _Stderr:
    """Writes to the current `sys.stderr`, which a live picture in a terminal may replace."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


class _Logger:
    """Looks up the configuration at each call: an application may configure its logging after it imports Treadle."""

    def __init__(self, name: str) -> None:
        self._applications = structlog.get_logger(name)

    def __getattr__(self, verb: str) -> Any:
        return getattr(self._applications if structlog.is_configured() else _ours(), verb)


def logger(name: str) -> Any:
    """The logger of a part of the engine."""
    return _Logger(name)


def log_to_stderr(level: int = logging.WARNING) -> None:
    """Writes lines from `level` on to stderr, for everything in this process that uses structlog. For programs, not for
    libraries."""
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
