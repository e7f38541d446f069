"""`@task`: a plain typed function that a workflow can use, and that a test can simply call.

    @task(retry=3, timeout="30s", compensate=refund)
    def charge(order: Order, currency: str = "EUR") -> Receipt: ...

The decorator returns the same function, with a note attached: nothing is wrapped, so it is called, typed, pickled and
stepped through as before. The note holds the defaults of a node that uses the function. A decorated function always
takes its inputs by name, also a single one called `input`.

Owns durations in words and the name of a function in a definition. Must not know how a task is run.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from typing import Any, TypeVar, overload

from msgspec import Struct

Function = Callable[..., Any]
F = TypeVar("F", bound=Function)

_NOTE = "__treadle_task__"
_UNITS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_DURATION = re.compile(r"(\d+(?:\.\d+)?)\s*(ms|s|m|h|d)\s*")


class TaskOptions(Struct, frozen=True):
    """The arguments of `@task(…)`: defaults for the node that uses the function, and for its action."""

    retry: dict[str, Any] | None = None
    timeout_ms: int | None = None
    queue: str | None = None
    process: bool = False
    compensate: Function | None = None


@overload
def task(function: F, /) -> F: ...
@overload
def task(
    *,
    retry: int | Mapping[str, Any] | None = None,
    timeout: str | int | None = None,
    queue: str | None = None,
    process: bool = False,
    compensate: Function | None = None,
) -> Callable[[F], F]: ...
def task(
    function: Function | None = None,
    /,
    *,
    retry: int | Mapping[str, Any] | None = None,
    timeout: str | int | None = None,
    queue: str | None = None,
    process: bool = False,
    compensate: Function | None = None,
) -> Any:
    """Marks a function, sync or async, as a task. The function is not changed and can be called without an engine.

    `retry` is a number of tries or a policy (`treadle.language.parts.retry`); `timeout` is milliseconds or a text such
    as "30s" or "1h 30m"; `queue` sends it to that queue's workers; `process` runs it in a process of its own, for work
    that keeps a processor busy; `compensate` is the function that undoes it.
    """
    policy = {"max_attempts": retry} if isinstance(retry, int) else dict(retry) if retry is not None else None
    options = TaskOptions(policy, duration_ms(timeout) if timeout is not None else None, queue, process, compensate)

    def mark(marked: F) -> F:
        _refuse_unmappable(marked)
        if process and inspect.iscoroutinefunction(marked):
            raise TypeError(f"{name_of(marked)} is async and `process=True`: a process of its own runs plain functions")
        setattr(marked, _NOTE, options)
        return marked

    return mark if function is None else mark(function)


def options_of(function: Any) -> TaskOptions | None:
    """The note of the decorator; None for a function that was not decorated."""
    found = getattr(function, _NOTE, None)
    return found if isinstance(found, TaskOptions) else None


def is_importable(function: Function) -> bool:
    """Whether another process finds the function as `module:qualname`. Not if a notebook, a script or another function
    defines it."""
    return getattr(function, "__module__", None) not in (None, "__main__") and "<" not in getattr(
        function, "__qualname__", "<"
    )


def name_of(function: Function) -> str:
    """The function's name in a definition: `module:qualname`, or its bare name if it must be registered to be found."""
    if is_importable(function):
        return f"{function.__module__}:{function.__qualname__}"
    return str(getattr(function, "__name__", type(function).__name__))


def duration_ms(text: str | int) -> int:
    """`"30s"` → 30000. A number is taken as milliseconds. Raises ValueError."""
    if isinstance(text, int):
        return text
    parts = _DURATION.findall(text)
    if not parts or _DURATION.sub("", text).strip():
        raise ValueError(f'{text!r} is no duration; write "250ms", "30s", "5m", "1h 30m" or "2d"')
    return round(sum(float(number) * _UNITS[unit] for number, unit in parts))


def _refuse_unmappable(function: Function) -> None:
    """Refuses positional-only parameters: inputs come by name."""
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.VAR_POSITIONAL):
            raise TypeError(f"{name_of(function)}: the parameter `{parameter}` has no name an input could be mapped to")
