"""What production code logs in a simulated world: an error is a defect, everything else goes nowhere."""

from __future__ import annotations

import logging
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import structlog

ERRORS: list[str] = []
"""Said since somebody last emptied it."""


def _keep(_logger: Any, _level: str, event: dict[str, Any]) -> Any:
    problem = event.pop("exc_info", None)
    trace = "".join(traceback.format_exception(problem)) if isinstance(problem, BaseException) else ""
    ERRORS.append(f"{event}\n{trace}")
    raise structlog.DropEvent


@contextmanager
def listening() -> Iterator[None]:
    """Everything in this process that uses structlog, for as long as a world lives."""
    before = structlog.get_config() if structlog.is_configured() else None
    ERRORS.clear()
    structlog.configure(
        processors=[_keep],  # type: ignore[list-item]
        wrapper_class=structlog.make_filtering_bound_logger(logging.ERROR),
        cache_logger_on_first_use=False,
    )
    try:
        yield
    finally:
        structlog.reset_defaults()
        if before is not None:
            structlog.configure(**before)
