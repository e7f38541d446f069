"""Logs of an engine that runs as a program: lines on stderr, scrubbed of secrets, tracebacks without local variables.

Owns the configuration a program chooses. An engine used as a library leaves the application's logging alone.
"""

from __future__ import annotations

import logging
import sys

import structlog

from treadle.actions.redact import redact_event


class _Stderr:
    """Whatever stderr is at the moment: a live picture puts itself in its place."""

    def write(self, text: str) -> int:
        return sys.stderr.write(text)

    def flush(self) -> None:
        sys.stderr.flush()


def log_to_stderr(level: int = logging.WARNING) -> None:
    """Everything from `level` on. structlog's own default would write to stdout, and show every local variable."""
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso"),
            structlog.processors.format_exc_info,
            redact_event,
            structlog.dev.ConsoleRenderer(
                colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
            ),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(_Stderr()),  # type: ignore[arg-type]
        cache_logger_on_first_use=False,
    )
