"""The answer of a condition. Unevaluable is a value, not an exception: routing goes on, and the history says why."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from msgspec import Struct

from treadle.expression.view import View


class Unevaluable(Struct, frozen=True):
    """Neither true nor false for this data; `reason` names the value that was missing or did not fit. Falsy, because it
    does not match."""

    reason: str
    limit: bool = False
    """The data is too large to be evaluated. That is not even "does not match": the token fails."""

    def __bool__(self) -> Literal[False]:
        return False


Answer = bool | Unevaluable
Test = Callable[[View], Answer]
