"""A decision, the kernel's answer to a command: events that now hold, effects to be carried out, and perhaps a
refusal."""

from __future__ import annotations

from msgspec import Struct

from treadle.model.effects import Effect
from treadle.model.errors import Rejection
from treadle.model.events import Event


class Decision(Struct):
    """The events are already folded into the state the kernel was given. A refusal usually leaves them empty; a refused
    callback is the exception, because it is itself worth recording."""

    events: list[Event] = []
    effects: list[Effect] = []
    rejection: Rejection | None = None
    cuts: list[int] = []
    """Of a fork: the sequence numbers at which the decisions of its inherited past ended."""
