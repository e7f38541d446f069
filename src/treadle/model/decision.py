"""What the kernel answers: facts that now hold, things to be done, and perhaps that the command was refused."""

from __future__ import annotations

from msgspec import Struct

from treadle.model.effects import Effect
from treadle.model.errors import Rejection
from treadle.model.events import Event


class Decision(Struct):
    """`events` are already folded into the state the kernel was given; a refusal usually leaves them empty,
    except that a refused callback is itself a fact worth recording."""

    events: list[Event] = []
    effects: list[Effect] = []
    rejection: Rejection | None = None
